package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// switched is a connection whose bytes go elsewhere from a moment on: what is written into sent, what is read from comes.
type switched struct {
	net.Conn
	on    atomic.Bool
	sent  bytes.Buffer
	comes *pieces
	reads int
}

func (s *switched) Write(b []byte) (int, error) {
	if s.on.Load() {
		return s.sent.Write(b)
	}
	return s.Conn.Write(b)
}

func (s *switched) Read(b []byte) (int, error) {
	if s.on.Load() {
		s.reads++
		return s.comes.Read(b)
	}
	return s.Conn.Read(b)
}

// certificate is one that a server may have.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// overTLS returns a stream over TLS between two ends of a connection, and the server's side of it. What the server has to say
// behind the handshake has been read.
func overTLS(t *testing.T, ours, theirs net.Conn, version uint16) (*Stream, *tls.Conn) {
	t.Helper()
	peer := tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{certificate(t)}, DynamicRecordSizingDisabled: true, MaxVersion: version})
	w := &wire{Conn: ours}
	conn := tls.Client(w, &tls.Config{InsecureSkipVerify: true})
	greeted := make(chan error, 1)
	go func() {
		_, err := peer.Write([]byte("hello"))
		greeted <- err
	}()
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if err := <-greeted; err != nil {
		t.Fatal(err)
	}
	s := newStream(conn, w, Config{Host: "db.example", Heartbeat: time.Hour}, "MySQL at db.example:3306", DumpRequest{}, true)
	s.readsAhead(w)
	return s, peer
}

// encrypted returns a stream over TLS, whose server has written each of some texts at once and then ended. They come in
// pieces of at most step bytes.
func encrypted(t *testing.T, step int, version uint16, texts ...[]byte) (*Stream, *switched) {
	t.Helper()
	near, far := net.Pipe()
	ours, theirs := &switched{Conn: near}, &switched{Conn: far}
	s, peer := overTLS(t, ours, theirs, version)
	theirs.on.Store(true)
	for _, text := range texts {
		if _, err := peer.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	ours.comes = &pieces{data: theirs.sent.Bytes(), step: step}
	ours.on.Store(true)
	return s, ours
}

// TestEventsOverTLS come as they are, however they are cut into records and reads.
func TestEventsOverTLS(t *testing.T) {
	var events [][]byte
	for i := range 300 {
		events = append(events, rawEvent(30, 0, uint32(300+i), bytes.Repeat([]byte{byte(i)}, i*i%5000), true))
	}
	events = append(events, rawEvent(30, 0, 900, bytes.Repeat([]byte("x"), 5*bufferSize), true), events[7])
	var payloads [][]byte
	for _, ev := range events {
		payloads = append(payloads, ok(ev))
	}
	data := packets(payloads...)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, step := range []int{1, 3, 1000, tlsRecord + 17, 1 << 20} {
			for _, size := range []int{50, tlsData, tlsRecord, len(data)} { // of what is written at once
				if step < 1000 && size < tlsRecord {
					continue // it takes long
				}
				var texts [][]byte
				for rest := data; len(rest) > 0; rest = rest[min(size, len(rest)):] {
					texts = append(texts, rest[:min(size, len(rest))])
				}
				s, _ := encrypted(t, step, version, texts...)
				for i, want := range events {
					if got, err := s.Next(t.Context()); err != nil || !bytes.Equal(got, want) {
						t.Fatalf("TLS %x, pieces of %d, records of %d, event %d: %v, %d bytes", version, step, size, i, err, len(got))
					}
				}
				if _, err := s.Next(t.Context()); err == nil {
					t.Fatal("no error at the end")
				}
			}
		}
	}
}

// TestManyRecordsAtOnce: a backlog over TLS is read in long reads, and ready for as long as a read is. That what is ready
// does not wait is said by the last read: all is there before it.
func TestManyRecordsAtOnce(t *testing.T) {
	event := rawEvent(30, 0, 300, bytes.Repeat([]byte("x"), 500), true)
	const n = 2000
	payloads := make([][]byte, n)
	for i := range payloads {
		payloads[i] = ok(event)
	}
	data := packets(payloads...)
	s, conn := encrypted(t, 1<<30, tls.VersionTLS13, data)
	waits := 0
	for i := range n {
		ready, before := s.Ready(), conn.reads
		if !ready {
			waits++
		}
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		if ready && conn.reads > before {
			t.Fatalf("event %d is ready and is read from the network", i)
		}
	}
	if most := len(data)/bufferSize + 2; conn.reads > most || waits > 2*most {
		t.Errorf("%d reads and %d waits for %d bytes, want %d and twice as many at most", conn.reads, waits, len(data), most)
	}
}

// TestOnlyWholeRecordsAreReadOn: behind a record nothing is read that may have to be waited for, however much is there: a short one,
// which may be none of data, or a part of one.
func TestOnlyWholeRecordsAreReadOn(t *testing.T) {
	long, short := rawEvent(30, 0, 300, make([]byte, 2*tlsData), true), rawEvent(30, 0, 300, []byte("y"), true)
	for name, c := range map[string]struct {
		events [][]byte
		step   int
	}{
		"a short one":                    {[][]byte{long, short}, 1 << 30},
		"a short one in front of others": {[][]byte{long, short, long}, 1 << 30},
		"a part":                         {[][]byte{long, long}, 3*tlsData + 1000},
	} {
		var texts [][]byte
		for i, ev := range c.events {
			text := packets(ok(ev))
			text[3] = byte(1 + i)
			texts = append(texts, text)
		}
		s, conn := encrypted(t, c.step, tls.VersionTLS13, texts...)
		for i, want := range c.events {
			if got, err := s.Next(t.Context()); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s, event %d: %v", name, i, err)
			}
			if i == 0 && (s.Ready() || conn.reads != 1) {
				t.Errorf("%s: ready is %v after %d reads", name, s.Ready(), conn.reads)
			}
		}
	}
}

// trickle is a connection that is written slowly.
type trickle struct{ net.Conn }

func (c *trickle) Write(b []byte) (int, error) {
	for piece := range slices.Chunk(b, 7) {
		time.Sleep(time.Millisecond)
		if _, err := c.Conn.Write(piece); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// slowly returns a stream over TLS whose server writes a text in records of some size, which come a few bytes at a time. written is
// closed when it has, or cannot any more.
func slowly(t *testing.T, text []byte, size int) (s *Stream, written chan struct{}) {
	t.Helper()
	near, far := net.Pipe()
	s, peer := overTLS(t, near, &trickle{far}, tls.VersionTLS13)
	written = make(chan struct{})
	go func() {
		defer close(written)
		for record := range slices.Chunk(text, size) {
			if _, err := peer.Write(record); err != nil {
				return
			}
		}
	}()
	return s, written
}

// TestContextOverTLS: a context that ends loses nothing, wherever in a record it catches the stream.
func TestContextOverTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := [][]byte{rotate("mysql-bin.000001", 4, true), formatDescription(true)}
		for i := range 20 {
			events = append(events, rawEvent(30, 0, uint32(300+i), bytes.Repeat([]byte{byte(i)}, i*300), true))
		}
		payloads := make([][]byte, len(events))
		for i := range events {
			payloads[i] = ok(events[i])
		}
		s, written := slowly(t, packets(payloads...), 5000)
		stopped := 0
		for i := 0; i < len(events); {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond+time.Microsecond)
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
		<-written
	})
}

// TestCloseOverTLS: a read that waits in the middle of a record ends with the stream.
func TestCloseOverTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, written := slowly(t, packets(ok(rawEvent(30, 0, 300, make([]byte, tlsData), true))), tlsRecord)
		begin := time.Now()
		time.AfterFunc(100*time.Millisecond, func() { s.Close() })
		if _, err := s.Next(t.Context()); !errors.Is(err, net.ErrClosed) || time.Since(begin) != 100*time.Millisecond {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		<-written
	})
}
