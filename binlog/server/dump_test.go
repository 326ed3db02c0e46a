package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	fakemysql "github.com/go-mysql-org/go-mysql/server"
)

func TestDump(t *testing.T) {
	f := newFake()
	events := [][]byte{rotate("mysql-bin.000003", 400, true), formatDescription(true), rawEvent(2, 0, 900, []byte("BEGIN"), true)}
	f.stream = func(c *fakemysql.Conn) {
		for _, ev := range events {
			if c.WritePacket(append(make([]byte, 4), ok(ev)...)) != nil {
				return
			}
		}
		io.Copy(io.Discard, c.Conn.Conn)
	}
	f.onRegister = func(f *fake) { f.replicas = [][]any{{7, "c1", 0, 1, replicaUUID("c1", 7)}} }
	c := f.connect(t)
	s, err := c.Dump(t.Context(), DumpRequest{ServerID: 7, Identity: "c1", From: DumpFrom{File: "mysql-bin.000003", Pos: 400}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, want := range events {
		got, err := s.Next(t.Context())
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	// The stream is a connection of its own: questions go on beside it.
	if _, err := c.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := append(append([]byte{mysql.COM_BINLOG_DUMP}, 0x90, 1, 0, 0, 0, 0, 7, 0, 0, 0), "mysql-bin.000003"...); !bytes.Equal(f.dumps[0], want) {
		t.Errorf("dump command % x", f.dumps[0])
	}
	if want := append(append([]byte{7, 0, 0, 0, 2}, "c1"...), make([]byte, 12)...); !bytes.Equal(f.registered[0], want) {
		t.Errorf("registration % x", f.registered[0])
	}
	all := strings.Join(f.asked, "\n")
	for _, want := range []string{"@source_binlog_checksum=@@GLOBAL.binlog_checksum", "@source_heartbeat_period=1000000000", "@replica_uuid='" + replicaUUID("c1", 7) + "'"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing in\n%s", want, all)
		}
	}
}

func TestDumpRefused(t *testing.T) {
	request := DumpRequest{ServerID: 7, Identity: "c1", From: DumpFrom{File: "mysql-bin.000003", Pos: 4}}
	tests := []struct {
		name    string
		change  func(f *fake)
		request DumpRequest
		kind    error
		want    string
	}{
		{"server id 0", nil, DumpRequest{}, ErrSetup, "database.server.id is 0"},
		{"server id in use", func(f *fake) { f.replicas = [][]any{{7, "other", 0, 1, "x"}} }, request, ErrServerIDInUse, `report host "other"`},
		{"server id taken at the same time", func(f *fake) {
			f.onRegister = func(f *fake) { f.replicas = [][]any{{7, "other", 0, 1, "x"}} }
		}, request, ErrServerIDInUse, `report host "other"`},
		{"privilege", func(f *fake) { f.fail["REGISTER"] = mysql.NewError(1227, "Access denied") }, request, ErrAccess, "GRANT REPLICATION SLAVE"},
		{"GTIDs", nil, DumpRequest{ServerID: 7, From: DumpFrom{GTIDs: "x:y", ByGTID: true}}, nil, `GTID set "x:y"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			if tt.change != nil {
				tt.change(f)
			}
			_, err := f.connect(t).Dump(t.Context(), tt.request)
			if err == nil || Transient(err) || tt.kind != nil && !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v", err)
			}
			if len(f.dumps) != 0 {
				t.Error("the binlog was asked for")
			}
		})
	}
}

func TestDumpCommand(t *testing.T) {
	const uuid = "00112233-4455-6677-8899-aabbccddeeff"
	raw, _ := hex.DecodeString(strings.ReplaceAll(uuid, "-", ""))
	le := binary.LittleEndian
	plain := le.AppendUint64(nil, 1)
	plain = append(plain, raw...)
	for _, n := range []uint64{2, 1, 4, 5, 6} { // two intervals, their ends exclusive
		plain = le.AppendUint64(plain, n)
	}
	// With tags the count of sources has a format mark around it, and each source a tag: its length doubled, its text.
	tagged := le.AppendUint64(nil, 1<<56|2<<8|1)
	tagged = append(append(tagged, raw...), 0)
	for _, n := range []uint64{1, 1, 4} {
		tagged = le.AppendUint64(tagged, n)
	}
	tagged = append(append(tagged, raw...), 6)
	tagged = append(tagged, "tag"...)
	for _, n := range []uint64{1, 7, 8} {
		tagged = le.AppendUint64(tagged, n)
	}
	command := func(file string, pos uint64, set []byte) []byte {
		b := append(make([]byte, 4), mysql.COM_BINLOG_DUMP_GTID, 0, 0, 7, 0, 0, 0)
		b = append(le.AppendUint32(b, uint32(len(file))), file...)
		b = le.AppendUint32(le.AppendUint64(b, pos), uint32(len(set)))
		return append(b, set...)
	}
	none := make([]byte, 8)
	tests := []struct {
		name string
		from DumpFrom
		want []byte
	}{
		{"file", DumpFrom{File: "f.1", Pos: math.MaxUint32}, append(append(make([]byte, 4), mysql.COM_BINLOG_DUMP, 255, 255, 255, 255, 0, 0, 7, 0, 0, 0), "f.1"...)},
		{"beyond 4 GiB", DumpFrom{File: "f.1", Pos: math.MaxUint32 + 1, GTIDs: uuid + ":1"}, command("f.1", 1<<32, none)},
		{"no GTIDs", DumpFrom{File: "f.1", Pos: 1 << 40, ByGTID: true}, command("", 4, none)},
		{"GTIDs", DumpFrom{GTIDs: uuid + ":1-3:5", ByGTID: true}, command("", 4, plain)},
		{"tags", DumpFrom{GTIDs: uuid + ":1-3:tag:7", ByGTID: true}, command("", 4, tagged)},
		{"GTIDs from a position on", DumpFrom{File: "f.1", Pos: 900, GTIDs: uuid + ":1-3:5", ByGTID: true, Direct: true}, command("f.1", 900, plain)},
	}
	for _, tt := range tests {
		got, err := dumpCommand(DumpRequest{ServerID: 7, From: tt.from}, false)
		if err != nil || !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %v\n got % x\nwant % x", tt.name, err, got, tt.want)
		}
	}
	for _, tt := range []struct {
		name string
		req  DumpRequest
		want []byte
	}{
		{"file", DumpRequest{ServerID: 7, From: DumpFrom{File: "f.1", Pos: 300}}, append(append(make([]byte, 4), mysql.COM_BINLOG_DUMP, 44, 1, 0, 0, 0, 0, 7, 0, 0, 0), "f.1"...)},
		{"statements", DumpRequest{ServerID: 7, Queries: true, From: DumpFrom{File: "f.1", Pos: 4}}, append(append(make([]byte, 4), mysql.COM_BINLOG_DUMP, 4, 0, 0, 0, 2, 0, 7, 0, 0, 0), "f.1"...)},
		{"GTIDs", DumpRequest{ServerID: 7, From: DumpFrom{File: "f.1", Pos: 300, GTIDs: "0-1-5", ByGTID: true}}, append(make([]byte, 4), mysql.COM_BINLOG_DUMP, 4, 0, 0, 0, 0, 0, 7, 0, 0, 0)},
	} {
		got, err := dumpCommand(tt.req, true)
		if err != nil || !bytes.Equal(got, tt.want) {
			t.Errorf("MariaDB, %s: %v\n got % x\nwant % x", tt.name, err, got, tt.want)
		}
	}
	for _, maria := range []bool{false, true} { // BINLOG_DUMP_NON_BLOCK
		got, err := dumpCommand(DumpRequest{ServerID: 7, ToEnd: true, From: DumpFrom{File: "f.1", Pos: 300}}, maria)
		if err != nil || got[9] != 1 {
			t.Errorf("to the end, MariaDB %v: % x, %v", maria, got, err)
		}
	}
	if got, err := dumpCommand(DumpRequest{ServerID: 7, ToEnd: true, From: DumpFrom{GTIDs: uuid + ":1", ByGTID: true}}, false); err != nil || got[5] != 1 {
		t.Errorf("to the end by GTID: % x, %v", got, err)
	}
	if _, err := dumpCommand(DumpRequest{ServerID: 7, From: DumpFrom{File: "f.1", Pos: 1 << 32}}, true); !errors.Is(err, ErrSetup) {
		t.Errorf("MariaDB, beyond 4 GiB: %v", err)
	}
}

func TestReplicaUUID(t *testing.T) {
	id := replicaUUID("inventory", 184054)
	if id != replicaUUID("inventory", 184054) || id == replicaUUID("inventory", 184055) || id == replicaUUID("inventory2", 184054) {
		t.Error("the uuid must follow from connector and server id alone")
	}
	if len(id) != 36 || id[14] != '5' || !strings.ContainsRune("89ab", rune(id[19])) {
		t.Error(id)
	}
}
