package binlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// appendLenenc writes n in the form with a leading byte that 251 and more need, and the shortest below.
func appendLenenc(b []byte, n uint64) []byte {
	switch {
	case n < 251:
		return append(b, byte(n))
	case n < 1<<16:
		return binary.LittleEndian.AppendUint16(append(b, 0xfc), uint16(n))
	case n < 1<<24:
		return append(append(b, 0xfd), binary.LittleEndian.AppendUint32(nil, uint32(n))[:3]...)
	}
	return binary.LittleEndian.AppendUint64(append(b, 0xfe), n)
}

// payloadBody is a TRANSACTION_PAYLOAD event's body.
func payloadBody(compression byte, size int, data []byte) []byte {
	field := func(b []byte, typ byte, n uint64) []byte {
		v := appendLenenc(nil, n)
		return append(append(b, typ, byte(len(v))), v...)
	}
	b := field(nil, 1, uint64(len(data)))
	b = append(b, 2, 1, compression)
	b = field(b, 3, uint64(size))
	return append(append(b, 0), data...)
}

// rawEvents is n events of size bytes each.
func rawEvents(n, size int) []byte {
	var all []byte
	for i := range n {
		raw := make([]byte, size)
		raw[4] = evRowsQuery
		binary.LittleEndian.PutUint32(raw[9:], uint32(size))
		binary.LittleEndian.PutUint32(raw[headerSize:], uint32(i))
		all = append(all, raw...)
	}
	return all
}

func compressed(t testing.TB, data []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	return enc.EncodeAll(data, nil)
}

func TestPayload(t *testing.T) {
	var p payload
	defer p.close()
	for _, size := range []int{headerSize + 4, 300, 3 << 20} { // the last: an event above one step, sizes of 4 bytes
		plain := rawEvents(5, size)
		for _, body := range [][]byte{payloadBody(0, len(plain), compressed(t, plain)), payloadBody(255, len(plain), plain)} {
			if err := p.start(body); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				raw, err := p.next()
				if err != nil || len(raw) != size || raw[headerSize] != byte(i) {
					t.Fatalf("event %d of %d bytes: %d, %v", i, size, len(raw), err)
				}
			}
			if _, err := p.next(); !errors.Is(err, io.EOF) || p.open {
				t.Fatal(err)
			}
		}
	}
}

func TestDamagedPayload(t *testing.T) {
	var p payload
	defer p.close()
	plain := rawEvents(3, 100)
	zipped := compressed(t, plain)
	huge := rawEvents(1, 100)
	binary.LittleEndian.PutUint32(huge[9:], 1<<29)
	for name, body := range map[string][]byte{
		"empty":               {},
		"no end":              {1, 1, 5},
		"unknown compression": payloadBody(7, len(plain), plain),
		"cut off":             payloadBody(0, len(plain), zipped[:len(zipped)/2]),
		"more promised":       payloadBody(0, len(plain)+50, zipped),
		"not zstd":            payloadBody(0, len(plain), plain),
		"a huge event":        payloadBody(0, 1<<29, compressed(t, huge)),
	} {
		err := p.start(body)
		for err == nil {
			_, err = p.next()
		}
		if errors.Is(err, io.EOF) {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestPayloadMemory: memory is one event and the window, not the transaction.
func TestPayloadMemory(t *testing.T) {
	plain := rawEvents(4000, 32<<10) // 125 MiB
	body := payloadBody(0, len(plain), compressed(t, plain))
	plain = nil
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	var p payload
	defer p.close()
	if err := p.start(body); err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		_, err := p.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	runtime.ReadMemStats(&now)
	if got := now.TotalAlloc - before.TotalAlloc; n != 4000 || got > 24<<20 {
		t.Errorf("%d events, %d MiB allocated", n, got>>20)
	}
}

// TestTimeInsideAPayload: without GTIDs the rows of a compressed transaction have the time of the payload event, where
// those of a plain one have their own (as in the golden replay-compressed-file-mode).
func TestTimeInsideAPayload(t *testing.T) {
	const statement, commit = 1700000000, 1700000009 // the builder's time, and another
	inner := newBinlog("")
	inner.events = nil
	inner.query("BEGIN")
	inner.insert("t", 1)
	inner.xid()
	content := bytes.Join(inner.events, nil)
	for _, compress := range []bool{false, true} {
		b := newBinlog("mysql-bin.000001")
		b.previous()
		want := int64(statement)
		if compress {
			want = commit
			b.add(evPayload, 0, payloadBody(255, len(content), content))
			binary.LittleEndian.PutUint32(b.events[len(b.events)-1], commit)
		} else {
			b.query("BEGIN")
			b.insert("t", 1)
			b.xid()
		}
		r, err := newReader(Config{Captured: func(_, _ string) bool { return true }}, b)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := r.Read(t.Context())
		rows, ok := ev.(*Rows)
		if !ok {
			t.Fatal(ev, err)
		}
		if rows.Info.TsMicros != want*1e6 || rows.Base.TsSec != want {
			t.Errorf("compressed %t: %d µs, ts_sec %d, want %d s", compress, rows.Info.TsMicros, rows.Base.TsSec, want)
		}
	}
}
