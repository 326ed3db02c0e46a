package main

import (
	"errors"
	"sync/atomic"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// renewals knows what waiting can heal besides what is gone by itself: once a connector has streamed, a login or certificate that is
// refused may be one that is just being replaced. Certificates and what config providers give are read anew at each attempt. A
// password in the configuration itself stays what it is, so that its refusal stops the connector, as at a start. What only the server's
// side can mend, such as an account that is locked or has lost a privilege, is waited for.
type renewals struct {
	c        *config.Connector
	streamed atomic.Bool
}

// opened notes that the source could be opened.
func (r *renewals) opened(err error) error {
	if err == nil {
		r.streamed.Store(true)
	}
	return err
}

func (r *renewals) transient(err error) bool {
	switch {
	case transient(err):
		return true
	case !r.streamed.Load():
		return false
	case errors.Is(err, server.ErrCertificate):
		return true
	case errors.Is(err, server.ErrAccess):
		return r.c.ReadPassword != nil || !server.WrongPassword(err) // it is locked, or lacks a privilege
	}
	certificate, login := kafka.Refused(err)
	return certificate || login && r.c.ProducerReread != nil
}
