package server

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemark-cdc/tidemark/offset"
)

// TestReplicaThatIsBehind: after a failover to a replica that still has to apply what the offset names it is waited for, since that comes. If
// it replicates nothing more, or the transactions are its own, they do not come, and that stops the stream.
func TestReplicaThatIsBehind(t *testing.T) {
	const own, before = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-0000000000cc"
	set, err := offset.ParseGTIDSet(before + ":1-9," + own + ":1-9")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		lacks  string
		change func(f *fake)
		waits  bool
		text   string
	}{
		"it applies": {
			before + ":8-9", func(f *fake) { f.source, f.applier = "p.example", []any{"Yes", "", before + ":1-9", "5"} }, true,
			"has not executed yet what the stored offset names: " + before + ":8-9. It is a replica of p.example that still has to apply " + before + ":1-9",
		},
		"it lies behind": {
			before + ":8-9", func(f *fake) { f.source, f.applier = "p.example", []any{"Yes", "", "", "5"} }, true,
			"is a replica of p.example and 5 s behind it",
		},
		"it has caught up": {
			before + ":8-9", func(f *fake) { f.source, f.applier = "p.example", []any{"Yes", "", own + ":1-4", "0"} }, false,
			before + ":8-9. The stored offset is from another server",
		},
		"its applier has stopped": {
			before + ":8-9", func(f *fake) { f.source, f.applier = "p.example", []any{"No", "Duplicate entry", before + ":1-9", ""} }, false,
			"Its replication from p.example is stopped (Replica_SQL_Running: No Duplicate entry): START REPLICA",
		},
		"its own are missing": {
			own + ":9", func(f *fake) { f.source, f.applier = "p.example", []any{"Yes", "", own + ":1-9", "5"} }, false,
			"It is its own uuid: the server has lost transactions",
		},
		"it is no replica":    {before + ":8-9", nil, false, "SELECT GTID_SUBSET('" + before + ":8-9', @@GLOBAL.gtid_executed)"},
		"it may not be asked": {before + ":8-9", func(f *fake) { f.fail["SHOW REPLICA STATUS"] = mysql.NewError(1227, "Access denied") }, false, "has never executed: " + before + ":8-9"},
		"it is in a replication group": {
			before + ":8-9", func(f *fake) { f.group = []any{before + ":1-9"} }, true,
			"is a member of a replication group that still has to apply " + before + ":1-9",
		},
		"its group is itself a replica, by another member": {
			before + ":8-9", func(f *fake) {
				f.source, f.applier = "p.example", []any{"No", "", "", ""}
				f.group = []any{before + ":1-9"}
			}, true,
			"is a member of a replication group that still has to apply " + before + ":1-9",
		},
		"its group has nothing more": {before + ":8-9", func(f *fake) { f.group = []any{own + ":1-4"} }, false, "has never executed: " + before + ":8-9"},
		"it has them by then":        {before + ":8-9", func(f *fake) { f.unknown = append(slices.Repeat(f.unknown, 17), "") }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.unknown = []string{tt.lacks}
				if tt.change != nil {
					tt.change(f)
				}
				_, err := f.connect(t).Locate(t.Context(), offset.Offset{File: "mysql-bin.000003", Pos: 400, GTIDs: set}, Stored)
				if tt.text == "" {
					if err != nil {
						t.Error(err)
					}
					if len(f.unknown) != 1 {
						t.Errorf("%d answers are left", len(f.unknown))
					}
					return
				}
				kind := ErrOtherServer
				if tt.waits {
					kind = ErrBehind
				}
				if !errors.Is(err, kind) || Transient(err) != tt.waits || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}
