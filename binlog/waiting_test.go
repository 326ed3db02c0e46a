package binlog

import (
	"context"
	"errors"
	"io"
	"testing"
)

// slowStream is a raw stream of heartbeats that come in portions.
type slowStream struct {
	portions []int // events in each
	read     int   // in all
	waited   func()
}

func (s *slowStream) next(context.Context) ([]byte, int64, error) {
	if len(s.portions) == 0 {
		return nil, 0, io.EOF
	}
	if s.portions[0] == 0 {
		s.waited()
		s.portions = s.portions[1:]
		return s.next(context.Background())
	}
	s.portions[0]--
	s.read++
	return heartbeatEvent(), -1, nil
}

func (s *slowStream) ready() bool  { return len(s.portions) > 0 && s.portions[0] > 0 }
func (s *slowStream) close() error { return nil }

// heartbeatEvent is one without a file, which gives no event.
func heartbeatEvent() []byte {
	raw := make([]byte, headerSize)
	raw[4], raw[9] = evHeartbeat, headerSize
	raw[17] = byte(flagArtificial)
	return raw
}

// What is kept back is called for before each wait, and not before it has been read what is there; and, while there is always more,
// now and then.
func TestBeforeWaiting(t *testing.T) {
	raw := &slowStream{portions: []int{3, 2, 3*longWithout + 1, 1}}
	r, err := newReader(Config{Captured: func(string, string) bool { return false }}, raw)
	if err != nil {
		t.Fatal(err)
	}
	var called []int
	raw.waited = func() {
		if len(called) == 0 || called[len(called)-1] != raw.read {
			t.Errorf("it waits behind event %d, and the calls were behind %v", raw.read, called)
		}
	}
	stop := errors.New("stop")
	r.BeforeWaiting(func(context.Context) error {
		called = append(called, raw.read)
		if raw.read > 3*longWithout+6 {
			return stop
		}
		return nil
	})
	for err == nil {
		_, err = r.Read(t.Context())
	}
	if !errors.Is(err, stop) {
		t.Errorf("ended with %v", err)
	}
	if len(called) < 7 || len(called) > 8 {
		t.Errorf("called behind %v", called)
	}
	before := raw.read
	r.BeforeWaiting(func(context.Context) error { return nil })
	if _, err := r.Read(t.Context()); err != io.EOF || raw.read < before {
		t.Errorf("after the error: %v, and %d events read, which were %d", err, raw.read, before)
	}
}

// readAtOnce is a raw stream that is never waited for.
type readAtOnce struct{ left int }

func (s *readAtOnce) next(context.Context) ([]byte, int64, error) {
	if s.left == 0 {
		return nil, 0, io.EOF
	}
	s.left--
	return heartbeatEvent(), -1, nil
}

func (s *readAtOnce) close() error { return nil }

// Files are not waited for: what is kept back is called for now and then only.
func TestBeforeWaitingForFiles(t *testing.T) {
	r, err := newReader(Config{Captured: func(string, string) bool { return false }}, &readAtOnce{2*longWithout + 5})
	if err != nil {
		t.Fatal(err)
	}
	called := 0
	r.BeforeWaiting(func(context.Context) error { called++; return nil })
	if _, err := r.Read(t.Context()); err != io.EOF || called != 2 {
		t.Errorf("%v, called %d times", err, called)
	}
}

// The same goes for a server's stream: no read of the network but behind a call, and between two reads a call only after long.
func TestBeforeWaitingForAServer(t *testing.T) {
	s := shop{tables: 1, rows: 1, executed: 1, sources: 1, transactions: 3000}
	reads, calls, since, begun := 0, 0, 0, false
	from := &shopServer{shop: &s, packets: s.packets(), read: func() {
		reads++
		if begun && since != 1 {
			t.Errorf("%d calls before read %d", since, reads)
		}
		since = 0
	}}
	r := shopReader{Reader: from.open(t)}
	begun = true
	r.BeforeWaiting(func(context.Context) error {
		calls++
		since++
		return nil
	})
	for range s.transactions {
		if err := r.transaction(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if reads < 20 || calls < 20 || calls > reads {
		t.Errorf("%d calls, %d reads", calls, reads)
	}
}
