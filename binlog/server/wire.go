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

// wire is the network connection below the MySQL client. Until the login is through, it reads the server's packets
// one by one and looks at them first, for two reasons:
//
//   - the greeting says whether the server offers TLS, which database.ssl.mode=preferred has to know before it answers;
//   - on a connection that is not encrypted, a server (or anybody in the path) may ask for the password itself, by a
//     switch to mysql_clear_password, or for the password encrypted with a public key of its choice. The client library
//     obeys both. wire ends the connection instead.
//
// It also remembers the first network error, which the client library reduces to text.
type wire struct {
	net.Conn

	inspect   bool // the server's packets are still looked at
	allowKey  bool // sending the password under the server's public key is permitted
	offersTLS bool
	refused   bool   // the greeting was an error (too many connections, host blocked …)
	pending   []byte // the rest of a packet that has been looked at
	ahead     *ahead // of a binlog stream over TLS; nil: reads go straight to the network

	mu    sync.Mutex
	first error
}

// maxLoginPacket bounds what a server may send in one packet before the login is through.
const maxLoginPacket = 64 << 10

// passwordHashing lists the login methods that never show the password to somebody who only listens.
var passwordHashing = []string{
	mysql.AUTH_NATIVE_PASSWORD, mysql.AUTH_CACHING_SHA2_PASSWORD, mysql.AUTH_SHA256_PASSWORD, mysql.AUTH_MARIADB_ED25519,
}

// greeting reads the server's first packet and keeps it for the client.
func (w *wire) greeting() error {
	packet, err := w.packet()
	if err != nil {
		return err
	}
	w.refused = packet[4] == mysql.ERR_HEADER
	w.pending = packet
	// protocol 10, version text, 0, thread id (4), salt (8), 0, lower capabilities (2)
	if body := packet[4:]; len(body) > 1 && body[0] == 10 {
		if end := bytes.IndexByte(body[1:], 0); end >= 0 {
			if at := 1 + end + 1 + 4 + 8 + 1; len(body) >= at+2 {
				w.offersTLS = (uint32(body[at])|uint32(body[at+1])<<8)&mysql.CLIENT_SSL != 0
			}
		}
	}
	return nil
}

// packet reads one packet with its header from the network.
func (w *wire) packet() ([]byte, error) {
	var header [4]byte
	if _, err := io.ReadFull(w.Conn, header[:]); err != nil {
		return nil, w.note(err)
	}
	n := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
	if n == 0 || n > maxLoginPacket {
		return nil, w.note(faultf(nil, "this is no MySQL server, or something in between is in the way: its packet of the login has %d bytes", n))
	}
	packet := make([]byte, 4+n)
	copy(packet, header[:])
	if _, err := io.ReadFull(w.Conn, packet[4:]); err != nil {
		return nil, w.note(err)
	}
	return packet, nil
}

// look refuses a packet of the login that asks for more than a listener may see.
func (w *wire) look(body []byte) error {
	const key = "; use database.ssl.mode=preferred or required (the server must offer TLS), " +
		"or set driver.allowPublicKeyRetrieval=true where nobody can change what is on the wire"
	switch {
	case body[0] == mysql.EOF_HEADER: // switch to another login method
		name, _, _ := bytes.Cut(body[1:], []byte{0})
		method := string(name)
		if !slices.Contains(passwordHashing, method) {
			return faultf(ErrInsecure, "the server asks for login method %q on a connection that is not encrypted, "+
				"which would show it the password; give the user caching_sha2_password, or use database.ssl.mode=required", method)
		}
		if method == mysql.AUTH_SHA256_PASSWORD && !w.allowKey {
			return faultf(ErrInsecure, "the server asks for login method sha256_password on a connection that is not encrypted"+key)
		}
	case body[0] == mysql.MORE_DATE_HEADER && !w.allowKey:
		if len(body) == 2 && body[1] == mysql.CACHE_SHA2_FAST_AUTH {
			return nil
		}
		return faultf(ErrInsecure, "the server asks for the password itself on a connection that is not encrypted "+
			"(caching_sha2_password does on a user's first login)"+key)
	}
	return nil
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	if len(w.pending) > 0 {
		n := copy(p, w.pending)
		w.pending = w.pending[n:]
		return n, nil
	}
	if !w.inspect {
		n, err := w.read(p)
		if err != nil {
			err = w.note(err)
		}
		return n, err
	}
	packet, err := w.packet()
	if err != nil {
		return 0, err
	}
	if err := w.look(packet[4:]); err != nil {
		w.Conn.Close()
		return 0, w.note(err)
	}
	n := copy(p, packet)
	w.pending = packet[n:]
	return n, nil
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

// failure returns the first error of the network connection, nil for none.
func (w *wire) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

var errClosed = errors.New("the connection was closed")
