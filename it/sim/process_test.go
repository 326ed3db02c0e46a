package sim

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"time"
)

// Points at which a process can be made to crash.
const (
	pointRead         = "after an event was read"
	pointEncode       = "after an event was encoded"
	pointHandOver     = "before records are handed over"
	pointProduced     = "after a produce request was delivered"
	pointSomeAcks     = "after some acknowledgements"
	pointAllAcks      = "after all acknowledgements"
	pointBeforeOffset = "before the offset is written"
	pointBetween      = "between side record and offset"
	pointTorn         = "while the offset file is written"
	pointSynced       = "between the offset file's sync and its rename"
	pointRenamed      = "between the offset file's rename and the sync of its folder"
	pointAfterOffset  = "after the offset was written"
	pointLoaded       = "after the offset was loaded"
	pointOpened       = "after the stream was opened"
	pointBeforeSchema = "before a definition is stored"
	pointAfterSchema  = "between a stored definition and its rows"
)

// points are those of a mode and store.
func points(m mode, store storeKind) []string {
	all := []string{
		pointRead, pointEncode, pointHandOver, pointProduced, pointSomeAcks, pointAllAcks, pointBeforeOffset, pointAfterOffset,
		pointLoaded, pointOpened, pointBeforeSchema, pointAfterSchema,
	}
	if m == exactlyOnce {
		return append(all, pointEndSent, pointEndKnown)
	}
	if store == inFile {
		return append(all, pointTorn, pointSynced, pointRenamed)
	}
	return append(all, pointBetween)
}

// process is one life of the product. After a crash nothing of it reaches the world any more.
type process struct {
	s      *simulation
	number int
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when its goroutines have ended
	err    error         // then

	mu      sync.Mutex
	dead    bool
	diedAt  time.Time
	frozen  chan struct{} // closed when it thaws; nil: it is not frozen
	links   map[*link]bool
	waiting int // produce requests of change events without an answer
	answers int // of produce requests to the offsets topic, since the last Save began
}

// pass waits while the process is frozen; it is an error when it is dead.
func (p *process) pass() error {
	for {
		p.mu.Lock()
		dead, frozen := p.dead, p.frozen
		p.mu.Unlock()
		switch {
		case dead:
			return errCrashed
		case frozen == nil:
			return nil
		}
		<-frozen
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// at is called at each crash point, and crashes if that is wanted.
func (p *process) at(point string) error {
	if err := p.pass(); err != nil {
		return err
	}
	if p.s.trap.trips(p, point) {
		p.crash()
		return errCrashed
	}
	return nil
}

// armed says whether the next at of a point crashes.
func (p *process) armed(point string) bool { return p.s.trap.armed(point) }

// crash ends the process as kill -9 or a power cut does.
func (p *process) crash() {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	p.dead, p.diedAt = true, time.Now()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
	links := p.links
	p.links = nil
	p.mu.Unlock()
	p.s.disk.lose(p, p.s.coin())
	for l := range links {
		l.end.Close()
	}
	p.cancel(errCrashed)
	p.s.crashed(p)
}

// freeze stops everything that the process does with the world until the returned function is called.
func (p *process) freeze() (thaw func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead || p.frozen != nil {
		return func() {}
	}
	frozen := make(chan struct{})
	p.frozen = frozen
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.frozen == frozen {
			p.frozen = nil
			close(frozen)
		}
	}
}

// What a connection is for.
const (
	forMySQL   = "MySQL"
	forData    = "change events"
	forOffsets = "offsets"
	forLock    = "the lock"
)

// dial gives the process a connection.
func (p *process) dial(purpose string) func(ctx context.Context, network, at string) (net.Conn, error) {
	return func(ctx context.Context, _, at string) (net.Conn, error) {
		if p.pass() != nil {
			// What is left of a process that has crashed is not to go round and round.
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(at), Err: errRefused}
		}
		if p.s.kafka.isDown(at) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(at), Err: errRefused}
		}
		e, err := p.s.net.dial(ctx, at, false)
		if err != nil {
			return nil, err
		}
		l := &link{end: e, p: p, purpose: purpose, keys: make(map[int32]int16)}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.dead {
			e.Close()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(at), Err: errRefused}
		}
		p.links[l] = true
		return l, nil
	}
}

// connections are those for a purpose.
func (p *process) connections(purpose string) (list []*link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.purpose == purpose {
			list = append(list, l)
		}
	}
	return list
}

// link is a connection of a process.
type link struct {
	*end
	p       *process
	purpose string

	mu                sync.Mutex
	requests, replies frames
	keys              map[int32]int16 // by correlation id: requests without an answer
	held              [][]byte        // was written while the process was frozen
}

const keyProduce = 0

func (l *link) Close() error {
	l.p.mu.Lock()
	delete(l.p.links, l)
	if l.purpose == forData {
		l.mu.Lock()
		for _, key := range l.keys {
			if key == keyProduce {
				l.p.waiting--
			}
		}
		l.keys = nil
		l.mu.Unlock()
	}
	l.p.mu.Unlock()
	return l.end.Close()
}

func (l *link) Write(b []byte) (int, error) {
	if l.hold(b) {
		return len(b), nil
	}
	if err := l.p.pass(); err != nil {
		return 0, l.fault("write", net.ErrClosed)
	}
	return l.write(b)
}

// hold keeps what a frozen process writes to Kafka until it thaws. Its goroutines are not kept inside Write, for they may have a lock
// there, and while another one waits for that, the time of the bubble stands still.
func (l *link) hold(b []byte) bool {
	l.p.mu.Lock()
	frozen := l.p.frozen != nil
	l.p.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !frozen && len(l.held) == 0 || l.purpose == forMySQL {
		return false
	}
	if l.held = append(l.held, slices.Clone(b)); len(l.held) == 1 {
		go l.release()
	}
	return true
}

// release writes what is held when the process thaws.
func (l *link) release() {
	for left := true; left; {
		err := l.p.pass()
		l.mu.Lock()
		b := l.held[0]
		l.mu.Unlock()
		if err == nil {
			_, err = l.write(b)
		}
		l.mu.Lock()
		if l.held = l.held[1:]; err != nil {
			l.held = nil
			l.end.abort()
		}
		left = len(l.held) > 0
		l.mu.Unlock()
	}
}

func (l *link) write(b []byte) (int, error) {
	if l.purpose == forMySQL {
		return l.end.Write(b)
	}
	var begun []int16
	l.mu.Lock()
	l.requests.feed(b, 12, func(head []byte) {
		key := int16(binary.BigEndian.Uint16(head[4:]))
		begun = append(begun, key)
		if l.keys != nil {
			l.keys[int32(binary.BigEndian.Uint32(head[8:]))] = key
		}
	})
	l.mu.Unlock()
	produces := false
	for _, key := range begun {
		produces = produces || key == keyProduce
		switch l.p.s.kafka.cutAt(l.purpose, key) {
		case cutBefore:
			l.end.abort()
			return 0, l.fault("write", errReset)
		case cutAmid:
			n, _ := l.end.Write(b[:len(b)/2])
			l.end.abort()
			return n, l.fault("write", errReset)
		case cutAfter:
			l.end.deafen()
			n, err := l.end.Write(b)
			time.AfterFunc(20*time.Millisecond, l.end.abort)
			return n, err
		}
	}
	if produces && l.purpose == forData {
		l.p.mu.Lock()
		l.p.waiting++
		l.p.mu.Unlock()
	}
	n, err := l.end.Write(b)
	if err == nil && produces && l.purpose == forData {
		if l.p.at(pointProduced) != nil {
			return n, l.fault("write", net.ErrClosed)
		}
	}
	if err == nil && slices.Contains(begun, keyEndTxn) && l.p.at(pointEndSent) != nil {
		return n, l.fault("write", net.ErrClosed)
	}
	return n, err
}

func (l *link) Read(b []byte) (int, error) {
	n, err := l.end.Read(b)
	if l.p.pass() != nil {
		return 0, l.fault("read", net.ErrClosed)
	}
	if l.purpose == forMySQL || n == 0 {
		return n, err
	}
	produced, ended := 0, false
	l.mu.Lock()
	l.replies.feed(b[:n], 8, func(head []byte) {
		id := int32(binary.BigEndian.Uint32(head[4:]))
		if key, ok := l.keys[id]; ok && key == keyProduce {
			produced++
		} else if ok && key == keyEndTxn {
			ended = true
		}
		delete(l.keys, id)
	})
	l.mu.Unlock()
	if ended && l.p.at(pointEndKnown) != nil {
		return 0, l.fault("read", net.ErrClosed)
	}
	for range produced {
		if l.answered() != nil {
			return 0, l.fault("read", net.ErrClosed)
		}
	}
	return n, err
}

// answered hears of an answer to a produce request.
func (l *link) answered() error {
	switch l.purpose {
	case forData:
		l.p.mu.Lock()
		l.p.waiting--
		point := pointAllAcks
		if l.p.waiting > 0 {
			point = pointSomeAcks
		}
		l.p.mu.Unlock()
		return l.p.at(point)
	case forOffsets:
		l.p.mu.Lock()
		l.p.answers++
		first := l.p.answers == 1
		l.p.mu.Unlock()
		if first {
			return l.p.at(pointBetween)
		}
	}
	return nil
}

// frames follows Kafka's requests or answers in a stream of bytes.
type frames struct {
	head []byte
	skip int
}

// feed calls begun with the first bytes of each frame that begins in b, size included.
func (f *frames) feed(b []byte, first int, begun func(head []byte)) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip -= n
			b = b[n:]
			continue
		}
		n := min(first-len(f.head), len(b))
		f.head = append(f.head, b[:n]...)
		b = b[n:]
		if len(f.head) == first {
			begun(f.head)
			f.skip = 4 + int(binary.BigEndian.Uint32(f.head)) - first
			f.head = f.head[:0]
		}
	}
}
