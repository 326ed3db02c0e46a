package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// network connects by TCP in memory, with latency. A goroutine that waits for it is durably blocked.
type network struct {
	mu        sync.Mutex
	rng       *rand.Rand
	listeners map[string]*listener
	ports     int
	slow      time.Duration // added to the latency of what is written to hosts other than checkers'
}

func newNetwork(rng *rand.Rand) *network {
	return &network{rng: rng, listeners: make(map[string]*listener), ports: 20000}
}

// latency is how long what is written now is on its way.
func (n *network) latency() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Duration(50+n.rng.IntN(1500))*time.Microsecond + n.slow
}

func (n *network) setSlow(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow = d
}

type listener struct {
	n       *network
	address string
	backlog chan *end
	closed  chan struct{}
	once    sync.Once
}

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// Listen is net.Listen. Port 0 is a free one.
func (n *network) Listen(_, at string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if port == "0" {
		n.ports++
		port = fmt.Sprint(n.ports)
	}
	at = net.JoinHostPort(host, port)
	if n.listeners[at] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: syscall.EADDRINUSE}
	}
	l := &listener{n: n, address: at, backlog: make(chan *end, 64), closed: make(chan struct{})}
	n.listeners[at] = l
	return l, nil
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.n.mu.Lock()
		defer l.n.mu.Unlock()
		delete(l.n.listeners, l.address)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.address) }

// dial connects to a listener. direct leaves out latency, for those who only look.
func (n *network) dial(ctx context.Context, at string, direct bool) (*end, error) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: address(at), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	if !direct {
		select {
		case <-time.After(n.latency()):
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(at), Err: ctx.Err()}
		}
	}
	n.mu.Lock()
	l := n.listeners[at]
	n.mu.Unlock()
	if l == nil {
		return nil, refused
	}
	latency := n.latency
	if direct {
		latency = func() time.Duration { return 0 }
	}
	w := &wire{changed: make(chan struct{}), dead: make(chan struct{}), latency: latency, dir: [2]direction{{left: -1}, {left: -1}}}
	client, server := &end{w: w, side: 0, peer: at}, &end{w: w, side: 1, peer: "client"}
	select {
	case l.backlog <- server:
		return client, nil
	case <-l.closed:
		return nil, refused
	}
}

// wire is one connection. Its changed channel is closed, and made anew, with each change.
type wire struct {
	latency func() time.Duration

	mu      sync.Mutex
	changed chan struct{}
	dir     [2]direction // what the client writes, what the server writes
	closed  [2]bool      // by its end
	reset   bool         // nothing more comes through, and both ends know
	dead    chan struct{}
	isDead  bool
}

type direction struct {
	queue []chunk
	size  int
	last  time.Time
	done  bool // nothing more is written: the reader reads to the end, and then that it is the end
	lost  bool // what is written from here on goes nowhere, and nobody hears of it
	left  int  // bytes until the connection breaks; below 0: it does not
	broke func()
}

type chunk struct {
	at   time.Time
	data []byte
}

const window = 256 << 10 // bytes that may be written and not read

// end is one end of a connection.
type end struct {
	w           *wire
	side        int
	peer        string
	read, write time.Time // deadlines
}

var _ net.Conn = (*end)(nil)

func (w *wire) tell() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *wire) die() {
	if !w.isDead {
		w.isDead = true
		close(w.dead)
	}
}

// wait gives up the lock until something changes or the time has come.
func (w *wire) wait(until ...time.Time) {
	changed := w.changed
	w.mu.Unlock()
	defer w.mu.Lock()
	var first time.Time
	for _, t := range until {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if first.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(first))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}

func (e *end) fault(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: address(e.peer), Err: err}
}

func past(deadline time.Time) bool { return !deadline.IsZero() && !deadline.After(time.Now()) }

func (e *end) Read(b []byte) (int, error) {
	w := e.w
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.dir[1-e.side]
	for {
		switch {
		case w.closed[e.side]:
			return 0, e.fault("read", net.ErrClosed)
		case past(e.read):
			return 0, e.fault("read", os.ErrDeadlineExceeded)
		case len(d.queue) > 0 && !d.queue[0].at.After(time.Now()):
			n := copy(b, d.queue[0].data)
			if d.queue[0].data = d.queue[0].data[n:]; len(d.queue[0].data) == 0 {
				d.queue = d.queue[1:]
			}
			d.size -= n
			w.tell()
			return n, nil
		case len(d.queue) > 0:
			w.wait(d.queue[0].at, e.read)
		case w.reset:
			return 0, e.fault("read", os.NewSyscallError("read", syscall.ECONNRESET))
		case d.done:
			return 0, io.EOF
		default:
			w.wait(e.read)
		}
	}
}

func (e *end) Write(b []byte) (int, error) {
	w := e.w
	delay := w.latency()
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.dir[e.side]
	for {
		switch {
		case w.closed[e.side]:
			return 0, e.fault("write", net.ErrClosed)
		case past(e.write):
			return 0, e.fault("write", os.ErrDeadlineExceeded)
		case d.lost && d.size == 0:
			return len(b), nil
		case w.reset:
			return 0, e.fault("write", os.NewSyscallError("write", syscall.ECONNRESET))
		case w.closed[1-e.side] && !d.lost:
			return 0, e.fault("write", os.NewSyscallError("write", syscall.EPIPE))
		case d.size > 0 && d.size+len(b) > window:
			w.wait(e.write)
			continue
		}
		break
	}
	n := len(b)
	if d.left >= 0 && n > d.left {
		n = d.left
	}
	at := time.Now().Add(delay)
	if at.Before(d.last) {
		at = d.last
	}
	d.last = at
	if n > 0 && !d.lost {
		d.queue = append(d.queue, chunk{at, append([]byte(nil), b[:n]...)})
		d.size += n
		w.tell()
	}
	if d.left >= 0 {
		if d.left -= n; n < len(b) {
			w.cut()
			if d.broke != nil {
				d.broke()
			}
			return n, e.fault("write", os.NewSyscallError("write", syscall.ECONNRESET))
		}
	}
	return n, nil
}

// cut breaks the connection: what is on its way still arrives. The lock is held.
func (w *wire) cut() {
	w.reset = true
	w.die()
	w.tell()
}

// abort breaks the connection at once.
func (e *end) abort() {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.w.cut()
}

// breakAfter breaks the connection when n more bytes have come from the server, and then calls then.
func (e *end) breakAfter(n int, then func()) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.w.dir[1].left, e.w.dir[1].broke = n, then
}

// deafen loses what the server writes from here on; silence loses both directions.
func (e *end) deafen() {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.w.dir[1].lost = true
}

func (e *end) silence() {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.w.dir[0].lost, e.w.dir[1].lost = true, true
	e.w.dir[0].queue, e.w.dir[1].queue = nil, nil
	e.w.dir[0].size, e.w.dir[1].size = 0, 0
	e.w.tell()
}

// gone is closed when this end can know that the connection has ended.
func (e *end) gone() <-chan struct{} { return e.w.dead }

func (e *end) Close() error {
	w := e.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed[e.side] {
		return e.fault("close", net.ErrClosed)
	}
	w.closed[e.side] = true
	if !w.dir[e.side].lost || w.closed[1-e.side] || e.side == 1 {
		w.dir[e.side].done = true
		w.die()
	}
	w.tell()
	return nil
}

func (e *end) LocalAddr() net.Addr  { return address("local") }
func (e *end) RemoteAddr() net.Addr { return address(e.peer) }

func (e *end) SetDeadline(t time.Time) error { return e.deadlines(&t, &t) }

func (e *end) SetReadDeadline(t time.Time) error { return e.deadlines(&t, nil) }

func (e *end) SetWriteDeadline(t time.Time) error { return e.deadlines(nil, &t) }

func (e *end) deadlines(read, write *time.Time) error {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if e.w.closed[e.side] {
		return e.fault("set", net.ErrClosed)
	}
	if read != nil {
		e.read = *read
	}
	if write != nil {
		e.write = *write
	}
	e.w.tell()
	return nil
}

var errCrashed = errors.New("the simulated process has crashed")
