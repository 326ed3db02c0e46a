package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

const (
	// bufferSize is what is read from the network at most at a time.
	bufferSize = 128 << 10
	// bufferKeep is the size from which on a buffer that one big event needed is given back.
	bufferKeep = 1 << 20
	// keepFor is how many small events, or runs of them, have to follow a big one before its buffer is given back.
	keepFor = 32
	// maxEvent is the most that a server's max_allowed_packet, and so an event, can be, with its headers.
	maxEvent = 1<<30 + 1<<20

	// mostMoved is up to what size the beginning of an event is moved to the front of the buffer before more is read.
	mostMoved = 4 << 10

	packetHeader = 4
	maxPacket    = 1<<24 - 1 // bytes after which an event continues in a further packet

	eventHeader = 19
	crcLen      = 4

	typeRotate            = 4
	typeFormatDescription = 15
	typeHeartbeat         = 27
	typeHeartbeatV2       = 41

	flagInUse      = 0x0001 // of a FORMAT_DESCRIPTION; the checksum is made without it
	flagArtificial = 0x0020 // made up by the server for this stream, not in the file
)

// Stream is a binlog stream of a server: raw events, pulled one by one. No goroutine and no queue is behind it: what is
// not pulled waits on the server. It is for one goroutine, but Close may come from any.
type Stream struct {
	conn      net.Conn // what events are read from: the TLS connection, or wire itself
	wire      net.Conn // the network connection below
	ahead     *ahead   // how it is read, over TLS; else nil
	name      string   // of the server, in error texts
	serverID  uint32
	heartbeat time.Duration

	buf   []byte // buf[r:w] is read and not yet used
	r, w  int
	used  int  // bytes at r that the last returned event takes
	small int  // runs, and events alone, since one that needed a big buffer
	run   int  // up to where events are checked that have not been returned; 0: none are
	alone bool // one of the next events is wrong, so each is checked alone

	sequence byte // of the next packet
	checksum bool // events end with a CRC32
	lastCRC  int

	file   string // where the stream is, for error texts
	pos    int64
	origin Origin // of the position at which it began
	toEnd  bool   // DumpRequest.ToEnd

	err error // what ended the stream

	armed     time.Time // when the connection's deadline was set; zero: it does not hold any more
	watch     watch
	closeOnce sync.Once
	closed    chan struct{}
}

func newStream(conn, wire net.Conn, cfg Config, name string, req DumpRequest, checksum bool) *Stream {
	return &Stream{
		conn: conn, wire: wire, name: name, serverID: req.ServerID, heartbeat: cfg.Heartbeat,
		buf: make([]byte, bufferSize), sequence: 1, checksum: checksum,
		file: req.From.File, pos: req.From.Pos, origin: req.From.Origin, toEnd: req.ToEnd, closed: make(chan struct{}),
	}
}

// readsAhead has the network connection below TLS be read in long reads, from here on.
func (s *Stream) readsAhead(w *wire) {
	w.ahead = newAhead()
	s.ahead = w.ahead
}

// Close ends the stream. It may be called from another goroutine and more than once; a blocked Next then returns an error.
func (s *Stream) Close() error {
	s.closeOnce.Do(func() {
		close(s.closed)
		s.watch.end()
		s.wire.Close()
	})
	return nil
}

// ChecksumLen returns how many bytes at the end of the last returned event are its checksum: 4 or 0.
func (s *Stream) ChecksumLen() int { return s.lastCRC }

// Next returns the next event: its 19-byte header, its body and its checksum ([Stream.ChecksumLen]), which has been
// verified. The slice is valid until the next call. Everything the server sends is returned, in its order, heartbeats
// and the artificial ROTATE and FORMAT_DESCRIPTION at the start included.
//
// Next blocks until an event is there. When ctx ends first, Next returns ctx's error and the stream is intact: a later
// call goes on, no byte is lost. Any other error ends the stream; see [Transient].
func (s *Stream) Next(ctx context.Context) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	s.release()
	if s.usual() {
		return s.checked(0), nil
	}
	event, err := s.next(ctx)
	if err != nil {
		if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
			return nil, err
		}
		s.err = err
		s.Close()
		return nil, err
	}
	return event, nil
}

// There is the next event without its checksum, if it has come as a whole and is like nearly all; nil: Next has it. The slice is
// valid until the next call, too.
func (s *Stream) There() []byte {
	s.release()
	if !s.usual() {
		return nil
	}
	return s.checked(s.lastCRC)
}

// Ready says whether the next event has come as a whole, so that Next does not wait for the network. It may say no of one that
// takes several packets.
func (s *Stream) Ready() bool {
	at := s.r + s.used
	if at < s.run {
		return true
	}
	if s.w-at < packetHeader {
		return false
	}
	n := int(binary.LittleEndian.Uint32(s.buf[at:]) & maxPacket)
	return n < maxPacket && s.w-at >= packetHeader+n
}

func (s *Stream) wrongSum(kind byte) error {
	return s.corrupt("an event of type %d whose checksum is wrong", kind)
}

func (s *Stream) next(ctx context.Context) ([]byte, error) {
	payload, err := s.packet(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case len(payload) == 0:
		return nil, s.corrupt("an empty packet")
	case payload[0] == mysql.ERR_HEADER:
		return nil, s.serverError(payload)
	case payload[0] == mysql.EOF_HEADER && len(payload) < 9 && s.toEnd:
		return nil, io.EOF
	case payload[0] == mysql.EOF_HEADER && len(payload) < 9:
		return nil, &fault{text: fmt.Sprintf("%s ended the binlog stream after %s", s.name, s.where()), cause: io.ErrUnexpectedEOF}
	case payload[0] != mysql.OK_HEADER:
		return nil, s.corrupt("a packet that begins with 0x%02x", payload[0])
	}
	event := payload[1:]
	if len(event) < eventHeader {
		return nil, s.corrupt("an event of %d bytes", len(event))
	}
	if n := binary.LittleEndian.Uint32(event[9:]); int64(n) != int64(len(event)) {
		return nil, s.corrupt("an event that says it has %d bytes and has %d", n, len(event))
	}
	if err := s.verify(event); err != nil {
		return nil, err
	}
	return event, nil
}

// verify checks the event's checksum and follows where the stream is.
func (s *Stream) verify(event []byte) error {
	kind := event[4]
	flags := binary.LittleEndian.Uint16(event[17:])
	s.lastCRC = 0
	switch {
	case kind == typeFormatDescription:
		// The byte before the checksum says whether this and all following events have one.
		if len(event) < eventHeader+57+1+crcLen {
			return s.corrupt("a FORMAT_DESCRIPTION of %d bytes", len(event))
		}
		switch alg := event[len(event)-crcLen-1]; alg {
		case 0:
			s.checksum = false
		case 1:
			s.checksum = true
		default:
			return s.corrupt("a FORMAT_DESCRIPTION with checksum algorithm %d", alg)
		}
		s.lastCRC = crcLen // the room is there in both cases
	case s.checksum:
		s.lastCRC = crcLen
	}
	if len(event) < eventHeader+s.lastCRC {
		return s.corrupt("an event of %d bytes", len(event))
	}
	if s.checksum && !s.sumRight(event, kind, flags) {
		return s.wrongSum(kind)
	}
	body := event[eventHeader : len(event)-s.lastCRC]
	switch {
	case kind == typeRotate && len(body) > 8:
		s.file, s.pos = string(body[8:]), int64(binary.LittleEndian.Uint64(body))
	case flags&flagArtificial == 0 && kind != typeHeartbeat && kind != typeHeartbeatV2:
		if end := int64(binary.LittleEndian.Uint32(event[13:])); end != 0 {
			s.pos = end
		}
	}
	return nil
}

// packet returns the payload of the next packet, joined with those that continue it.
func (s *Stream) packet(ctx context.Context) ([]byte, error) {
	// A packet that is not whole yet leaves everything as it is, so that a later call begins anew.
	end, seq := 0, s.sequence
	want := 0 // bytes of all packets together, as the event's header says; a hint
	for {
		if err := s.fill(ctx, end+packetHeader, want); err != nil {
			return nil, err
		}
		header := s.buf[s.r+end:]
		n := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
		if header[3] != seq {
			return nil, s.corrupt("packet %d where %d was due", header[3], seq)
		}
		seq++
		if end == 0 && n > 1+eventHeader {
			if err := s.fill(ctx, packetHeader+1+eventHeader, want); err != nil {
				return nil, err
			}
			if first := s.buf[s.r+packetHeader:]; first[0] == mysql.OK_HEADER {
				payload := 1 + int64(binary.LittleEndian.Uint32(first[10:]))
				if payload > maxEvent {
					return nil, s.corrupt("an event of %d bytes", payload-1)
				}
				want = int(payload + packetHeader*(payload/maxPacket+1))
			}
		}
		end += packetHeader + n
		if end > maxEvent+packetHeader*(maxEvent/maxPacket+1) {
			return nil, s.corrupt("an event of more than %d bytes", maxEvent)
		}
		if err := s.fill(ctx, end, want); err != nil {
			return nil, err
		}
		if n < maxPacket {
			break
		}
	}
	s.sequence = seq
	s.used = end
	if end > bufferSize {
		s.small = 0
	}
	packets := s.buf[s.r : s.r+end]
	if end < packetHeader+maxPacket {
		return packets[packetHeader:], nil
	}
	// Close the gaps that the headers of the further packets leave.
	length := packetHeader + maxPacket
	for from := length; from < end; {
		n := int(packets[from]) | int(packets[from+1])<<8 | int(packets[from+2])<<16
		from += packetHeader
		length += copy(packets[length:], packets[from:from+n])
		from += n
	}
	return packets[packetHeader:length], nil
}

// release forgets the event returned last.
func (s *Stream) release() {
	s.r += s.used
	s.used = 0
}

// giveBack uses the front of the buffer again, and gives back that of a big event when it is not needed any more. No events are
// checked that have not been returned.
func (s *Stream) giveBack() {
	s.run = 0
	if s.r == s.w {
		s.r, s.w = 0, 0
	}
	if s.small++; s.small >= keepFor && len(s.buf) > bufferKeep && s.w-s.r <= bufferSize {
		buf := make([]byte, bufferSize)
		s.w = copy(buf, s.buf[s.r:s.w])
		s.r, s.buf = 0, buf
	}
}

// fill reads until n bytes are in the buffer from r on. want is how many there will have to be, as far as known: a
// header is believed once a megabyte has really come.
func (s *Stream) fill(ctx context.Context, n, want int) error {
	for s.w-s.r < n {
		// What is left of the last read is a part of one event. In front of the buffer it leaves room for a long read, and
		// the same memory is used again as long as reads are short.
		if s.w == len(s.buf) || s.r > 0 && (len(s.buf)-s.r < n || s.w-s.r <= mostMoved) {
			s.makeRoom(n, want)
		}
		if err := s.read(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stream) makeRoom(n, want int) {
	if s.r > 0 {
		s.w = copy(s.buf, s.buf[s.r:s.w])
		s.r = 0
	}
	if s.w < len(s.buf) {
		return
	}
	size := 2 * len(s.buf)
	if most := max(n, want); most > len(s.buf) && (size > most || len(s.buf) >= bufferKeep) {
		size = most
	}
	buf := make([]byte, size)
	copy(buf, s.buf[:s.w])
	s.buf = buf
}

// read reads once from the network, as much as there is room for. Deadlines are for reads that wait: most find something
// at once, so the deadline is set anew only when some of it is over.
func (s *Stream) read(ctx context.Context) error {
	if s.watch.leave(ctx) {
		s.armed = time.Time{}
	}
	// Three heartbeats may be lost on the way or late; after that nobody is there any more.
	silence := 3 * s.heartbeat
	begin := time.Now()
	if s.armed.IsZero() || begin.Sub(s.armed) > s.heartbeat/4 {
		s.arm(begin)
	}
	s.watch.enter(ctx, s)
	var n int
	var err error
	for {
		// Asked behind the setting of the deadline: a context that ends later brings it forward.
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err = s.conn.Read(s.buf[s.w:])
		if n > 0 {
			s.w += n
			s.readOn()
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil || time.Since(begin) >= silence {
			break
		}
		s.arm(begin) // it was that of an earlier read
	}
	switch {
	case err == nil:
		return nil
	case s.isClosed():
		return &fault{text: fmt.Sprintf("the binlog stream from %s was closed", s.name), cause: net.ErrClosed}
	case ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded):
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return faultf(ErrSilent, "%s has sent nothing for %v after %s, not even a heartbeat: the connection is dead", s.name, 3*s.heartbeat, s.where())
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // io.EOF is the end of binlog files, and nobody must take this for it
	}
	return networkFault(fmt.Sprintf("the binlog stream from %s broke off after %s", s.name, s.where()), err)
}

// readOn goes on reading what is there without waiting, as a read of a connection without TLS does: events are said to be
// ready ([Stream.Ready]) as long as they are in the buffer. An error comes again with the next read.
func (s *Stream) readOn() {
	for s.ahead != nil && s.ahead.whole() && len(s.buf)-s.w >= tlsRecord {
		n, err := s.conn.Read(s.buf[s.w:])
		s.w += n
		if n == 0 || err != nil {
			return
		}
	}
}

// arm sets the deadline of a read that began at a time.
func (s *Stream) arm(begin time.Time) {
	s.armed = begin
	s.wire.SetReadDeadline(begin.Add(3 * s.heartbeat))
}

func (s *Stream) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// where is the position after the last event.
func (s *Stream) where() string {
	if s.file == "" {
		return "its start"
	}
	return fmt.Sprintf("%s:%d", s.file, s.pos)
}

func (s *Stream) corrupt(format string, args ...any) error {
	return faultf(ErrCorrupt, "%s, after %s: %s; check the file on the server with mysqlbinlog --verify-binlog-checksum, and what is between the server and here",
		s.name, s.where(), fmt.Sprintf(format, args...))
}

// serverError puts the server's last word into an error.
func (s *Stream) serverError(payload []byte) error {
	my := serverError(payload)
	advice, kind := dumpError(my, s.origin)
	text := fmt.Sprintf("%s ended the binlog stream after %s", s.name, s.where())
	if advice != "" {
		text += " (" + strings.ReplaceAll(advice, "SERVER_ID", strconv.FormatUint(uint64(s.serverID), 10)) + ")"
	}
	return &fault{text: text, kind: kind, cause: my}
}
