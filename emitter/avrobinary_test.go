package emitter

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/tidemark-cdc/tidemark/schema"
)

// TestAppendLong compares with the varints of the standard library, which are Avro's.
func TestAppendLong(t *testing.T) {
	for bit := range 64 {
		for d := int64(-2); d <= 2; d++ {
			for _, v := range []int64{1<<bit + d, -1<<bit + d} {
				got, want := appendLong([]byte("x"), v), binary.AppendVarint([]byte("x"), v)
				if !bytes.Equal(got, want) {
					t.Errorf("%d: got %x, want %x", v, got, want)
				}
			}
		}
	}
}

// TestBinaryTexts has texts and documents of all lengths at which the length itself becomes longer.
func TestBinaryTexts(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 61, 62, 63, 64, 65, 66, 1000, 8189, 8190, 8191, 8192, 8193, 1<<20 - 1, 1 << 20, 1<<20 + 1} {
		text := bytes.Repeat([]byte("s"), n)
		for _, room := range []int{0, 1, n, n + 40} {
			dst := append(make([]byte, 0, 1+room), 'x')
			want := appendBinary([]byte("x"), text)
			if got, ok := appendBinaryASCII(dst, text); !ok || !bytes.Equal(got, want) {
				t.Errorf("text of %d: got %d bytes, %v", n, len(got), ok)
			}
			if n < 2 {
				continue
			}
			document := append([]byte{0x0c, byte(n-2) | 0x80, byte((n-2)>>7) | 0x80, byte((n - 2) >> 14)}, text[2:]...)
			want = appendBinary([]byte("x"), append(append([]byte(`"`), text[2:]...), '"'))
			for before := range 4 {
				if got, ok := appendBinaryJSON(dst, document, &binaryCell{head: uint32(before)}); !ok || !bytes.Equal(got, want) {
					t.Errorf("document of %d behind %d: got %d bytes, %v", n, before, len(got), ok)
				}
			}
		}
		for at := range min(n, 70) {
			for _, c := range []byte{0, 0x1f, 0x7f, 0x80, 0xff} {
				odd := bytes.Clone(text)
				odd[at] = c
				if _, ok := appendBinaryASCII(nil, odd); ok {
					t.Errorf("%x at %d of %d was taken", c, at, n)
				}
			}
			for _, c := range []byte{' ', '"', '\\', '~'} {
				plain := bytes.Clone(text)
				plain[at] = c
				if got, ok := appendBinaryASCII(nil, plain); !ok || !bytes.Equal(got, appendBinary(nil, plain)) {
					t.Errorf("%q at %d of %d: got %x", c, at, n, got)
				}
			}
		}
	}
}

// TestSRIDsAreJavas has the SRIDs that a Java int cannot hold but with a sign.
func TestSRIDsAreJavas(t *testing.T) {
	wkb := []byte{1, 7, 0, 0, 0, 0, 0, 0, 0}
	for _, tt := range []struct {
		srid   int64
		json   string
		binary []byte
	}{
		{schema.NoSRID, `{"wkb":"AQcAAAAAAAAA","srid":null}`, []byte{0}},
		{4326, `{"wkb":"AQcAAAAAAAAA","srid":4326}`, []byte{2, 0xcc, 0x43}},
		{1 << 31, `{"wkb":"AQcAAAAAAAAA","srid":-2147483648}`, []byte{2, 0xff, 0xff, 0xff, 0xff, 0x0f}},
		{1<<32 - 1, `{"wkb":"AQcAAAAAAAAA","srid":-1}`, []byte{2, 1}},
	} {
		v := schema.Value{Kind: schema.Geometry, Int: tt.srid, Bytes: wkb}
		if got, err := appendJSON(nil, &v, -1); err != nil || string(got) != tt.json {
			t.Errorf("got %s, %v, want %s", got, err, tt.json)
		}
		if got, err := appendBinaryValue(nil, &v); err != nil || !bytes.Equal(got, append(appendBinary(nil, wkb), tt.binary...)) {
			t.Errorf("%d: got %x, %v", tt.srid, got, err)
		}
	}
}
