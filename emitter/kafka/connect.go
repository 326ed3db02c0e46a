package kafka

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// connector returns what [kclient.Client.Connect] is. A client of franz-go dials, agrees on versions and logs in, as for all
// its requests, and then leaves the connection to the caller: each request over it costs a client of its own several goroutines.
func connector(client *kgo.Client, dial dialFunc, opts []kgo.Opt) func(context.Context, string) (*kclient.Connection, error) {
	return func(ctx context.Context, address string) (*kclient.Connection, error) {
		if client.Context().Err() != nil {
			return nil, kgo.ErrClientClosed
		}
		var last *handed
		one, err := kgo.NewClient(append(opts[:len(opts):len(opts)], kgo.SeedBrokers(address),
			kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				if err != nil {
					return nil, err
				}
				last = &handed{Conn: conn}
				return last, nil
			}))...)
		if err != nil {
			return nil, err
		}
		defer one.Close()
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = softwareName, softwareVersion
		kresp, err := one.SeedBrokers()[0].Request(ctx, req)
		if err != nil {
			return nil, err
		}
		resp := kresp.(*kmsg.ApiVersionsResponse)
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return nil, fmt.Errorf("asking for the versions of its requests: %w", err)
		}
		c := &kclient.Connection{Conn: last.take(), Produce: -1, AddPartitionsToTxn: -1, EndTxn: -1}
		for _, key := range resp.ApiKeys {
			switch kmsg.Key(key.ApiKey) {
			case kmsg.Produce:
				c.Produce = key.MaxVersion
			case kmsg.AddPartitionsToTxn:
				c.AddPartitionsToTxn = key.MaxVersion
			case kmsg.EndTxn:
				c.EndTxn = key.MaxVersion
			}
		}
		for _, f := range resp.FinalizedFeatures {
			if f.Name == "transaction.version" {
				c.Transactions = f.MaxVersionLevel
			}
		}
		return c, nil
	}
}

// handed is a connection that a client of franz-go has until it is taken away.
type handed struct {
	net.Conn
	mu    sync.Mutex
	taken bool
}

// take makes the connection the caller's. No request of the client may be under way.
func (h *handed) take() net.Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken = true
	_ = h.Conn.SetDeadline(time.Time{}) // a connection that is broken says so when it is used
	return h.Conn
}

// unlessTaken does for the client what a connection does for its owner.
func (h *handed) unlessTaken(f func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken {
		return nil
	}
	return f()
}

func (h *handed) Close() error { return h.unlessTaken(h.Conn.Close) }

func (h *handed) SetDeadline(t time.Time) error {
	return h.unlessTaken(func() error { return h.Conn.SetDeadline(t) })
}

func (h *handed) SetReadDeadline(t time.Time) error {
	return h.unlessTaken(func() error { return h.Conn.SetReadDeadline(t) })
}

func (h *handed) SetWriteDeadline(t time.Time) error {
	return h.unlessTaken(func() error { return h.Conn.SetWriteDeadline(t) })
}
