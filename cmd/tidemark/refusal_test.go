package main

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog/server"
)

// refusedLogin is how a server's error at the login comes back.
func refusedLogin(t *testing.T, code uint16) error {
	t.Helper()
	dial := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			text := append([]byte{0xff, byte(code), byte(code >> 8)}, "no"...)
			theirs.Write(append([]byte{byte(len(text)), 0, 0, 0}, text...))
			theirs.Close()
		}()
		return ours, nil
	}
	_, err := server.Connect(t.Context(), server.Config{Host: "db.example", User: "u", Dial: dial, Log: zap.NewNop()})
	if err == nil {
		t.Fatal("no error")
	}
	return err
}

// TestUnlockedAccountIsNoticedAtOnce: only what may lock an account is not tried again for a while.
func TestUnlockedAccountIsNoticedAtOnce(t *testing.T) {
	srv := &server.Config{}
	var r refusal
	r.judge(srv, nil)
	if r.judge(srv, refusedLogin(t, 3118)); r.again(srv) != nil {
		t.Error("it would not be noticed for a minute")
	}
}

// TestPasswordIsNotTriedTwiceInARow: a server may lock an account that comes with a wrong password too often. So the same one is tried once
// in a minute, and another one at once.
func TestPasswordIsNotTriedTwiceInARow(t *testing.T) {
	wrong := refusedLogin(t, 1045)
	synctest.Test(t, func(t *testing.T) {
		password, failed := "old", error(nil)
		srv := &server.Config{Password: "older", ReadPassword: func() (string, error) { return password, failed }}
		var r refusal
		r.judge(srv, nil)
		r.judge(srv, wrong)
		if err := r.again(srv); err != wrong { //nolint:errorlint // it is the very error
			t.Errorf("at once: %v", err)
		}
		time.Sleep(samePassword - time.Second)
		if r.again(srv) == nil {
			t.Error("after less than a minute it is tried again")
		}
		password = "new"
		if err := r.again(srv); err != nil {
			t.Errorf("another one: %v", err)
		}
		password, failed = "old", errors.New("the file is being written")
		if err := r.again(srv); err != nil {
			t.Errorf("without one: %v", err)
		}
		failed = nil
		time.Sleep(2 * time.Second)
		if err := r.again(srv); err != nil {
			t.Errorf("after a minute: %v", err)
		}
		r.judge(srv, nil)
		if err := r.again(srv); err != nil {
			t.Errorf("when it was taken: %v", err)
		}
	})
}
