package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// wire is the network connection below all others. It reads the server's greeting, which says whether TLS is to be had, and
// remembers the first network error, which the client library reduces to text.
type wire struct {
	net.Conn

	hello     []byte // the greeting, until a guard takes it
	offersTLS bool
	refused   bool   // the greeting was an error (too many connections, host blocked …)
	anonymous bool   // TLS was begun without a certificate of the client
	ahead     *ahead // of a binlog stream over TLS; nil: reads go straight to the network

	mu    sync.Mutex
	first error
}

// maxLoginPacket bounds what a server may send in one packet before the login is through.
const maxLoginPacket = 64 << 10

// greeting reads the server's first packet and keeps it for the client.
func (w *wire) greeting() error {
	packet, err := readPacket(w.Conn)
	if err != nil {
		return w.note(err)
	}
	w.refused = packet[packetHeader] == mysql.ERR_HEADER
	w.hello = packet
	// protocol 10, version text, 0, thread id (4), salt (8), 0, lower capabilities (2), character set (1), status (2),
	// upper capabilities (2), length of the salt (1), 0 (10), rest of the salt (13 or more), login method, 0
	body := packet[packetHeader:]
	if len(body) < 2 || body[0] != 10 {
		return nil
	}
	end := bytes.IndexByte(body[1:], 0)
	at := 1 + end + 1 + 4 + 8 + 1
	if end < 0 || len(body) < at+2 {
		return nil
	}
	w.offersTLS = (uint32(body[at])|uint32(body[at+1])<<8)&mysql.CLIENT_SSL != 0
	if at += 2 + 1 + 2 + 2; len(body) <= at+1+10 {
		return nil
	}
	if at += 1 + 10 + max(13, int(body[at])-8); at >= len(body) {
		return nil
	}
	// A method that the client does not have is no reason to end: the user's own follows, and is looked at then.
	method, _, _ := bytes.Cut(body[at:], []byte{0})
	if len(method) > 0 && !slices.Contains(passwordHashing, string(method)) {
		body = append(append(body[:at:at], mysql.AUTH_NATIVE_PASSWORD...), 0)
		w.hello = append([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), packet[3]}, body...)
	}
	return nil
}

// readPacket reads one packet of the login with its header.
func readPacket(conn net.Conn) ([]byte, error) {
	var header [packetHeader]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return nil, err
	}
	n := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
	if n == 0 || n > maxLoginPacket {
		return nil, faultf(nil, "this is no MySQL server, or something in between is in the way: its packet of the login has %d bytes", n)
	}
	packet := make([]byte, packetHeader+n)
	copy(packet, header[:])
	if _, err := io.ReadFull(conn, packet[packetHeader:]); err != nil {
		return nil, err
	}
	return packet, nil
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.read(p)
	if err != nil {
		err = w.note(err)
	}
	return n, err
}

func (w *wire) read(p []byte) (int, error) {
	if w.ahead != nil {
		return w.ahead.read(w.Conn, p)
	}
	return w.Conn.Read(p)
}

// Write implements net.Conn.
func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if err != nil {
		err = w.note(err)
	}
	return n, err
}

// note keeps the first error and returns err.
func (w *wire) note(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil {
		w.first = err
	}
	return err
}

// blame makes err the first error, whatever the network has done because of it.
func (w *wire) blame(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first = err
	return err
}

// failure returns the first error of the network connection, nil for none.
func (w *wire) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

var errClosed = errors.New("the connection was closed")
