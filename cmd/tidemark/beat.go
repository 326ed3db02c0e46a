package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
)

// beat runs heartbeat.action.query beside the stream, one at a time: a query that has to wait for a lock must not hold
// the stream up.
type beat struct {
	server server.Config
	query  string
	log    *zap.Logger
	limit  time.Duration // for connection and query together

	wait    sync.WaitGroup
	running chan struct{} // holds one token while a query runs
	failed  bool          // the last one failed; used by whoever has the token
}

// longestBeat is how long the query may take.
const longestBeat = 30 * time.Second

func newBeat(c *config.Connector, log *zap.Logger) *beat {
	return &beat{server: serverConfig(c, log), query: c.Heartbeats.Query, log: log, limit: longestBeat, running: make(chan struct{}, 1)}
}

// run starts the query, unless the last one still runs. It does not block.
func (b *beat) run(ctx context.Context) {
	if b.query == "" {
		return
	}
	select {
	case b.running <- struct{}{}:
	default:
		return
	}
	b.wait.Go(func() {
		defer func() { <-b.running }()
		limited, cancel := context.WithTimeoutCause(ctx, b.limit, fmt.Errorf("not done within %s; SHOW PROCESSLIST on the server says what it waits for, such as a lock", b.limit))
		defer cancel()
		err := b.execute(limited)
		if err != nil && limited.Err() != nil {
			err = context.Cause(limited)
		}
		switch {
		case err == nil && b.failed:
			b.failed = false
			b.log.Info("heartbeat.action.query works again")
		case err != nil && ctx.Err() == nil && !b.failed:
			b.failed = true
			b.log.Warn("heartbeat.action.query failed; the stream goes on, and it is tried again with the next heartbeat", zap.String("query", b.query), zap.Error(err))
		}
	})
}

func (b *beat) execute(ctx context.Context) error {
	conn, err := server.Connect(ctx, b.server)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Execute(ctx, b.query)
}

// close waits for the query that runs.
func (b *beat) close() { b.wait.Wait() }
