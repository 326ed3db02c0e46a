package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
)

// TestRefusedLoginIsWaitedForOnlyWhileItIsReplaced: a wrong password stops a start at once, and a connector that streamed only where
// the password cannot change.
func TestRefusedLoginIsWaitedForOnlyWhileItIsReplaced(t *testing.T) {
	login := func(code byte, text string) error { // of a server that says this to every login
		_, err := server.Connect(t.Context(), server.Config{Host: "db.example", User: "u", Password: "p", Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				body := append([]byte{0xff, code, 4}, text...)
				if code == 0x2e {
					body[2] = 0x0c
				}
				_, _ = theirs.Write(append([]byte{byte(len(body)), 0, 0, 0}, body...))
				theirs.Close()
			}()
			return ours, nil
		}})
		return err
	}
	refused, locked := login(0x15, "Access denied"), login(0x2e, "Account is locked") // 1045, 3118
	if !errors.Is(refused, server.ErrAccess) || !errors.Is(locked, server.ErrAccess) {
		t.Fatal(refused, locked)
	}
	expired := fmt.Errorf("login: %w", server.ErrCertificate)
	broker := fmt.Errorf("TLS: %w", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}})
	fixed, given := &config.Connector{}, &config.Connector{
		ReadPassword:   func() (string, error) { return "", nil },
		ProducerReread: func() (map[string]string, error) { return nil, nil },
	}
	for _, tt := range []struct {
		c        *config.Connector
		streamed bool
		err      error
		want     bool
	}{
		{fixed, false, refused, false},
		{given, false, refused, false},
		{fixed, true, refused, false},
		{given, true, refused, true},
		{fixed, false, expired, false},
		{fixed, true, expired, true},
		{fixed, true, broker, true},
		{given, false, broker, false},
		{given, true, broker, true},
		{fixed, false, locked, false},
		{fixed, true, locked, true},
		{given, true, server.ErrPurged, false},
		{given, true, errors.New("other"), false},
		{fixed, false, io.EOF, true},
	} {
		r := renewals{c: tt.c}
		if err := r.opened(io.EOF); err != io.EOF || r.streamed.Load() {
			t.Fatal(err)
		}
		if tt.streamed {
			_ = r.opened(nil)
		}
		if got := r.transient(tt.err); got != tt.want {
			t.Errorf("provider %v, streamed %v, %v: %v", tt.c == given, tt.streamed, tt.err, got)
		}
	}
}
