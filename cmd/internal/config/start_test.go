package config

import (
	"strings"
	"testing"
)

func TestParseStart(t *testing.T) {
	const u = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	for in, want := range map[string]Start{
		"now":                              {},
		" Oldest\n":                        {Mode: Oldest},
		"mysql-bin.000003:157":             {Mode: AtFile, File: "mysql-bin.000003", Pos: 157},
		"binlog.1000000:4294967296":        {Mode: AtFile, File: "binlog.1000000", Pos: 1 << 32},
		u + ":1-77":                        {Mode: AtGTIDs, GTIDs: u + ":1-77"},
		strings.ToUpper(u) + ":5:1-3":      {Mode: AtGTIDs, GTIDs: u + ":1-3:5"},
		u + ":1-2:blue:4,\n" + u + ":3-4 ": {Mode: AtGTIDs, GTIDs: u + ":1-4:blue:4"},
	} {
		got, err := ParseStart(in)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", in, got, err, want)
		}
		if again, err := ParseStart(got.String()); err != nil || again != got {
			t.Errorf("%q printed as %q gives %+v, %v", in, got, again, err)
		}
	}
	for in, part := range map[string]string{
		"":                      "empty",
		"latest":                "is none of oldest, now, FILE:POS",
		"mysql-bin.000003":      "is none of",
		"mysql-bin.000003:x":    "is none of",
		"mysql-bin.000003:3":    "before the first event",
		"mysql-bin.000003:-4":   "before the first event",
		"/var/mysql-bin.03:157": "base name",
		"a b:157":               "base name",
		u + ":x-y":              "GTID set",
		u + ":0":                "GTID set",
		u:                       "GTID set",
		u + ":52-50":            "no transaction is in",
	} {
		if got, err := ParseStart(in); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %+v, %v; want %q", in, got, err, part)
		}
	}
}

func TestBegin(t *testing.T) {
	at := Start{Mode: Oldest}
	for mode, want := range map[string]struct{ fresh, stored string }{ // part of the error; "" for none
		"no_data":             {"", ""},
		"initial":             {"snapshots are not built yet", ""},
		"when_needed":         {"snapshots are not built yet", ""},
		"recovery":            {"no stored offset of this connector", ""},
		"always":              {"at every start", "at every start"},
		"initial_only":        {"at every start", "at every start"},
		"configuration_based": {"at every start", "at every start"},
		"custom":              {"at every start", "at every start"},
	} {
		c := &Connector{File: "c.json", SnapshotMode: mode, Start: at}
		for _, stored := range []bool{false, true} {
			got, err := c.Begin(stored)
			part := want.fresh
			wantStart := at
			if stored {
				part, wantStart = want.stored, Start{}
			}
			if part == "" {
				if err != nil || got != wantStart {
					t.Errorf("%s, stored %v: %+v %v", mode, stored, got, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), part) || !strings.HasPrefix(err.Error(), "c.json: snapshot.mode: "+mode) || !strings.Contains(err.Error(), `"snapshot.mode":"no_data"`) {
				t.Errorf("%s, stored %v: %v", mode, stored, err)
			}
		}
	}
}
