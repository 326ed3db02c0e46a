package main

import (
	"crypto/sha256"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog/server"
)

// refusal keeps a connector that waits for a new password ([renewals]) from trying the old one so often that the server locks the account.
// One goroutine uses it at a time.
type refusal struct {
	ran  bool              // the stream has been open in this process
	err  error             // the last login was refused for its password; nil: it was not
	at   time.Time         // when
	with [sha256.Size]byte // fingerprint of that password
}

// samePassword is how often a password that was refused is tried again: servers lock accounts for that.
const samePassword = time.Minute

// again returns the error of the last attempt if another one now would be the same.
func (r *refusal) again(srv *server.Config) error {
	if r.err == nil || time.Since(r.at) >= samePassword || fingerprint(srv) != r.with {
		return nil
	}
	return r.err
}

// judge notes how an attempt to open the stream ended.
func (r *refusal) judge(srv *server.Config, err error) {
	r.ran = r.ran || err == nil
	r.err = nil
	if r.ran && server.WrongPassword(err) {
		r.err, r.at, r.with = err, time.Now(), fingerprint(srv)
	}
}

// fingerprint is that of the password of the next login.
func fingerprint(srv *server.Config) [sha256.Size]byte {
	password := srv.Password
	if srv.ReadPassword != nil {
		if now, err := srv.ReadPassword(); err == nil {
			password = now
		}
	}
	return sha256.Sum256([]byte(password))
}
