// Package kafka is all that is asked of a Kafka cluster apart from producing change events: clients made from the
// property names of Java's producer, topics, the compacted topic in which a distributed Kafka Connect worker keeps its
// offsets ([TopicStore]), the one beside it with the definitions of tables ([SchemaTopic]), and Debezium's schema history
// ([History]).
package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// maxBufferedRecords bounds the records of a client beside their bytes: a small record costs more than its bytes.
const maxBufferedRecords = 50_000

// What brokers are told of the program.
const softwareName, softwareVersion = "tidemark", "1"

// ClientConfig says how to connect to a cluster.
type ClientConfig struct {
	// Properties are those of Java's producer by name; bootstrap.servers is required. Passwords may be in them, so they
	// are not to be logged. [CheckProperties] tells what has no effect.
	Properties map[string]string

	// Reread gives the properties anew; what they say about security counts for the next connection and login. It may block
	// as reading a file does, and is called from several goroutines, one at a time. Nil: Properties stay, and only the files
	// that they name are read again.
	Reread func() (map[string]string, error)

	// ClientID is the client's name when Properties has no client.id; empty: tidemark.
	ClientID string

	// Dial makes the connections; nil: net.Dialer. TLS is put on top of what it returns.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Line has the producers of change events of this client follow those of earlier clients with the same line, so that what
	// those still had on its way does not get behind what these write, and what those have said of brokers is not said again; nil:
	// they are on their own.
	Line *Line

	// Log is told when a broker becomes unreachable and when it is reachable again, once each; nil: nobody.
	Log *zap.Logger
}

// Line is what clients that follow one another in a process have in common. The zero value begins one. Safe for concurrent use.
type Line struct {
	producers kclient.Line
	outages   outages
}

// Forget has the next producer follow none: it takes a transactional id whoever has it, where it would else end, fenced, if
// somebody else has begun with the id since the one before.
func (l *Line) Forget() { l.producers.Forget() }

// Client is a connection to a cluster, safe for concurrent use. It connects when it is first used and again whenever it
// has to, without end.
type Client struct {
	inner kclient.Client
	admin *kadm.Client
	user  string
	seeds []string
	log   *zap.Logger
	blind sync.Map // transactional ids of which it was said that lost ends cannot be looked for

	undecidedAfter time.Duration // that constant, but in tests
}

// NewClient makes a client without connecting. It returns all faults of the properties at once.
func NewClient(cfg ClientConfig) (*Client, error) { return newClient(cfg) }

func newClient(cfg ClientConfig, more ...kgo.Opt) (*Client, error) {
	s, _, err := readProperties(cfg.Properties)
	if err != nil {
		return nil, err
	}
	log := cfg.Log
	if log == nil {
		log = zap.NewNop()
	}
	id := s.clientID
	if id == "" {
		id = cfg.ClientID
	}
	if id == "" {
		id = "tidemark"
	}
	var line *kclient.Line
	down := new(outages)
	if cfg.Line != nil {
		line, down = &cfg.Line.producers, &cfg.Line.outages
	}
	renew := newRenewal(cfg, &s, log)
	dial := s.dialer(cfg.Dial, renew.tls)
	connection := []kgo.Opt{
		kgo.ClientID(id),
		kgo.SoftwareNameAndVersion(softwareName, softwareVersion),
		kgo.WithHooks(&reachability{log: log, user: s.user, saw: renew.saw, outages: down}),
	}
	if login := renew.mechanism(); login != nil {
		connection = append(connection, kgo.SASL(login))
	}
	opts := append(connection[:len(connection):len(connection)],
		kgo.SeedBrokers(s.servers...),
		kgo.Dialer(dial),
		kgo.ConnIdleTimeout(s.idle),
		kgo.MetadataMaxAge(s.metadataAge),
		kgo.MetadataMinAge(min(250*time.Millisecond, s.metadataAge)), // a new topic, a new leader: seen soon

		// The delivery promise, here for offsets, definitions and the schema history: change events have a producer of our own.
		// A record that fails would have to stop everything, so nothing fails that can still be written: no limit of tries
		// or time, also when the topic is not there for a while.
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.UnknownTopicRetries(-1),
		kgo.StopProducerOnDataLossDetected(),
		kgo.RecordPartitioner(kclient.Partitioner()),

		kgo.ProducerLinger(s.linger),
		kgo.ProducerBatchMaxBytes(s.maxRequest),
		kgo.BrokerMaxWriteBytes(max(100<<20, s.maxRequest)),
		kgo.ProducerBatchCompression(s.compression),
		kgo.MaxBufferedBytes(s.bufferBytes),
		kgo.MaxBufferedRecords(maxBufferedRecords),
		kgo.ProduceRequestTimeout(s.produce),
	)
	cl, err := kgo.NewClient(append(opts, more...)...)
	if err != nil {
		return nil, fmt.Errorf("making the Kafka client: %w", err)
	}
	compressor, err := kgo.DefaultCompressor(s.compression)
	if err != nil {
		cl.Close()
		return nil, fmt.Errorf("making the Kafka client: %w", err)
	}
	c := &Client{
		undecidedAfter: undecidedAfter,
		inner: kclient.Client{
			Kgo: cl, ID: id, MaxRecordBytes: s.maxRequest, BufferBytes: s.bufferBytes, Compressor: compressor, Linger: s.linger,
			Timeout: s.produce, Idle: s.idle, MetadataAge: s.metadataAge, Line: line, Transient: renew.transient, Connect: connector(cl, dial, connection),
			RefusesLogin: refusesLogin, Grew: grew(log),
			Misbehaves: func(address string, err error) {
				log.Warn("Kafka broker answers wrongly or not at all; trying again over a new connection",
					zap.String("broker", address), zap.String("reason", err.Error()))
			},
		},
		admin: kadm.NewClient(cl),
		user:  s.user,
		seeds: s.servers,
		log:   log,
	}
	c.inner.Seed, c.inner.Allow = c.seeds[0], c.allow()
	return c, nil
}

// Internal gives the client to the packages below emitter. It lives as long as c.
func (c *Client) Internal() *kclient.Client { return &c.inner }

// Close ends all connections. Records that are still buffered fail; flush before.
func (c *Client) Close() { c.inner.Kgo.Close() }

// Ping asks any broker for an answer and returns the reason in plain words if none gives one before ctx ends. It tries
// each broker once. [Transient] tells whether trying again can help.
func (c *Client) Ping(ctx context.Context) error {
	err := c.inner.Kgo.Ping(ctx)
	if err == nil {
		return nil
	}
	return c.unreachable(err)
}

func (c *Client) unreachable(err error) error {
	return &reachError{fmt.Sprintf("Kafka at %s cannot be used: %s", strings.Join(c.seeds, ", "), explain(err, c.user)), err}
}

// reachError says a cause in plain words and keeps it.
type reachError struct {
	text  string
	cause error
}

func (e *reachError) Error() string { return e.text }
func (e *reachError) Unwrap() error { return e.cause }

// pause waits before another try, and returns the cause when ctx ends first.
func pause(ctx context.Context, d time.Duration, cause error) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errors.Join(cause, context.Cause(ctx))
	}
}
