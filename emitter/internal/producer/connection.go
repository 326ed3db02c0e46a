package producer

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

const (
	// overhead is how much longer than for its replicas a broker may take for its answer.
	overhead = 10 * time.Second
	// mostAnswer bounds an answer to a produce request, in bytes.
	mostAnswer = 64 << 20
	// tellAgain is how long nothing more is said of a broker's misbehaviour.
	tellAgain = 30 * time.Second
	// firstOfBatches is the first version of produce requests that take the record batches of today.
	firstOfBatches = 3
)

var (
	errNotConnected = errors.New("the connection has ended")
	errMoved        = errors.New("the broker has another address now")
)

// misbehaviour is why a connection ends whose broker is there, which nobody else would say.
type misbehaviour struct{ error }

func (m misbehaviour) Unwrap() error { return m.error }

// connection is one to a broker. Requests are written by who holds the broker's lock, and answered in their order.
type connection struct {
	b       *broker
	conn    net.Conn
	address string
	version int16 // of produce requests, the highest
	made    *kclient.Connection
	limit   time.Duration // for an answer
	idle    time.Duration // without any request, after which it ends
	next    int32         // number of the next request
	unwatch []func() bool

	mu    sync.Mutex
	sent  []exchange // not answered, in order
	err   error      // why it has ended
	watch *time.Timer
	used  time.Time
}

// exchange is a request that waits for its answer.
type exchange struct {
	number int32
	taken  []sending
	answer kmsg.Response
	at     time.Time
	done   func(error) // hears of the answer, or why there is none, if nothing is taken
}

// connected makes a connection the broker's. The caller holds the producer's lock, so that an end of it is not missed.
func (b *broker) connected(made *kclient.Connection, address string) *connection {
	client := b.p.cfg.Client
	c := &connection{
		b: b, conn: made.Conn, address: address, version: made.Produce, made: made, limit: client.Timeout + overhead, idle: client.Idle, used: time.Now(),
	}
	b.conn = c
	end := func() { // read hears of it
		c.mu.Lock()
		if len(c.sent) > 0 {
			c.discard()
		}
		c.mu.Unlock()
		_ = c.conn.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unwatch = []func() bool{context.AfterFunc(b.p.ctx, end), context.AfterFunc(b.p.client.Context(), end)}
	c.watch = time.AfterFunc(min(c.idle, c.limit), c.look)
	return c
}

// send writes a request. An error says that nothing has become of it; else its batches are or will be answered.
func (c *connection) send(taken []sending, w *workspace) error {
	p := c.b.p
	req := newRequest(taken, int32(p.cfg.Client.Timeout.Milliseconds()))
	version := min(c.version, req.most)
	if version < firstOfBatches {
		return fmt.Errorf("the broker takes produce requests up to version %d, and version %d is needed, which Kafka has since 0.11: %w",
			c.version, firstOfBatches, kerr.UnsupportedVersion)
	}
	if t := p.transactions; t != nil {
		version = t.prepare(req, version)
	}
	req.SetVersion(version)
	number := c.next
	c.next++
	buffers := c.gather(req, number, w)
	return c.write(exchange{number: number, taken: taken, answer: req.ResponseKind()}, buffers)
}

// write writes a request. An error says that nothing has become of it.
func (c *connection) write(e exchange, buffers net.Buffers) error {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return c.err
	}
	e.at = time.Now()
	c.sent = append(c.sent, e)
	c.used = e.at
	c.mu.Unlock()
	if _, err := buffers.WriteTo(c.conn); err != nil {
		c.end(err)
	}
	return nil
}

// gather makes what is written of a request: pieces of memory that the system collects, or one for connections that would be
// called for each.
func (c *connection) gather(req *request, number int32, w *workspace) net.Buffers {
	w.buffers, w.frame = req.gather(w.buffers[:0], c.b.p.formatter, w.frame[:0], number)
	if _, ok := c.conn.(*net.TCPConn); ok {
		return w.buffers
	}
	size := 0
	for _, p := range w.buffers {
		size += len(p)
	}
	w.whole = slices.Grow(w.whole[:0], size)
	for _, p := range w.buffers {
		w.whole = append(w.whole, p...)
	}
	w.buffers = append(w.buffers[:0], w.whole)
	return w.buffers
}

// look ends the connection when an answer has taken too long, or nothing was sent for long, and else looks again when that may be.
func (c *connection) look() {
	c.mu.Lock()
	err, left := errNotConnected, c.idle-time.Since(c.used)
	if len(c.sent) > 0 {
		err, left = misbehaviour{fmt.Errorf("no answer within %s: %w", c.limit, os.ErrDeadlineExceeded)}, c.limit-time.Since(c.sent[0].at)
	}
	goesOn := left > 0 && c.err == nil
	if goesOn {
		c.watch.Reset(min(left, c.limit)) // what is sent meanwhile is not late before
	}
	c.mu.Unlock()
	if !goesOn {
		c.end(err)
	}
}

// end ends the connection and gives back what is not answered.
func (c *connection) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	sent := c.sent
	c.sent = nil
	c.watch.Stop()
	c.mu.Unlock()
	p := c.b.p
	_, tell := errors.AsType[misbehaviour](err)
	p.mu.Lock()
	c.b.conn = nil // which is c: there is no other before it has ended
	if now := time.Now(); tell && now.Sub(c.b.told) >= tellAgain {
		c.b.told = now
	} else {
		tell = false
	}
	if t := p.transactions; t != nil {
		t.suspect()
	}
	p.mu.Unlock()
	if tell {
		p.cfg.Client.Misbehaves(c.address, err)
	}
	for _, e := range sent {
		if e.done != nil {
			e.done(err)
		} else {
			p.answered(c.b, e.taken, nil, err)
		}
	}
	if len(sent) > 0 {
		c.discard()
	}
	_ = c.conn.Close() // with TLS it says so, which may take a while
	for _, stop := range c.unwatch {
		stop()
	}
}

// discard has what the system has not sent yet not be sent any more: it would be after the producer has ended, and could arrive
// behind what the next one writes.
func (c *connection) discard() {
	conn := c.conn
	if tls, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = tls.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// read takes the answers until the connection ends.
func (c *connection) read() {
	r := bufio.NewReaderSize(c.conn, 4<<10)
	var body []byte
	for {
		var err error
		if body, err = readAnswer(r, body[:0]); err == nil {
			if err = c.answered(body); err != nil {
				err = misbehaviour{err}
			}
		}
		if err != nil {
			c.end(err)
			return
		}
		if cap(body) > mostRoom {
			body = nil
		}
	}
}

// readAnswer reads an answer without its length.
func readAnswer(r *bufio.Reader, room []byte) ([]byte, error) {
	head, err := r.Peek(4)
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head)
	if _, err := r.Discard(4); err != nil {
		return nil, err
	}
	if size < 4 || size > mostAnswer {
		return nil, misbehaviour{fmt.Errorf("an answer of %d bytes is none of Kafka", size)}
	}
	room = slices.Grow(room, int(size))[:size]
	if _, err := io.ReadFull(r, room); err != nil {
		return nil, err
	}
	return room, nil
}

// answered deals with an answer. An error says that nothing more can be understood.
func (c *connection) answered(body []byte) error {
	c.mu.Lock()
	if len(c.sent) == 0 {
		c.mu.Unlock()
		return errors.New("the broker has sent an answer to nothing")
	}
	e := c.sent[0]
	c.mu.Unlock()
	if number := int32(binary.BigEndian.Uint32(body)); number != e.number {
		return fmt.Errorf("the broker has answered request %d, and request %d was next", number, e.number)
	}
	from := kbin.Reader{Src: body[4:]}
	if e.answer.IsFlexible() {
		kmsg.SkipTags(&from) // of the header
	}
	err := from.Complete()
	if err == nil {
		err = e.answer.ReadFrom(from.Src)
	}
	if err != nil {
		return fmt.Errorf("the broker's answer cannot be read: %w", err)
	}
	c.mu.Lock()
	if len(c.sent) == 0 { // it has ended meanwhile
		c.mu.Unlock()
		return nil
	}
	c.sent = slices.Delete(c.sent, 0, 1)
	c.mu.Unlock()
	if e.done != nil {
		e.done(nil)
	} else {
		c.b.p.answered(c.b, e.taken, e.answer.(*kmsg.ProduceResponse), nil)
	}
	return nil
}
