package server

import (
	"encoding/binary"
	"net"
)

const (
	tlsHeader = 5
	tlsRecord = 16 << 10 // what a record holds at most
	// A record of this size or more is taken for data: what a TLS connection says of itself, so that there is nothing to read
	// behind it, is shorter.
	tlsData = 4 << 10
)

// ahead reads a TLS connection's records from the network, many at once: the TLS client asks for one at a time, each with a
// call to the system. It gives them out one by one, and knows whether there is another one.
type ahead struct {
	buf  []byte
	r, w int // buf[r:w] is read and not given out
	left int // bytes of a record begun that are not given out; 0: at r a record begins
}

func newAhead() *ahead { return &ahead{buf: make([]byte, bufferSize)} }

// read gives out bytes of one record.
func (a *ahead) read(conn net.Conn, p []byte) (int, error) {
	for a.left == 0 {
		if a.w-a.r >= tlsHeader {
			a.left = a.size()
			break
		}
		if n, err := a.more(conn); n == 0 {
			return 0, err
		}
	}
	if a.r == a.w {
		if n, err := a.more(conn); n == 0 {
			return 0, err
		}
	}
	n := copy(p, a.buf[a.r:min(a.w, a.r+a.left)])
	a.r += n
	a.left -= n
	return n, nil
}

// more reads from the network once.
func (a *ahead) more(conn net.Conn) (int, error) {
	a.w = copy(a.buf, a.buf[a.r:a.w])
	a.r = 0
	n, err := conn.Read(a.buf[a.w:])
	a.w += n
	return n, err
}

// size is that of the record at r, with its header.
func (a *ahead) size() int { return tlsHeader + int(binary.BigEndian.Uint16(a.buf[a.r+3:])) }

// whole says whether the next record is there as a whole and is one of data, so that it can be read without waiting.
func (a *ahead) whole() bool {
	there := a.w - a.r
	return a.left == 0 && there >= tlsData && there >= a.size() && a.size() >= tlsData
}
