package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
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

// encrypted returns a stream over TLS, whose server has written each of some texts at once and then ended. They come in
// pieces of at most step bytes.
func encrypted(t *testing.T, step int, version uint16, texts ...[]byte) (*Stream, *switched) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	ours, theirs := &switched{Conn: near}, &switched{Conn: far}
	peer := tls.Server(theirs, &tls.Config{
		Certificates:                []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		DynamicRecordSizingDisabled: true, MaxVersion: version,
	})
	w := &wire{Conn: ours}
	conn := tls.Client(w, &tls.Config{InsecureSkipVerify: true})
	greeted := make(chan error, 1)
	go func() {
		_, err := peer.Write([]byte("hello")) // and with it what the server has to say behind the handshake
		greeted <- err
	}()
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if err := <-greeted; err != nil {
		t.Fatal(err)
	}
	theirs.on.Store(true)
	for _, text := range texts {
		if _, err := peer.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	ours.comes = &pieces{data: theirs.sent.Bytes(), step: step}
	ours.on.Store(true)
	s := newStream(conn, w, Config{Host: "db.example", Heartbeat: time.Hour}, "MySQL at db.example:3306", DumpRequest{}, true)
	s.readsAhead(w)
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

// TestSmallRecordIsNotWaitedFor: behind a short record, which may be none of data, nothing is read on.
func TestSmallRecordIsNotWaitedFor(t *testing.T) {
	first := packets(ok(rawEvent(30, 0, 300, bytes.Repeat([]byte("x"), tlsData), true)))
	second := append([]byte{}, packets(ok(rawEvent(30, 0, 300, []byte("y"), true)))...)
	second[3] = 2
	s, _ := encrypted(t, 1<<30, tls.VersionTLS13, first, second)
	if _, err := s.Next(t.Context()); err != nil || s.Ready() {
		t.Errorf("%v, ready is %v", err, s.Ready())
	}
	if _, err := s.Next(t.Context()); err != nil {
		t.Error(err)
	}
}
