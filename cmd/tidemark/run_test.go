package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/offset"
)

func TestBegin(t *testing.T) {
	const position = `"file":"mysql-bin.000003","pos":479`
	for name, c := range map[string]struct {
		mode, stored string
		want         string // a piece of the error; "" for none
		now, resumes bool
	}{
		"nothing stored, no_data":        {mode: "no_data", stored: "null", now: true},
		"an empty offset is none":        {mode: "no_data", stored: "{}", now: true},
		"nothing stored, initial":        {mode: "initial", stored: "null", want: `"snapshot.mode":"no_data"`},
		"stored, initial":                {mode: "initial", stored: `{` + position + `}`, resumes: true},
		"stored inside a transaction":    {mode: "no_data", stored: `{` + position + `,"row":2,"event":4}`, resumes: true},
		"inside an initial snapshot":     {mode: "no_data", stored: `{` + position + `,"snapshot":"INITIAL"}`, want: "until its snapshot is done"},
		"inside a blocking snapshot":     {mode: "no_data", stored: `{` + position + `,"event":2,"snapshot":"BLOCKING"}`, want: "until its snapshot is done"},
		"inside a snapshot, old form":    {mode: "no_data", stored: `{` + position + `,"snapshot":true}`, want: "until its snapshot is done"},
		"snapshot false is none":         {mode: "no_data", stored: `{` + position + `,"snapshot":false}`, resumes: true},
		"inside an incremental snapshot": {mode: "no_data", stored: `{` + position + `,"incremental_snapshot_primary_key":"aced000570"}`, want: "stop-snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := offset.Parse([]byte(c.stored))
			if err != nil {
				t.Fatal(err)
			}
			start, err := begin(&config.Connector{Name: "shop", SnapshotMode: c.mode}, stored)
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
			if start.Now != c.now || (start.Offset != nil) != c.resumes {
				t.Errorf("starts at %+v", start)
			}
		})
	}
}

func TestTransient(t *testing.T) {
	_, missing := os.Open(t.TempDir() + "/missing/offsets.dat")
	for _, test := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("offset file: %w", missing), false},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, true},
		{fmt.Errorf("the binlog stream broke off: %w", io.EOF), true},
	} {
		if got := transient(test.err); got != test.want {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
}
