package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// packets frames payloads as a server does after a dump command: sequence numbers from 1, 16 MiB at most a packet.
func packets(payloads ...[]byte) []byte {
	var out []byte
	seq := byte(1)
	for _, p := range payloads {
		for {
			n := min(len(p), maxPacket)
			out = append(out, byte(n), byte(n>>8), byte(n>>16), seq)
			out = append(out, p[:n]...)
			seq++
			p = p[n:]
			if n < maxPacket {
				break
			}
		}
	}
	return out
}

func ok(event []byte) []byte { return append([]byte{0}, event...) }

// feed returns a stream whose connection delivers data in pieces of at most step bytes and then ends.
func feed(data []byte, step int, checksum bool) *Stream {
	conn := &pieces{data: data, step: step}
	cfg := Config{Host: "db.example", Port: 3306, Heartbeat: time.Second}
	return newStream(conn, conn, cfg, "MySQL at "+cfg.address(), DumpRequest{ServerID: 7, From: DumpFrom{File: "mysql-bin.000001", Pos: 4}}, checksum)
}

type pieces struct {
	net.Conn
	data []byte
	step int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.step)], p.data)
	p.data = p.data[n:]
	return n, nil
}

func (p *pieces) Close() error                    { return nil }
func (p *pieces) SetReadDeadline(time.Time) error { return nil }

// TestEventsOfAllSizes: events of all sizes come whole, those of several packets and those that fill packets exactly.
func TestEventsOfAllSizes(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 40_000_000)
	heartbeat := rawEvent(typeHeartbeat, 0, 500, []byte("mysql-bin.000001"), true)
	tests := []struct {
		name   string
		events [][]byte
		step   int
	}{
		{"one read", [][]byte{rotate("mysql-bin.000001", 4, true), formatDescription(true), rawEvent(2, 0, 300, []byte("BEGIN"), true), heartbeat}, 1 << 30},
		{"byte by byte", [][]byte{rotate("mysql-bin.000001", 4, true), formatDescription(true), rawEvent(2, 0, 300, []byte("BEGIN"), true), heartbeat}, 1},
		{"longer than the buffer", [][]byte{rawEvent(30, 0, 1, big[:bufferSize*3], true), rawEvent(30, 0, 1, big[:10], true)}, 7777},
		{"longer than a packet", [][]byte{rawEvent(30, 0, 1, big, true), rawEvent(16, 0, 1, big[:8], true)}, 1 << 20},
		// The payload (event and its leading 0) fills packets exactly, which an empty one then ends.
		{"exactly a packet", [][]byte{rawEvent(30, 0, 1, big[:maxPacket-1-eventHeader-crcLen], true), heartbeat}, 1 << 20},
		{"exactly two packets", [][]byte{rawEvent(30, 0, 1, big[:2*maxPacket-1-eventHeader-crcLen], true), heartbeat}, 1 << 20},
		{"one less than a packet", [][]byte{rawEvent(30, 0, 1, big[:maxPacket-2-eventHeader-crcLen], true), heartbeat}, 1 << 20},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var payloads [][]byte
			for _, ev := range tt.events {
				payloads = append(payloads, ok(ev))
			}
			s := feed(packets(payloads...), tt.step, true)
			for i, want := range tt.events {
				got, err := s.Next(t.Context())
				if err != nil {
					t.Fatalf("event %d: %v", i, err)
				}
				if !bytes.Equal(got, want) || s.ChecksumLen() != crcLen {
					t.Fatalf("event %d: %d bytes, checksum %d; want %d bytes", i, len(got), s.ChecksumLen(), len(want))
				}
			}
			_, err := s.Next(t.Context())
			if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || !Transient(err) {
				t.Fatalf("at the end: %v", err)
			}
			if _, again := s.Next(t.Context()); again != err {
				t.Fatalf("after the end: %v", again)
			}
		})
	}
}

// TestStreamChecksumChanges: a stream over files written with and without checksums: each FORMAT_DESCRIPTION says what follows.
func TestStreamChecksumChanges(t *testing.T) {
	events := []struct {
		raw []byte
		len int
	}{
		{rotate("mysql-bin.000001", 4, true), 4},
		{formatDescription(true), 4},
		{rawEvent(2, 0, 300, []byte("BEGIN"), true), 4},
		{rotate("mysql-bin.000002", 4, true), 4},
		{formatDescription(false), 4},
		{rawEvent(2, 0, 300, []byte("BEGIN"), false), 0},
		{rotate("mysql-bin.000003", 4, false), 0},
		{formatDescription(true), 4},
		{rawEvent(2, 0, 300, []byte("BEGIN"), true), 4},
	}
	var payloads [][]byte
	for _, ev := range events {
		payloads = append(payloads, ok(ev.raw))
	}
	s := feed(packets(payloads...), 100, true)
	for i, want := range events {
		got, err := s.Next(t.Context())
		if err != nil || !bytes.Equal(got, want.raw) || s.ChecksumLen() != want.len {
			t.Fatalf("event %d: %v, %d bytes of checksum", i, err, s.ChecksumLen())
		}
	}
	if s.where() != "mysql-bin.000003:300" {
		t.Errorf("position for errors: %s", s.where())
	}
}

// The flag that says the file is in use changes without the checksum being made anew.
func TestStreamChecksumInUse(t *testing.T) {
	ev := formatDescription(true)
	ev[17] |= flagInUse
	if _, err := feed(packets(ok(ev)), 1<<20, true).Next(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestI6_StreamCorruption(t *testing.T) {
	good := rawEvent(2, 0, 300, []byte("BEGIN"), true)
	flipped := bytes.Clone(good)
	flipped[20] ^= 1
	long := rawEvent(2, 0, 300, []byte("BEGIN"), false)
	binary.LittleEndian.PutUint32(long[9:], 1000)
	huge := bytes.Clone(long)
	binary.LittleEndian.PutUint32(huge[9:], 0xffffffff)
	badAlgorithm := formatDescription(true)
	badAlgorithm[len(badAlgorithm)-crcLen-1] = 9
	skipped := packets(ok(good), ok(good))
	skipped[packetHeader+1+len(good)+3] = 7
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"checksum", packets(ok(flipped)), "an event of type 2 whose checksum is wrong"},
		{"length", packets(ok(long)), "says it has 1000 bytes and has 24"},
		{"length beyond all bounds", packets(ok(huge)), "an event of 4294967295 bytes"},
		{"short", packets(ok(good[:10])), "an event of 10 bytes"},
		{"too short for a checksum", packets(ok(rawEvent(3, 0, 0, nil, false))), "an event of 19 bytes"},
		{"empty packet", packets(nil), "an empty packet"},
		{"unknown packet", packets([]byte{0x42}), "begins with 0x42"},
		{"packet order", skipped, "packet 7 where 2 was due"},
		{"format description", packets(ok(badAlgorithm)), "checksum algorithm 9"},
		{"format description cut", packets(ok(rawEvent(typeFormatDescription, 0, 0, []byte("x"), true))), "FORMAT_DESCRIPTION of 24 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := feed(tt.data, 1<<20, true)
			var err error
			for err == nil {
				_, err = s.Next(t.Context())
			}
			if !errors.Is(err, ErrCorrupt) || Transient(err) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "after mysql-bin.000001:") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func serverSays(code uint16, text string) []byte {
	return append(append([]byte{0xff, byte(code), byte(code >> 8)}, "#HY000"...), text...)
}

func TestStreamServerErrors(t *testing.T) {
	tests := []struct {
		code      uint16
		text      string
		kind      error
		transient bool
		advice    string
	}{
		{1236, "Could not find first log file name in binary log index file", ErrPurged, false, "Choices:"},
		{1236, "Cannot replicate because the source purged required binary logs. Replicate the missing transactions from elsewhere", ErrPurged, false, "Choices:"},
		{1236, "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has purged binary logs containing GTIDs that the slave requires.", ErrPurged, false, "Choices:"},
		{1236, "Client requested source to start replication from position > file size", ErrOtherServer, false, "lost the end of its binlog"},
		{1236, "Client requested master to start replication from position > file size", ErrOtherServer, false, "lost the end of its binlog"},
		{1236, "Replica has more GTIDs than the source has, using the source's SERVER_UUID.", ErrOtherServer, false, "lost transactions"},
		{1236, "A replica with the same server_uuid/server_id as this replica has connected to the source; the first event", ErrReplaced, false, "database.server.id 7"},
		{1236, "A slave with the same server_uuid/server_id as this slave has connected to the master", ErrReplaced, false, "database.server.id 7"},
		{4052, "A slave with the same server_uuid/server_id as this slave has connected to the master; its dump thread is killed", ErrReplaced, false, "database.server.id 7"},
		{1236, "Binary log is not open", ErrSetup, false, "--log-bin"},
		{1236, "The replication sender thread cannot start in AUTO_POSITION mode: this server has GTID_MODE = OFF instead of ON.", ErrSetup, false, "gtid_mode=ON"},
		{1236, "I/O error reading log event; the first event '' at 4, the last event read from './mysql-bin.000001' at 1262", ErrAstray, true, "connecting again shows which"},
		{1236, "could not find next log; the first event 'mysql-bin.000002' at 4", ErrAstray, true, "RESET BINARY LOGS AND GTIDS"},
		{1236, "bogus data in log event; the first event 'mysql-bin.000002' at 200", ErrCorrupt, false, "mysqlbinlog"},
		{1236, "binlog truncated in the middle of event; consider out of disk space on source", ErrCorrupt, false, "mysqlbinlog"},
		{1236, "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on source", ErrSetup, false, "max_allowed_packet="},
		{1236, "something new", nil, false, ""},
		{1227, "Access denied; you need (at least one of) the REPLICATION SLAVE privilege(s)", ErrAccess, false, "REPLICATION SLAVE"},
		{1053, "Server shutdown in progress", nil, true, ""},
		{1317, "Query execution was interrupted", nil, true, ""},
	}
	for _, tt := range tests {
		s := feed(packets(serverSays(tt.code, tt.text)), 1<<20, true)
		_, err := s.Next(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), tt.advice) || !strings.Contains(err.Error(), "db.example:3306") {
			t.Errorf("%d %s: got %v", tt.code, tt.text, err)
		}
		if tt.kind != nil && !errors.Is(err, tt.kind) {
			t.Errorf("%d %s: is not %v", tt.code, tt.text, tt.kind)
		}
		if Transient(err) != tt.transient {
			t.Errorf("%d %s: transient is %v", tt.code, tt.text, !tt.transient)
		}
	}
}

// A stream that somebody began at a position of their choice says so when the server refuses it.
func TestStreamErrorSaysWhose(t *testing.T) {
	for origin, want := range map[Origin]string{
		Stored: "or the stored offset is from another server; delete the connector's stored offset (how: README, Starting anew)",
		Given:  "or the start position is from another server; choose another start position",
	} {
		s := feed(packets(serverSays(1236, "Client requested source to start replication from position > file size")), 1<<20, true)
		s.origin = origin
		if _, err := s.Next(t.Context()); !errors.Is(err, ErrOtherServer) || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

func TestStreamEndPacket(t *testing.T) {
	asked := feed(packets([]byte{0xfe, 0, 0, 2, 0}), 1<<20, true)
	asked.toEnd = true
	if _, err := asked.Next(t.Context()); err != io.EOF {
		t.Errorf("asked for: %v", err)
	}
	_, err := feed(packets([]byte{0xfe, 0, 0, 2, 0}), 1<<20, true).Next(t.Context())
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || !Transient(err) {
		t.Fatal(err)
	}
}

// pipe returns a stream over a connection whose other end is in the test's hands.
func pipe(heartbeat time.Duration) (*Stream, net.Conn) {
	ours, theirs := net.Pipe()
	cfg := Config{Host: "db.example", Port: 3306, Heartbeat: heartbeat}
	return newStream(ours, ours, cfg, "MySQL at "+cfg.address(), DumpRequest{From: DumpFrom{File: "mysql-bin.000001", Pos: 4}}, true), theirs
}

func TestStreamSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, theirs := pipe(10 * time.Second)
		defer theirs.Close()
		begin := time.Now()
		_, err := s.Next(t.Context())
		if !errors.Is(err, ErrSilent) || !Transient(err) || time.Since(begin) != 30*time.Second {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
	})
}

// The deadline is not set for each read, but silence counts from the last event on all the same.
func TestStreamSilenceAfterEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, theirs := pipe(10 * time.Second)
		defer theirs.Close()
		ev := rawEvent(2, 0, 300, []byte("BEGIN"), true)
		data := packets(ok(ev), ok(ev), ok(ev))
		go func() {
			for piece := range slices.Chunk(data, len(data)/3) {
				theirs.Write(piece)
				time.Sleep(time.Second)
			}
		}()
		for range 3 {
			if _, err := s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		if _, err := s.Next(t.Context()); !errors.Is(err, ErrSilent) || time.Since(begin) != 30*time.Second {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
	})
}

// counted counts what is to be called at its end and is not any more.
type counted struct {
	context.Context
	done         chan struct{} // of its own, so that nobody goes to Context directly
	set, waiting int
}

func (c *counted) Done() <-chan struct{} { return c.done }

func (c *counted) AfterFunc(f func()) func() bool {
	c.set++
	c.waiting++
	stop := context.AfterFunc(c.Context, f)
	return func() bool {
		c.waiting--
		return stop()
	}
}

// A context is told of the stream once, however often is read, and forgets it when another one comes or the stream ends.
func TestStreamWatchesOnce(t *testing.T) {
	s := newLoop(8 << 10)
	for range 2 {
		c := &counted{Context: t.Context(), done: make(chan struct{})}
		for range 100 {
			if _, err := s.Next(c); err != nil {
				t.Fatal(err)
			}
		}
		if c.set != 1 || c.waiting != 1 {
			t.Fatalf("set %d times, %d are waiting", c.set, c.waiting)
		}
		other := &counted{Context: t.Context(), done: make(chan struct{})}
		for range 100 {
			if _, err := s.Next(other); err != nil {
				t.Fatal(err)
			}
		}
		if c.waiting != 0 || other.waiting != 1 {
			t.Fatalf("%d and %d are waiting", c.waiting, other.waiting)
		}
		if s.Close(); other.waiting != 0 {
			t.Fatal("still waiting after the end")
		}
		s = newLoop(8 << 10)
	}
}

// An event may come as slowly as it likes: only silence counts.
func TestStreamSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, theirs := pipe(time.Second)
		defer theirs.Close()
		ev := rawEvent(2, 0, 300, []byte("BEGIN"), true)
		go func() {
			for _, b := range packets(ok(ev)) {
				time.Sleep(2 * time.Second)
				theirs.Write([]byte{b})
			}
		}()
		got, err := s.Next(t.Context())
		if err != nil || !bytes.Equal(got, ev) {
			t.Fatal(err)
		}
	})
}

// A context that ends loses nothing, wherever in a packet it catches the stream.
func TestStreamContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, theirs := pipe(10 * time.Second)
		defer theirs.Close()
		events := [][]byte{rotate("mysql-bin.000001", 4, true), formatDescription(true), rawEvent(2, 0, 300, []byte("BEGIN"), true)}
		go func() {
			for _, b := range packets(ok(events[0]), ok(events[1]), ok(events[2])) {
				time.Sleep(10 * time.Millisecond)
				theirs.Write([]byte{b})
			}
		}()
		stopped := 0
		for i := 0; i < len(events); {
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
			got, err := s.Next(ctx)
			cancel()
			switch {
			case err == nil && bytes.Equal(got, events[i]):
				i++
			case errors.Is(err, context.DeadlineExceeded):
				stopped++
			default:
				t.Fatalf("event %d: %v", i, err)
			}
		}
		if stopped < 50 {
			t.Errorf("the context ended %d times only", stopped)
		}
	})
}

func TestStreamClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, theirs := pipe(10 * time.Second)
		defer theirs.Close()
		go func() {
			time.Sleep(time.Second)
			s.Close()
		}()
		begin := time.Now()
		_, err := s.Next(t.Context())
		if !errors.Is(err, net.ErrClosed) || time.Since(begin) != time.Second {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// The memory that one big event took is given back.
func TestStreamGivesBack(t *testing.T) {
	payloads := [][]byte{ok(rawEvent(30, 0, 1, make([]byte, 20<<20), true))}
	for range (keepFor + 1) * mostChecked / eventHeader {
		payloads = append(payloads, ok(rawEvent(16, 0, 1, make([]byte, 8), true)))
	}
	s := feed(packets(payloads...), 1<<30, true)
	for i := range payloads {
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == 0 && len(s.buf) < 20<<20 {
			t.Errorf("%d bytes of buffer during the big event", len(s.buf))
		}
	}
	if len(s.buf) != bufferSize {
		t.Errorf("%d bytes of buffer after it", len(s.buf))
	}
}

// loop is a connection that delivers the same packets for ever.
type loop struct {
	pieces
	packet []byte
	at     int
	seq    byte
}

func (l *loop) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		if l.at == 0 {
			l.packet[3] = l.seq
			l.seq++
		}
		m := copy(b[n:], l.packet[l.at:])
		n += m
		l.at = (l.at + m) % len(l.packet)
	}
	return n, nil
}

func newLoop(size int) *Stream {
	conn := &loop{packet: packets(ok(rawEvent(30, 0, 1, make([]byte, size), true))), seq: 1}
	return newStream(conn, conn, Config{Host: "db.example", Heartbeat: time.Second}, "MySQL at db.example:3306", DumpRequest{}, true)
}

func TestStreamAllocations(t *testing.T) {
	for _, size := range []int{10, 8 << 10, 100 << 10} { // up to a read an event
		s := newLoop(size)
		if n := testing.AllocsPerRun(1000, func() {
			if _, err := s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations an event of %d bytes", n, size)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	s := newLoop(8 << 10)
	b.SetBytes(8 << 10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// Whatever a server sends, the stream ends with an error or an event, never with a panic.
func FuzzStream(f *testing.F) {
	f.Add(packets(ok(formatDescription(true)), ok(rotate("mysql-bin.000001", 4, true))), true)
	f.Add(packets(ok(rawEvent(2, 0, 300, []byte("BEGIN"), true))), true)
	f.Add(packets(ok(rawEvent(2, 0, 300, nil, false))), false)
	f.Add(packets(serverSays(1236, "x"), []byte{0xfe}), false)
	f.Add([]byte{0xff, 0xff, 0xff, 1, 0}, true)
	f.Fuzz(func(t *testing.T, data []byte, checksum bool) {
		s := feed(data, 64, checksum)
		for {
			ev, err := s.Next(context.Background())
			if err != nil {
				return
			}
			if len(ev) < eventHeader+s.ChecksumLen() {
				t.Fatalf("an event of %d bytes", len(ev))
			}
		}
	})
}
