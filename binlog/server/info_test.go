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
