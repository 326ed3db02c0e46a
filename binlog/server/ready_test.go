package server

import (
	"bytes"
	"testing"
)

// Ready is true exactly when Next returns an event without reading.
func TestReady(t *testing.T) {
	data := packets(ok(rotate("mysql-bin.000001", 4, true)), ok(formatDescription(true)), ok(rawEvent(2, 0, 300, []byte("BEGIN"), true)),
		ok(rawEvent(30, 0, 1, bytes.Repeat([]byte("x"), 3*bufferSize), true)), ok(rawEvent(2, 0, 300, []byte("COMMIT"), true)))
	for _, step := range []int{1, 5, 100, 1000, bufferSize, len(data)} {
		s := feed(data, step, true)
		conn := s.conn.(*pieces)
		for events := 0; ; events++ {
			ready, before := s.Ready(), len(conn.data)
			if _, err := s.Next(t.Context()); err != nil {
				if events != 5 {
					t.Fatalf("step %d: %v after %d events", step, err, events)
				}
				break
			}
			if read := len(conn.data) < before; ready == read {
				t.Errorf("step %d, event %d: ready is %v, read is %v", step, events, ready, read)
			}
		}
	}
}
