package it

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a TCP proxy in front of a server. A test cuts, holds or slows down what goes through it while the client keeps one
// address. All methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string

	mu sync.Mutex
	// change is closed and replaced whenever one of the fields below changes, to wake what waits for it.
	change   chan struct{}
	pairs    map[*pair]struct{}
	refuse   bool
	holdUp   bool
	holdDown bool
	rate     int // bytes a second and connection from client to server; 0: no limit
	closed   bool
	ambush   *ambush // nil: none

	wg sync.WaitGroup
}

type pair struct{ client, server net.Conn }

// NewProxy starts a proxy on a free port of 127.0.0.1 that forwards to target ("host:port"). The target may be set later, by
// [Proxy.SetTarget]. It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("proxy: %v", err)
	}
	p := &Proxy{listener: l, target: target, change: make(chan struct{}), pairs: map[*pair]struct{}{}}
	p.wg.Add(1)
	go p.accept()
	t.Cleanup(p.close)
	return p
}

// Addr is the address that clients use.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Port is the port of Addr.
func (p *Proxy) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// SetTarget changes where new connections go.
func (p *Proxy) SetTarget(target string) { p.set(func() { p.target = target }) }

// Cut ends all connections at once with a reset, in the middle of whatever they carry. It returns how many there were.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.pairs)
	for c := range p.pairs {
		c.reset()
	}
	return n
}

// Refuse makes the proxy end new connections at once (true) or serve them again (false). Open ones stay.
func (p *Proxy) Refuse(on bool) { p.set(func() { p.refuse = on }) }

// Hold stops forwarding from the client to the server (up), from the server to the client (down) or both, and leaves the
// connections open: what a dead peer behind a firewall looks like. What is held is forwarded after Hold(false, false).
func (p *Proxy) Hold(up, down bool) { p.set(func() { p.holdUp, p.holdDown = up, down }) }

// Throttle limits what each connection carries from the client to the server to so many bytes a second; 0 is no limit.
func (p *Proxy) Throttle(bytesPerSecond int) { p.set(func() { p.rate = bytesPerSecond }) }

// ambush waits for a request of Kafka's protocol, once.
type ambush struct {
	key       int16
	delivered bool
	hold      bool          // instead of cutting
	met       chan struct{} // closed when it has come
}

// CutAtRequest cuts the connection that the next request with this API key comes over: when the server has got all of it and before
// the client gets the answer, or, not delivered, before the server has got it. What it returns is closed then.
func (p *Proxy) CutAtRequest(key int16, delivered bool) <-chan struct{} {
	a := &ambush{key: key, delivered: delivered, met: make(chan struct{})}
	p.set(func() { p.ambush = a })
	return a.met
}

// HoldAtRequest holds all that clients send, as [Proxy.Hold] does, from the next request with this API key of Kafka's on, before the
// server has got any of that. What it returns is closed then.
func (p *Proxy) HoldAtRequest(key int16) <-chan struct{} {
	a := &ambush{key: key, hold: true, met: make(chan struct{})}
	p.set(func() { p.ambush = a })
	return a.met
}

// requests follows the requests of a connection: each is its length in four bytes, then its key in two.
type requests struct {
	head [6]byte
	have int // bytes of head
	left int // of the request behind head
}

// find goes on through what the client has sent, and says behind how many bytes of it the ambush is to cut; -1: not yet.
func (r *requests) find(b []byte, a *ambush) int {
	for at := 0; at < len(b); {
		if r.have < len(r.head) {
			n := copy(r.head[r.have:], b[at:])
			r.have += n
			at += n
			r.left = int(binary.BigEndian.Uint32(r.head[:])) - 2
			if r.have == len(r.head) && r.is(a) && !a.delivered {
				return at
			}
			continue
		}
		n := min(max(r.left, 0), len(b)-at)
		r.left -= n
		at += n
		if r.left <= 0 {
			r.have = 0
			if r.is(a) && a.delivered {
				return at
			}
		}
	}
	return -1
}

func (r *requests) is(a *ambush) bool {
	return a != nil && int16(binary.BigEndian.Uint16(r.head[4:])) == a.key
}

// trap is the ambush that lies in wait.
func (p *Proxy) trap() *ambush {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ambush
}

// take takes an ambush away, which only one connection does.
func (p *Proxy) take(a *ambush) (mine bool) {
	p.set(func() {
		if mine = p.ambush == a; mine {
			p.ambush = nil
			p.holdUp = p.holdUp || a.hold
		}
	})
	return mine
}

// spring cuts a connection in an ambush.
func (p *Proxy) spring(a *ambush, client, server net.Conn) {
	mine := p.take(a)
	if tcp, ok := client.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	client.Close()
	time.Sleep(100 * time.Millisecond) // a reset would overtake what was written
	server.Close()
	if mine {
		close(a.met)
	}
}

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.change)
	p.change = make(chan struct{})
}

func (p *Proxy) close() {
	p.set(func() { p.closed = true })
	p.listener.Close()
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	defer p.wg.Done()
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Add(1)
		go p.serve(client)
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer p.wg.Done()
	p.mu.Lock()
	target, refuse := p.target, p.refuse || p.closed
	p.mu.Unlock()
	c := &pair{client: client}
	if refuse || target == "" {
		c.reset()
		return
	}
	server, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		c.reset()
		return
	}
	c.server = server
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		c.reset()
		return
	}
	p.pairs[c] = struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.forward(server, client, true) })
	both.Go(func() { p.forward(client, server, false) })
	both.Wait()
	p.mu.Lock()
	delete(p.pairs, c)
	p.mu.Unlock()
	c.reset()
}

// forward copies one direction until an end is gone, then closes the write side of the other, so that a clean end stays one.
func (p *Proxy) forward(dst, src net.Conn, up bool) {
	buf := make([]byte, 16<<10)
	var sent requests
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if !p.pass(n, up) {
				return
			}
			if a := p.trap(); up {
				switch at := sent.find(buf[:n], a); {
				case at >= 0 && a.hold:
					sent.find(buf[at:n], nil) // the rest
					if p.take(a) {
						close(a.met)
					}
					if !p.pass(0, up) {
						return
					}
				case at >= 0:
					_, _ = dst.Write(buf[:at])
					p.spring(a, src, dst)
					return
				}
			}
			if _, err := dst.Write(buf[:n]); err != nil {
				src.Close()
				return
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				if c, ok := dst.(*net.TCPConn); ok {
					_ = c.CloseWrite()
					return
				}
			}
			dst.Close()
			return
		}
	}
}

// pass blocks while this direction is held and sleeps for the rate; false when the proxy is closed.
func (p *Proxy) pass(n int, up bool) bool {
	for {
		p.mu.Lock()
		held, rate, closed, change := p.holdDown, 0, p.closed, p.change
		if up {
			held, rate = p.holdUp, p.rate
		}
		p.mu.Unlock()
		if closed {
			return false
		}
		if held {
			<-change
			continue
		}
		if rate > 0 {
			select {
			case <-time.After(time.Duration(n) * time.Second / time.Duration(rate)):
			case <-change:
				// The limit may be gone: these bytes may go at once.
			}
		}
		return true
	}
}

func (c *pair) reset() {
	for _, conn := range []net.Conn{c.client, c.server} {
		if tcp, ok := conn.(*net.TCPConn); ok && tcp != nil {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		}
	}
}
