package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/binlog/server"
)

// TestBeatThatTakesTooLong is said, once: a query that waits for a lock fails at each heartbeat. One that the end of the stream breaks
// off is not.
func TestBeatThatTakesTooLong(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	core, logs := observer.New(zapcore.WarnLevel)
	b := &beat{
		server: server.Config{Host: "127.0.0.1", Port: silent.Addr().(*net.TCPAddr).Port, User: "u"}, query: "UPDATE t SET n=n+1", log: zap.New(core),
		limit: 50 * time.Millisecond, running: make(chan struct{}, 1),
	}
	for range 2 {
		b.run(t.Context())
		b.close()
	}
	said := logs.TakeAll()
	if len(said) != 1 {
		t.Fatalf("%d warnings of two queries", len(said))
	}
	if why, _ := said[0].ContextMap()["error"].(string); !strings.Contains(why, "not done within 50ms") {
		t.Errorf("the warning says %q", why)
	}

	b.failed = false
	b.limit = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	b.run(ctx)
	cancel()
	b.close()
	if said := logs.TakeAll(); len(said) != 0 {
		t.Errorf("the end of the stream is said to be the query's fault: %v", said)
	}
}
