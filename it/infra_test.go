package it

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// TestServersAndWriters shows that what the other tests stand on is what they take it for: a restart of a server, clean or by
// SIGKILL, keeps address, data and topics; and the writers' log, taken while MySQL is restarted under them, is what the server has.
func TestServersAndWriters(t *testing.T) {
	t.Parallel()
	Image(t, "engine")
	m, k := launchMySQL(t, gtidFlags...), broker{}.launch(t)
	m.wait(t)
	k.wait(t)
	admin := k.admin(t)
	defer admin.Close()
	if _, err := admin.CreateTopic(t.Context(), 2, 1, nil, "kept.d.t"); err != nil {
		t.Fatal(err)
	}
	k.Produce(t, "kept.d.t", []byte("k"), []byte("v"))
	work := StartWorkload(t, m, "d", 1, 1000)
	for _, clean := range []bool{true, false} {
		time.Sleep(time.Second)
		m.Stop(t, clean)
		m.Start(t)
		if !clean {
			k.Stop(t, false)
			k.Start(t)
		}
		got := k.Read(t, "kept.")
		if len(got) != 1 || string(got[0].Value) != "v" || time.Since(got[0].Time) > time.Hour {
			t.Errorf("after a restart (clean %v) the topic holds %v", clean, got)
		}
	}
	changes := work.Stop(t)
	final := work.Final(t)
	if b := m.Binlog(t); len(b.files) != 3 {
		t.Errorf("binlog files listed: %v, want 3", b.files)
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return int(a.Version - b.Version) })
	for _, table := range WorkloadTables("d") {
		state := map[Row]Row{}
		for i, c := range changes {
			if c.Table != table.Name {
				continue
			}
			if was, is := table.keyOf(c.Before), table.keyOf(c.After); was != "" {
				if state[was] != c.Before {
					t.Fatalf("change %d of %s: before is %v, but the change before it left %v", i, table.Name, c.Before, state[was])
				}
				if was != is {
					delete(state, was)
				}
			}
			if c.After != "" {
				state[table.keyOf(c.After)] = c.After
			}
		}
		for _, r := range final[table.Name] {
			if got := state[table.keyOf(r)]; got != r {
				t.Errorf("%s: the log ends in %v, the server in %v", table.Name, got, r)
			}
			delete(state, table.keyOf(r))
		}
		if len(state) > 0 {
			t.Errorf("%s: the log has %d rows more than the server", table.Name, len(state))
		}
	}
	t.Logf("%d changes in the log are what the server has", len(changes))
}

// TestProxy shows what the proxy does to a connection.
func TestProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // an echo server
			}()
		}
	}()
	p := NewProxy(t, l.Addr().String())
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	echo := func(c net.Conn, wait time.Duration) error {
		if _, err := c.Write([]byte("hello")); err != nil {
			return err
		}
		_ = c.SetReadDeadline(time.Now().Add(wait))
		b := make([]byte, 5)
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		if string(b) != "hello" {
			return fmt.Errorf("read %q", b)
		}
		return nil
	}
	a, b := dial(), dial()
	for _, c := range []net.Conn{a, b} {
		if err := echo(c, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.Cut(); n != 2 {
		t.Errorf("%d connections cut, want 2", n)
	}
	if err := echo(a, time.Second); err == nil {
		t.Error("a cut connection still works")
	}

	c := dial()
	for _, held := range [][2]bool{{true, false}, {false, true}} {
		p.Hold(held[0], held[1])
		if err := echo(c, 200*time.Millisecond); err == nil {
			t.Errorf("an answer came while %v was held", held)
		}
		p.Hold(false, false)
		late := make([]byte, 5)
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := io.ReadFull(c, late); err != nil || string(late) != "hello" {
			t.Errorf("after the hold: %q, %v", late, err)
		}
	}

	asks, met := dial(), p.HoldAtRequest(26)
	requests := []byte("\x00\x00\x00\x03\x00\x01-\x00\x00\x00\x03\x00\x1a-") // of the keys 1 and 26
	for i, b := range [][]byte{requests[:7], requests[7:]} {
		if _, err := asks.Write(b); err != nil {
			t.Fatal(err)
		}
		_ = asks.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := io.ReadFull(asks, make([]byte, 7)); (err == nil) != (i == 0) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	<-met
	p.Hold(false, false)
	_ = asks.SetReadDeadline(time.Now().Add(time.Second))
	got := make([]byte, 7)
	if _, err := io.ReadFull(asks, got); err != nil || string(got) != string(requests[7:]) {
		t.Errorf("after the hold: %q, %v", got, err)
	}

	p.Throttle(64 << 10)
	begun := time.Now()
	sent := bytes.Repeat([]byte("x"), 32<<10)
	go func() { _, _ = c.Write(sent) }()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.ReadFull(c, make([]byte, len(sent))); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 300*time.Millisecond {
		t.Errorf("32 KiB at 64 KiB a second took %v", took)
	}
	p.Throttle(0)

	p.Refuse(true)
	if c, err := net.DialTimeout("tcp", p.Addr(), time.Second); err == nil { // it may be closed before the dial is through
		if err := echo(c, time.Second); err == nil {
			t.Error("a refused connection works")
		}
		c.Close()
	}
	p.Refuse(false)
	if err := echo(dial(), time.Second); err != nil {
		t.Errorf("after the refusal: %v", err)
	}
}
