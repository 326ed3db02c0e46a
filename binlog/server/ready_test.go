package server

import (
	"bytes"
	"strings"
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

// There gives, with Next for the rest, the same events in the same order, and all that nothing is to be read for but those that are
// of the stream itself.
func TestThere(t *testing.T) {
	for _, checksum := range []bool{true, false} {
		var bodies [][]byte
		all := [][]byte{ok(rotate("mysql-bin.000001", 4, checksum)), ok(formatDescription(checksum))}
		for i := range 50 {
			bodies = append(bodies, bytes.Repeat([]byte{byte(i)}, 4+i*i*i%700), bytes.Repeat([]byte("x"), 4+i/49*3*bufferSize))
			all = append(all, ok(rawEvent(2, 0, 300, bodies[2*i], checksum)), ok(rawEvent(30, 0, 300, bodies[2*i+1], checksum)))
		}
		data := packets(all...)
		for _, step := range []int{1, 100, bufferSize, len(data)} {
			s := feed(data, step, checksum)
			there := 0
			for i := -2; i < len(bodies); i++ {
				ready := s.Ready()
				event := s.There()
				if (event != nil) != (ready && i >= 0 && len(bodies[i]) < bufferSize) {
					t.Fatalf("step %d, event %d: it is there is %v, ready %v", step, i, event != nil, ready)
				}
				if event != nil {
					there++
				} else {
					var err error
					if event, err = s.Next(t.Context()); err != nil {
						t.Fatal(err)
					}
					event = event[:len(event)-s.ChecksumLen()]
				}
				if i >= 0 && !bytes.Equal(event[eventHeader:], bodies[i]) {
					t.Fatalf("step %d, event %d has %d bytes, want %d", step, i, len(event)-eventHeader, len(bodies[i]))
				}
			}
			if step == 1 && there > 0 || step == len(data) && there < len(bodies)-2 {
				t.Errorf("step %d: %d events were there", step, there)
			}
		}
	}
}

// TestI6_There leaves what is wrong to Next.
func TestI6_There(t *testing.T) {
	good := rawEvent(2, 0, 300, []byte("BEGIN"), true)
	flipped := bytes.Clone(good)
	flipped[20] ^= 1
	s := feed(packets(ok(good), ok(flipped), ok(good)), 1<<20, true)
	if _, err := s.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if event := s.There(); event != nil {
			t.Errorf("there is %x", event)
		}
		if _, err := s.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "whose checksum is wrong") {
			t.Errorf("%v", err)
		}
	}
}
