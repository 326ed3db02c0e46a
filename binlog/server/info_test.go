package server

import "testing"

func TestInfo(t *testing.T) {
	c := newFake().connect(t)
	info, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Info{
		Version: "9.7.0", UUID: "00000000-0000-0000-0000-00000000000a", ServerID: 1, GTIDMode: "ON",
		Executed: "00000000-0000-0000-0000-00000000000a:1-9,00000000-0000-0000-0000-00000000000b:1-5",
		BinlogOn: true, Format: "ROW", RowImage: "FULL", RowMetadata: "FULL", Checksum: "CRC32", LogsReplicaUpdates: true,
	}
	if *info != want {
		t.Errorf("got  %+v\nwant %+v", *info, want)
	}
	if !info.UsesGTIDs() || info.MariaDB() {
		t.Error("GTIDs or kind of server")
	}
}

func TestServerThatForgets(t *testing.T) {
	for _, c := range []struct {
		sync, flush string
		want        bool
	}{{"1", "1", false}, {"", "", false}, {"0", "1", true}, {"1000", "1", true}, {"1", "2", true}, {"1", "0", true}} {
		f := newFake()
		f.vars["sync_binlog"], f.vars["innodb_flush_log_at_trx_commit"] = c.sync, c.flush
		if info, err := f.connect(t).Info(t.Context()); err != nil || info.Forgets() != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
