package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemark-cdc/tidemark/offset"
)

func TestLocate(t *testing.T) {
	const a = "00000000-0000-0000-0000-00000000000a:1-7"
	set, err := offset.ParseGTIDSet(a)
	if err != nil {
		t.Fatal(err)
	}
	gtid := offset.Offset{File: "mysql-bin.000003", Pos: 400, GTIDs: set}
	own := func(file string, pos int64) offset.Offset { // of this very server
		return offset.Offset{File: file, Pos: pos, GTIDs: set, ServerID: 1, Side: &offset.Side{Server: "00000000-0000-0000-0000-00000000000a"}}
	}
	foreign := own("mysql-bin.000003", 901)
	foreign.Side = &offset.Side{Server: "00000000-0000-0000-0000-00000000000b"}
	within := func(kind, info string) func(f *fake) {
		return func(f *fake) { f.kinds, f.infos = map[int64]string{400: kind}, map[int64]string{400: info} }
	}
	file := func(name string, pos int64) offset.Offset { return offset.Offset{File: name, Pos: pos} }
	tests := []struct {
		name   string
		start  offset.Offset
		change func(f *fake)
		want   DumpFrom
		kind   error
		text   string
	}{
		{"GTIDs", gtid, nil, DumpFrom{"mysql-bin.000003", 400, a, true, Stored, false}, nil, ""},
		{"GTIDs of another server's file", offset.Offset{File: "other.000077", Pos: 9, GTIDs: set}, nil, DumpFrom{"other.000077", 9, a, true, Stored, false}, nil, ""},
		{"no GTIDs yet", offset.Offset{File: "mysql-bin.000003", Pos: 400, GTIDs: offset.EmptyGTIDSet()}, nil, DumpFrom{"mysql-bin.000003", 400, "", true, Stored, false}, nil, ""},
		{"GTIDs that are executed a moment later", gtid, func(f *fake) { f.unknown = []string{a, a, ""} }, DumpFrom{"mysql-bin.000003", 400, a, true, Stored, false}, nil, ""},
		{
			"GTIDs unknown", gtid, func(f *fake) { f.unknown = []string{"00000000-0000-0000-0000-0000000000cc:4"} },
			DumpFrom{},
			ErrOtherServer,
			"has never executed: 00000000-0000-0000-0000-0000000000cc:4. The stored offset is from another server",
		},
		{
			"GTIDs lost", gtid, func(f *fake) { f.unknown = []string{"00000000-0000-0000-0000-00000000000a:6-7"} },
			DumpFrom{},
			ErrOtherServer,
			"00000000-0000-0000-0000-00000000000a:6-7. It is its own uuid: the server has lost transactions",
		},
		{
			"GTIDs purged", gtid, func(f *fake) { f.gone = "00000000-0000-0000-0000-00000000000a:8" },
			DumpFrom{},
			ErrPurged,
			"come after the stored offset: 00000000-0000-0000-0000-00000000000a:8. Choices:",
		},
		{"GTIDs on a server that is leaving them", gtid, func(f *fake) { f.vars["gtid_mode"] = "ON_PERMISSIVE" }, DumpFrom{"mysql-bin.000003", 400, a, false, Stored, false}, nil, ""},
		{"no GTIDs on a server with them", file("mysql-bin.000003", 400), nil, DumpFrom{"mysql-bin.000003", 400, "", false, Stored, false}, nil, ""},
		{"start of a file", file("mysql-bin.000002", 4), nil, DumpFrom{"mysql-bin.000002", 4, "", false, Stored, false}, nil, ""},
		{"end of a file", file("mysql-bin.000003", 900), nil, DumpFrom{"mysql-bin.000003", 900, "", false, Stored, false}, nil, ""},
		{"end of an encrypted file", file("mysql-bin.000003", 900), func(f *fake) { f.encrypted = true }, DumpFrom{"mysql-bin.000003", 900, "", false, Stored, false}, nil, ""},
		{"own GTIDs, beyond the end of an encrypted file", own("mysql-bin.000003", 901), func(f *fake) { f.encrypted = true }, DumpFrom{}, ErrOtherServer, "that file has only 900 bytes"},
		{"beyond the end", file("mysql-bin.000003", 901), nil, DumpFrom{}, ErrOtherServer, "which has 900 bytes"},
		{"inside an event", file("mysql-bin.000003", 401), nil, DumpFrom{}, ErrOtherServer, "the stored offset is mysql-bin.000003:401, but no event begins there"},
		{"before any event", file("mysql-bin.000003", 0), nil, DumpFrom{}, ErrOtherServer, "the first one of a file is at 4"},
		{"purged file", file("mysql-bin.000001", 400), nil, DumpFrom{}, ErrPurged, "the oldest that it has is mysql-bin.000002. Choices:"},
		{"later file", file("mysql-bin.000004", 400), nil, DumpFrom{}, ErrOtherServer, "it has mysql-bin.000002 to mysql-bin.000003"},
		{"another base", file("binlog.000001", 400), nil, DumpFrom{}, ErrOtherServer, "the stored offset binlog.000001:400 names a binlog file that MySQL at db.example:3306 does not have"},
		{"number of seven digits", file("mysql-bin.999999", 400), func(f *fake) { f.logs = []Log{{"mysql-bin.1000000", 100}} }, DumpFrom{}, ErrPurged, "the oldest that it has is mysql-bin.1000000"},
		{"between transactions stands a TABLE_MAP", file("mysql-bin.000003", 400), within("Table_map", "table_id: 90 (d.t)"), DumpFrom{}, ErrOtherServer, "the event there (Table_map) is in the middle of a transaction"},
		{"between transactions stands a COMMIT", file("mysql-bin.000003", 400), within("Query", "COMMIT"), DumpFrom{}, ErrOtherServer, "in the middle of a transaction"},
		{"between transactions stands a GTID", file("mysql-bin.000003", 400), within("Anonymous_Gtid", "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'"), DumpFrom{"mysql-bin.000003", 400, "", false, Stored, false}, nil, ""},
		{"inside a transaction what stands there is for the reader to see", offset.Offset{File: "mysql-bin.000003", Pos: 400, Event: 2}, within("Table_map", ""), DumpFrom{"mysql-bin.000003", 400, "", false, Stored, false}, nil, ""},
		{"own GTIDs, beyond the end of the file", own("mysql-bin.000003", 901), nil, DumpFrom{}, ErrOtherServer, "is from this very server, MySQL at db.example:3306 (server_uuid 00000000-0000-0000-0000-00000000000a), but that file has only 900 bytes: it has lost the end"},
		{"own GTIDs, a file that is still to come", own("mysql-bin.000004", 4), nil, DumpFrom{}, ErrOtherServer, "its newest binlog file is mysql-bin.000003"},
		{"own GTIDs, no event", own("mysql-bin.000003", 401), nil, DumpFrom{}, ErrOtherServer, "no transaction begins at that position any more"},
		{"own GTIDs, in a transaction", own("mysql-bin.000003", 400), within("Write_rows", ""), DumpFrom{}, ErrOtherServer, "go on with start.position=" + a},
		{"own GTIDs, the file is purged", own("mysql-bin.000001", 77), nil, DumpFrom{"mysql-bin.000001", 77, a, true, Stored, false}, nil, ""},
		{
			"own GTIDs, the file is purged at that moment", own("mysql-bin.000003", 400),
			func(f *fake) {
				f.fail["SHOW BINLOG EVENTS"] = mysql.NewError(1220, "Error when executing command SHOW BINLOG EVENTS: Could not find target log")
			},
			DumpFrom{"mysql-bin.000003", 400, a, true, Stored, false},
			nil, "",
		},
		{"own GTIDs, the files have another name now", own("binlog.000077", 77), nil, DumpFrom{"binlog.000077", 77, a, true, Stored, false}, nil, ""},
		{"GTIDs of another server, beyond the end of its file here", foreign, nil, DumpFrom{"mysql-bin.000003", 901, a, true, Stored, false}, nil, ""},
		{"binlog off", file("mysql-bin.000003", 400), func(f *fake) { f.logs = nil }, DumpFrom{}, ErrSetup, "--log-bin"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				if tt.change != nil {
					tt.change(f)
				}
				got, err := f.connect(t).Locate(t.Context(), tt.start, Stored)
				if tt.kind == nil {
					if err != nil || got != tt.want {
						t.Fatalf("%+v %v", got, err)
					}
					return
				}
				if !errors.Is(err, tt.kind) || Transient(err) || !strings.Contains(err.Error(), tt.text) {
					t.Fatalf("got %v", err)
				}
			})
		})
	}
}

// TestLocateSaysWhose checks that an error speaks of the position as what it is, and gives the way out that fits.
func TestLocateSaysWhose(t *testing.T) {
	const a = "00000000-0000-0000-0000-00000000000a:1-7"
	set, err := offset.ParseGTIDSet(a)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, pos int64) offset.Offset { return offset.Offset{File: name, Pos: pos} }
	for _, tt := range []struct {
		name   string
		start  offset.Offset
		change func(f *fake)
		want   string // with WHOSE in place of whose position it is
	}{
		{"GTIDs unknown", offset.Offset{GTIDs: set}, func(f *fake) { f.unknown = []string{"00000000-0000-0000-0000-0000000000cc:4"} }, "WHOSE names transactions that MySQL"},
		{"GTIDs purged", offset.Offset{GTIDs: set}, func(f *fake) { f.gone = "00000000-0000-0000-0000-00000000000a:8" }, "with transactions that come after WHOSE: "},
		{"later file", file("mysql-bin.000999", 4), nil, "WHOSE mysql-bin.000999:4 names a binlog file that MySQL at db.example:3306 does not have; it has mysql-bin.000002 to mysql-bin.000003"},
		{"purged file", file("mysql-bin.000001", 4), nil, "WHOSE mysql-bin.000001:4 lies in a binlog file that MySQL at db.example:3306 has purged; the oldest that it has is mysql-bin.000002"},
		{"beyond the end", file("mysql-bin.000003", 901), nil, "WHOSE mysql-bin.000003:901 lies beyond the end"},
		{"inside an event", file("mysql-bin.000003", 401), nil, "WHOSE is mysql-bin.000003:401, but no event begins there"},
		{"before any event", file("mysql-bin.000003", 3), nil, "WHOSE is mysql-bin.000003:3, where no event can begin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				if tt.change != nil {
					tt.change(f)
				}
				for origin, words := range map[Origin][3]string{
					Stored: {"the stored offset", "delete the connector's stored offset (how: README, Starting anew)", "choose another start position"},
					Given:  {"the start position", "choose another start position (start.position, --from)", "stored offset"},
				} {
					_, err := f.connect(t).Locate(t.Context(), tt.start, origin)
					text := fmt.Sprint(err)
					if !strings.Contains(text, strings.ReplaceAll(tt.want, "WHOSE", words[0])) || !strings.Contains(text, words[1]) || strings.Contains(text, words[2]) {
						t.Errorf("%s: %v", words[0], err)
					}
				}
			})
		})
	}
}
