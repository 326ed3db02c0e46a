package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Errors by their meaning; test with [errors.Is]. Only ErrSilent, ErrBehind, ErrMoved and ErrAstray go away by themselves, so [Transient] is
// false for all others.
var (
	// ErrPurged: what the offset continues with has been deleted from the server's binlogs.
	ErrPurged = errors.New("binlog purged")
	// ErrOtherServer: the offset names transactions or a position that this server does not have: it is from another
	// server, or this one has lost them.
	ErrOtherServer = errors.New("offset from another server")
	// ErrServerIDInUse: another replica uses our server id.
	ErrServerIDInUse = errors.New("server id in use")
	// ErrReplaced: a newer connection of the same connector took over, and the server ended ours.
	ErrReplaced = errors.New("replaced by a newer connection")
	// ErrNoTable: the table does not exist (any more).
	ErrNoTable = errors.New("no such table")
	// ErrAccess: login or privileges.
	ErrAccess = errors.New("access denied")
	// ErrInsecure: going on would have given the password to whoever listens.
	ErrInsecure = errors.New("insecure login refused")
	// ErrCertificate: TLS: the server's certificate, or what it says of ours.
	ErrCertificate = errors.New("certificate refused")
	// ErrSetup: the server's settings do not let a replica see whole rows.
	ErrSetup = errors.New("server not set up for change data capture")
	// ErrCorrupt: bytes of the stream that cannot be right (checksum, lengths, order).
	ErrCorrupt = errors.New("corrupt binlog stream")
	// ErrSilent: three heartbeats did not come; the connection is taken for dead. Transient.
	ErrSilent = errors.New("no heartbeat")
	// ErrBehind: the server is a replica that has still to apply what the offset names. Transient.
	ErrBehind = errors.New("replica is behind")
	// ErrMoved: the address leads to another server than a moment ago. Transient.
	ErrMoved = errors.New("another server at the address")
	// ErrAstray: the stream is not where the server's binlog is, which was reset meanwhile, say. Transient: connecting again proves
	// what is left of it.
	ErrAstray = errors.New("stream has lost the binlog")
)

// fault is an error with a text for people, what it means, and what caused it.
type fault struct {
	text  string
	kind  error // one of the Err… above, or nil
	cause error // nil when text says it all
	plain bool  // text says the cause too: it stands behind it only for who wants to search for it
}

func (f *fault) Error() string {
	if f.cause == nil {
		return f.text
	}
	if f.plain {
		return f.text + " (" + f.cause.Error() + ")"
	}
	return f.text + ": " + f.cause.Error()
}

func (f *fault) Unwrap() []error {
	var all []error
	if f.kind != nil {
		all = append(all, f.kind)
	}
	if f.cause != nil {
		all = append(all, f.cause)
	}
	return all
}

func faultf(kind error, format string, args ...any) error {
	return &fault{text: fmt.Sprintf(format, args...), kind: kind}
}

// Transient reports whether err may go away by waiting: the network, a server that restarts or is full. Everything
// else needs somebody to change something first, unknown errors of the server included.
func Transient(err error) bool {
	if err == nil {
		return false
	}
	for _, kind := range []error{
		ErrPurged, ErrOtherServer, ErrServerIDInUse, ErrReplaced, ErrNoTable, ErrAccess, ErrInsecure, ErrCertificate, ErrSetup, ErrCorrupt,
		context.Canceled,
	} {
		if errors.Is(err, kind) {
			return false
		}
	}
	if errors.Is(err, ErrAstray) {
		return true
	}
	var my *mysql.MyError
	if errors.As(err, &my) {
		return transientCode(my)
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) { // of whatever: others give theirs back
		return true
	}
	if isFile(err) {
		return false
	}
	if errors.Is(err, ErrSilent) || errors.Is(err, ErrBehind) || errors.Is(err, ErrMoved) {
		return true
	}
	if errors.Is(err, mysql.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "remote error" {
		return false // an alert of TLS: the two do not agree on versions or ciphers
	}
	netErr, ok := errors.AsType[net.Error](err) // includes *net.OpError, *net.DNSError
	if _, bare := netErr.(syscall.Errno); bare {
		return false // not of a connection, whose errors package net wraps
	}
	return ok
}

// isFile tells the errors of files, whose innermost one looks like the network's: a missing folder or right does not come
// back by itself.
func isFile(err error) bool {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return true
	}
	_, ok := errors.AsType[*os.LinkError](err)
	return ok
}

// networkFault puts what the network did into plain words behind text.
func networkFault(text string, err error) error {
	if why := networkWords(err); why != "" {
		return &fault{text: text + ": " + why, cause: err, plain: true}
	}
	return &fault{text: text, cause: err}
}

// networkWords says what a failed connection means and what to look at; "" for what is not known.
func networkWords(err error) string {
	lookup, isLookup := errors.AsType[*net.DNSError](err)
	timeout, isTimeout := errors.AsType[net.Error](err)
	switch {
	case isLookup && lookup.IsNotFound:
		return "no computer has the name " + lookup.Name + "; check database.hostname"
	case isLookup:
		return "the name " + lookup.Name + " cannot be looked up just now"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "no file descriptor is left, of this process or of the whole computer; see ulimit -n (LimitNOFILE= of a systemd unit)"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing accepts connections there; does MySQL run, and are database.hostname and database.port right?"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no way to it in the network; check database.hostname, routes and firewalls"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server, or something in between, ended the connection"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), isTimeout && timeout.Timeout():
		return "no answer came in time; check database.hostname and database.port, and whether a firewall is in between"
	}
	return ""
}

// transientCode decides by the server's error number.
func transientCode(e *mysql.MyError) bool {
	switch e.Code {
	case 1021, // disk full, waiting for someone to free some space
		1037, 1038, 1041, // out of memory
		1040,             // too many connections
		1042, 1043, 1047, // handshake, or the node of a cluster is not ready
		1053, 1077, 1078, 1079, 1080, // the server shuts down
		1135,                         // no thread for the connection
		1152, 1158, 1159, 1160, 1161, // the connection was cut while the server read or wrote
		1184,       // aborted connection
		1203, 1226, // the user has its maximum of connections
		1205, 1213, 1317, // lock wait, deadlock, interrupted by KILL
		2002, 2003, 2006, 2013, 2055, // the client library's own numbers, used by proxies
		3032,       // offline mode
		3168, 3169, // not available, session killed
		4031: // inactive for longer than wait_timeout
		return true
	}
	return false
}

// dumpError says what an error that ended a binlog stream means and what to do. The server has one number, 1236, for
// everything that is wrong with a binlog or with a request for it; only the text tells them apart. It writes "source"
// and "replica" today, "master" and "slave" before 8.0.26.
func dumpError(e *mysql.MyError, origin Origin) (advice string, kind error) {
	switch e.Code {
	case 1045, 1142, 1227:
		return "the user needs REPLICATION SLAVE", ErrAccess
	case 1236, 1789, 4052: // the last one is a MariaDB's
	default:
		return "", nil
	}
	text := strings.NewReplacer("master", "source", "slave", "replica").Replace(strings.ToLower(e.Message))
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case has("same server_uuid/server_id"):
		return "another process runs this connector with database.server.id SERVER_ID; only one may", ErrReplaced
	case has("diverged"), has("which is not in the source's binlog"):
		return "the server does not have the transaction that " + origin.String() + " names, so it is from another server, or this one was reset or restored; " + origin.anew(), ErrOtherServer
	case has("purged"), has("could not find first log file name"):
		return purgedChoices(origin), ErrPurged
	case has("has more gtids than the source"):
		return "the server has lost transactions that " + origin.String() + " names; " + origin.anew(), ErrOtherServer
	case has("position > file size"):
		return "the server has lost the end of its binlog, or " + origin.String() + " is from another server; " + origin.anew(), ErrOtherServer
	case has("binary log is not open"), has("misconfigured source"):
		return "start mysqld with --log-bin and a --server-id that is not 0", ErrSetup
	case has("gtid_mode = off"), has("this server has gtid_mode"):
		return "SET PERSIST gtid_mode=ON on the server, step by step by way of OFF_PERMISSIVE and ON_PERMISSIVE; without GTIDs a stream cannot begin beyond 4 GiB of a file", ErrSetup
	case has("max_allowed_packet"):
		return "an event is bigger than max_allowed_packet of the server allows to send: SET PERSIST max_allowed_packet=1073741824", ErrSetup
	case has("i/o error reading log event"), has("could not find next log"):
		return "it was reset while it was being read (RESET BINARY LOGS AND GTIDS, RESET MASTER), or its disk fails; connecting again shows which", ErrAstray
	case has("bogus data"), has("binlog truncated"), has("corrupted"), has("checksum"):
		return "no whole event is at that position of the server's file; look with mysqlbinlog --verify-binlog-checksum", ErrCorrupt
	}
	return "", nil
}

// WrongPassword reports whether the server refused the login for user or password, and not, as [ErrAccess] says as well, since the
// account is locked, has an expired password or lacks a privilege.
func WrongPassword(err error) bool {
	c := code(err)
	return c == 1045 || c == 1698
}

// mostMessage is more than the text of an error of a server has.
const mostMessage = 4 << 10

// serverError reads a packet with an error of the server.
func serverError(payload []byte) *mysql.MyError {
	my := &mysql.MyError{}
	if len(payload) < 3 {
		return my
	}
	my.Code = binary.LittleEndian.Uint16(payload[1:])
	rest := payload[3:]
	if len(rest) >= 6 && rest[0] == '#' {
		my.State, rest = string(rest[1:6]), rest[6:]
	}
	my.Message = strings.ToValidUTF8(string(rest[:min(len(rest), mostMessage)]), "")
	return my
}

// code returns the server's error number, 0 when err is not from the server.
func code(err error) uint16 {
	var my *mysql.MyError
	if errors.As(err, &my) {
		return my.Code
	}
	return 0
}

func isKind(err, kind error) bool { return err != nil && errors.Is(err, kind) }
