package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"net"
	"os"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// guard stands between the MySQL client and the network. Until the login is through, it reads the server's packets one by one,
// encrypted ones too, and looks at them first: a server, or anybody in the path, may ask for the password itself, by a switch to
// mysql_clear_password, or for the password under a public key of its choice, and the client library obeys both. guard ends the
// connection instead, unless the configuration allows it.
//
// For that it makes the TLS connection, of which the library knows nothing: to it the connection is one that nobody else can read, as a
// Unix socket is. The packet that asks for TLS is one more, so that sequence numbers differ by one until the login is through.
//
// Afterwards it bounds what an answer may make the library take memory for.
type guard struct {
	net.Conn       // the wire, or the TLS connection over it
	wire     *wire // below all

	encrypt  *tls.Config // nil: a plain connection
	ctx      context.Context
	verified bool // TLS shows who the server is
	allowKey bool // sending the password under the server's public key is permitted
	clear    bool // sending the password itself is permitted, over verified TLS
	pinned   []byte

	through  bool   // the login is
	shift    byte   // what the server's sequence numbers are ahead of the library's
	wantsKey bool   // the next packet is the server's public key
	pending  []byte // the rest of a packet that has been looked at

	answer answer
}

// Methods of logging in by what they show. Those that hash never show the password to somebody who only listens.
var passwordHashing = []string{
	mysql.AUTH_NATIVE_PASSWORD, mysql.AUTH_CACHING_SHA2_PASSWORD, mysql.AUTH_SHA256_PASSWORD, mysql.AUTH_MARIADB_ED25519,
}

// newGuard takes over a wire whose greeting has been read.
func newGuard(ctx context.Context, w *wire, cfg *Config, encrypt *tls.Config) (*guard, error) {
	g := &guard{
		Conn: w, wire: w, encrypt: encrypt, ctx: ctx, allowKey: cfg.AllowPublicKeyRetrieval, clear: cfg.CleartextPassword,
		verified: encrypt != nil && cfg.SSLMode.verifies(), pending: w.hello,
	}
	w.hello = nil
	if encrypt == nil && cfg.PublicKeyFile != "" {
		text, err := os.ReadFile(cfg.PublicKeyFile)
		if err != nil {
			return nil, &fault{text: "driver.serverRSAPublicKeyFile", cause: err}
		}
		block, _ := pem.Decode(text)
		if block == nil {
			return nil, faultf(ErrAccess, "driver.serverRSAPublicKeyFile=%s holds no public key in PEM; it is the server's public_key.pem", cfg.PublicKeyFile)
		}
		g.pinned = block.Bytes
	}
	return g, nil
}

// network is what the client library is told that the connection is: over what nobody else can read it does not ask for keys.
func (g *guard) network() string {
	if g.encrypt != nil {
		return "unix"
	}
	return "tcp"
}

// done ends the look at packets of the login.
func (g *guard) done() { g.through = true }

// Read implements net.Conn.
func (g *guard) Read(p []byte) (int, error) {
	if len(g.pending) > 0 {
		n := copy(p, g.pending)
		g.pending = g.pending[n:]
		return n, nil
	}
	if g.through {
		n, err := g.Conn.Read(p)
		if fault := g.answer.see(p[:n]); fault != nil {
			return 0, g.end(fault)
		}
		return n, err
	}
	packet, err := readPacket(g.Conn)
	if err != nil {
		return 0, g.wire.note(err)
	}
	if err := g.look(packet[packetHeader:]); err != nil {
		return 0, g.end(err)
	}
	packet[3] -= g.shift
	n := copy(p, packet)
	g.pending = packet[n:]
	return n, nil
}

func (g *guard) end(err error) error {
	g.wire.Close()
	return g.wire.blame(err)
}

// Write implements net.Conn.
func (g *guard) Write(p []byte) (int, error) {
	if g.through {
		g.answer = answer{}
		return g.Conn.Write(p)
	}
	packet := bytes.Clone(p)
	if g.encrypt != nil && g.Conn == net.Conn(g.wire) {
		if err := g.startTLS(packet); err != nil {
			return 0, g.end(err)
		}
	}
	packet[3] += g.shift
	return g.Conn.Write(packet)
}

// startTLS asks for TLS with the first part of the library's first packet, and says in that packet that it did.
func (g *guard) startTLS(first []byte) error {
	const request = 32 // capabilities, longest packet, character set, filler
	if len(first) < packetHeader+request {
		return faultf(nil, "the MySQL client's first packet has %d bytes", len(first))
	}
	first[packetHeader+1] |= byte(mysql.CLIENT_SSL >> 8 & 0xff)
	ask := bytes.Clone(first[:packetHeader+request])
	ask[0], ask[1], ask[2] = request, 0, 0
	if _, err := g.wire.Write(ask); err != nil {
		return err
	}
	secure := tls.Client(g.wire, g.encrypt)
	if err := secure.HandshakeContext(g.ctx); err != nil {
		return tlsFault(err, len(g.encrypt.Certificates) > 0)
	}
	g.Conn, g.shift = secure, 1
	g.wire.anonymous = len(g.encrypt.Certificates) == 0
	return nil
}

// look refuses a packet of the login that asks for more than may be seen by who is or may be there.
func (g *guard) look(body []byte) error {
	const key = "; use database.ssl.mode=required or a mode that verifies (the server must offer TLS), name its public key in driver.serverRSAPublicKeyFile, " +
		"or set driver.allowPublicKeyRetrieval=true where nobody can change what is on the wire"
	wanted := g.wantsKey
	g.wantsKey = false
	full := slices.Equal(body, []byte{mysql.MORE_DATE_HEADER, mysql.CACHE_SHA2_FULL_AUTH})
	switch {
	case body[0] == mysql.ERR_HEADER && wanted: // of which the client library knows nothing here
		return serverError(body)
	case body[0] == mysql.ERR_HEADER:
		return nil
	case wanted || g.encrypt == nil && body[0] == mysql.MORE_DATE_HEADER && !slices.Equal(body, []byte{mysql.MORE_DATE_HEADER, mysql.CACHE_SHA2_FAST_AUTH}):
		if !g.allowKey && g.pinned == nil {
			return faultf(ErrInsecure, "the server asks for the password itself on a connection that is not encrypted "+
				"(caching_sha2_password does on a user's first login)"+key)
		}
		if full && !wanted {
			g.wantsKey = true
			return nil
		}
		block, _ := pem.Decode(body[1:])
		switch {
		case g.pinned != nil && (body[0] != mysql.MORE_DATE_HEADER || block == nil || !bytes.Equal(block.Bytes, g.pinned)):
			return faultf(ErrInsecure, "the server shows another public key than the one in driver.serverRSAPublicKeyFile; if it has a new one, copy its public_key.pem; else somebody is in between")
		case block == nil:
			return faultf(nil, "the server's login packets make no sense (no public key where one was due)")
		}
		return nil
	case body[0] == mysql.OK_HEADER, body[0] == mysql.MORE_DATE_HEADER:
		return nil
	case body[0] != mysql.EOF_HEADER:
		return faultf(nil, "the server's login packets make no sense (one begins with 0x%02x)", body[0])
	}
	name, _, _ := bytes.Cut(body[1:], []byte{0})
	switch method := string(name); {
	case method == mysql.AUTH_CLEAR_PASSWORD && g.clear && g.verified:
		return nil
	case method == mysql.AUTH_CLEAR_PASSWORD && g.encrypt != nil:
		return faultf(ErrInsecure, "the server asks for the password itself (login method mysql_clear_password), and would see it; where it has to, as with LDAP, PAM and the tokens of AWS IAM, "+
			"set database.cleartext.password=true with database.ssl.mode=verify_identity")
	case method == "" || method == mysql.AUTH_MYSQL_OLD_PASSWORD:
		return faultf(ErrInsecure, "the server asks for the login method of MySQL before 4.1 (mysql_old_password), whose hash anybody can undo; "+
			"give the user caching_sha2_password: ALTER USER … IDENTIFIED WITH caching_sha2_password BY '…'")
	case !slices.Contains(passwordHashing, method) && g.encrypt == nil:
		return faultf(ErrInsecure, "the server asks for login method %q on a connection that is not encrypted, "+
			"which would show it the password; give the user caching_sha2_password, or use database.ssl.mode=required", method)
	case !slices.Contains(passwordHashing, method):
		return faultf(ErrInsecure, "the server asks for login method %q, which is not supported and may show the password; "+
			"give the user caching_sha2_password, or with MariaDB's PAM set pam_use_cleartext_plugin=ON there and database.cleartext.password=true here", method)
	case method == mysql.AUTH_SHA256_PASSWORD && g.encrypt == nil && !g.allowKey && g.pinned == nil:
		return faultf(ErrInsecure, "the server asks for login method sha256_password on a connection that is not encrypted"+key)
	}
	return nil
}

// answer bounds an answer to a question by what it says of itself.
type answer struct {
	size   int64   // of all of it so far
	head   [4]byte // of the packet that begins
	have   int     // bytes of head
	left   int     // bytes of the packet that have not come
	first  []byte  // the beginning of the first packet
	seen   bool    // the first packet has been looked at
	packet int     // length of the first packet
}

const (
	// mostAnswer bounds an answer: the definitions of all tables come one by one, and a set of GTIDs has megabytes at most.
	mostAnswer = 256 << 20
	// mostColumns is the server's own limit; what a result has is taken memory for at once.
	mostColumns = 4096
)

// see is told what has come.
func (a *answer) see(p []byte) error {
	if a.size += int64(len(p)); a.size > mostAnswer {
		return faultf(ErrCorrupt, "the server's answer has more than %d bytes, which no answer to a question asked here has", mostAnswer)
	}
	for !a.seen && len(p) > 0 {
		if a.have < packetHeader {
			n := copy(a.head[a.have:], p)
			a.have += n
			p = p[n:]
			a.packet = int(a.head[0]) | int(a.head[1])<<8 | int(a.head[2])<<16
			a.left = a.packet
			continue
		}
		n := min(len(p), a.left, 9-len(a.first))
		a.first = append(a.first, p[:n]...)
		a.left -= n
		p = p[n:]
		if a.left > 0 && len(a.first) < 9 {
			continue
		}
		a.seen = true
		if a.packet > maxLoginPacket && a.first[0] == mysql.ERR_HEADER {
			return faultf(ErrCorrupt, "the server's answer is an error of %d bytes, which no error has", a.packet)
		}
		if a.packet == 0 || a.packet > 9 {
			return nil // no number of columns
		}
		switch a.first[0] {
		case mysql.OK_HEADER, mysql.ERR_HEADER, mysql.EOF_HEADER, mysql.LocalInFile_HEADER:
			if a.packet < 9 || a.first[0] != mysql.EOF_HEADER {
				return nil
			}
		}
		if columns, _, n := mysql.LengthEncodedInt(a.first); n == a.packet && columns > mostColumns {
			return faultf(ErrCorrupt, "the server's answer says that it has %d columns, and there cannot be more than %d", columns, mostColumns)
		}
	}
	return nil
}
