// Package kclient is how the packages below emitter share one Kafka connection without an exported signature of theirs
// naming franz-go: emitter/kafka makes a [Client] from Java property names and hands it out by Client.Internal.
package kclient

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrAgain is wrapped by an error that ends a producer, if a new one can go on from the stored offset.
var ErrAgain = errors.New("a new producer can go on from the stored offset")

// Client is one franz-go client with what package producer has to know to write to the same cluster. Safe for concurrent use.
type Client struct {
	// Kgo has a producer of its own, for all that is not change events. It is set up for the same promise: idempotent, acks
	// from all in-sync replicas, retries and delivery time without limit, murmur2 of the key as partition ([Murmur2]), a
	// byte-bounded buffer. So Produce blocks while the buffer is full, and a record that fails has failed for good.
	Kgo *kgo.Client

	// ID is the client's name: Java's client.id.
	ID string

	// MaxRecordBytes is the largest batch in bytes and so, but for about 100 bytes of framing, the largest record: Java's
	// max.request.size. A larger one fails at once with kerr.MessageTooLarge.
	MaxRecordBytes int32

	// BufferBytes bounds the memory of records that are not acknowledged: Java's buffer.memory.
	BufferBytes int

	// Compressor packs record batches, as Java's compression.type says; nil: none.
	Compressor kgo.Compressor

	// Linger is how long a batch waits for more records: Java's linger.ms.
	Linger time.Duration

	// Timeout is how long a broker waits for its replicas: Java's request.timeout.ms.
	Timeout time.Duration

	// Idle is how long a connection may be without use: Java's connections.max.idle.ms.
	Idle time.Duration

	// MetadataAge is how old what is known of topics may become: Java's metadata.max.age.ms.
	MetadataAge time.Duration

	// Line is the earlier producers of change events; nil: each is on its own.
	Line *Line

	// Seed is the address of a broker, for commands in messages, and Allow the beginning of one that allows this client something.
	Seed, Allow string

	// Transient says whether waiting can heal an error of the cluster or of the connection to it.
	Transient func(error) bool

	// Misbehaves hears why a connection was given up whose broker answers wrongly or not at all. It must not block.
	Misbehaves func(address string, err error)

	// RefusesLogin says of an error of Connect that it is about a password or a certificate, which a client that is made anew may
	// have; nil: of none.
	RefusesLogin func(error) bool

	// Grew hears that a topic has more partitions than before, once. It must not block. Nil: nobody.
	Grew func(topic string, before, now int)

	// Connect makes a connection to the broker at an address, which is the caller's then. The error is kgo.ErrClientClosed
	// when the client has ended.
	Connect func(ctx context.Context, address string) (*Connection, error)
}

// Connection is a connection to a broker that takes requests: TLS and login are done.
type Connection struct {
	net.Conn

	// The highest versions of requests that the broker takes; -1: it takes none.
	Produce, AddPartitionsToTxn, EndTxn int16

	// Transactions is the cluster's transaction.version; 0 if it has none.
	Transactions int16
}
