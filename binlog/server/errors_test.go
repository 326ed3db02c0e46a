package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

func TestTransient(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("x: %w", &fault{text: "y", cause: err}) }
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded, mysql.ErrBadConn, ErrSilent, ErrBehind, ErrMoved, ErrAstray,
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, &net.OpError{Op: "read", Err: syscall.ECONNRESET},
		&net.DNSError{Err: "no such host"}, &net.OpError{Op: "dial", Err: errors.New("refused")},
		&mysql.MyError{Code: 1040}, &mysql.MyError{Code: 1053}, &mysql.MyError{Code: 2013}, &mysql.MyError{Code: 4031}, &mysql.MyError{Code: 1317}, &mysql.MyError{Code: 1226}, &mysql.MyError{Code: 3169},
		&fs.PathError{Op: "open", Path: "/run/secrets/db", Err: syscall.EMFILE}, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.ENFILE)},
	} {
		if !Transient(wrap(err)) {
			t.Errorf("%v must be transient", err)
		}
	}
	for _, err := range []error{
		nil, errors.New("x"), context.Canceled, ErrPurged, ErrOtherServer, ErrServerIDInUse, ErrReplaced, ErrNoTable, ErrAccess, ErrInsecure, ErrSetup, ErrCorrupt,
		&mysql.MyError{Code: 1045}, &mysql.MyError{Code: 1227}, &mysql.MyError{Code: 1236}, &mysql.MyError{Code: 1064}, &mysql.MyError{Code: 3118}, &mysql.MyError{Code: 1862}, &mysql.MyError{Code: 1129},
		errors.Join(ErrAccess, io.EOF), &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, &os.LinkError{Op: "rename", Err: syscall.EAGAIN}, syscall.EAGAIN, &net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")},
	} {
		if Transient(err) || err != nil && Transient(wrap(err)) {
			t.Errorf("%v must not be transient", err)
		}
	}
}
