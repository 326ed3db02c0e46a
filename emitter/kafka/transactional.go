package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/offset"
)

// transactional writes a few records to one topic in transactions of a transactional id, one after the other, until somebody else takes
// the id. Methods but close are for one goroutine at a time.
type transactional struct {
	id       string
	again    func(context.Context) error // makes the topic anew
	producer *producer.Producer
	topic    *producer.Topic

	mu   sync.Mutex
	err  error // what ended the producer
	wait *sent // is under way
}

var errClosed = errors.New("the store is closed")

// patience is how long a topic is waited for until it may have been deleted.
const patience = 5 * time.Second

// newTransactional makes one that begin connects. A topic that is deleted is made by again.
func newTransactional(client *kclient.Client, most int, ends *Ends, again func(context.Context) error) *transactional {
	w := &transactional{id: ends.id, again: again}
	w.mu.Lock() // against a producer that fails before it is known here
	defer w.mu.Unlock()
	w.producer = producer.New(producer.Config{
		Client: client, MaxBytes: most, Acked: func([]producer.Part) {}, Failed: w.failed, Missing: w.missing,
		Transaction: &producer.Transaction{ID: ends.id, Timeout: fenceTimeout, Ends: ends},
	})
	return w
}

// begin takes the id, for which it waits only so long. It blocks until whatever transaction of the id was open has ended.
func (w *transactional) begin(ctx context.Context, topic string, most time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := w.producer.Ready(wait)
	if err == nil {
		err = w.find(ctx, topic)
	}
	if failed := w.ended(); failed != nil { // names the id, too
		return failed
	}
	if err != nil {
		return fmt.Errorf("waiting for the cluster to give transactional id %s to this instance: %w", w.id, err)
	}
	return nil
}

// find has the topic known, which is made anew if it was deleted.
func (w *transactional) find(ctx context.Context, topic string) (err error) {
	for {
		short, cancel := context.WithTimeout(ctx, patience)
		w.topic, err = w.producer.Topic(short, topic)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if err := w.again(ctx); err != nil {
			return err
		}
	}
}

// missing hears that the topic is not there: what waits for it fails, since whatever takes its place is another one.
func (w *transactional) missing(ctx context.Context, _ string) {
	if err := w.again(ctx); err != nil && ctx.Err() == nil {
		w.failed(err)
	}
}

// failed hears why the producer has ended.
func (w *transactional) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.decide(w.err)
}

// decide says what has become of the transaction under way. The lock is held.
func (w *transactional) decide(err error) {
	if w.wait != nil {
		w.wait.err = err
		close(w.wait.done)
		w.wait = nil
	}
}

// ended is what has ended the producer; nil: nothing has.
func (w *transactional) ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// close ends the producer. Any goroutine may call it, more than once.
func (w *transactional) close() {
	w.producer.Close()
	w.failed(errClosed)
}

// write sends a transaction; at is where the stream is, for messages.
func (w *transactional) write(entries []Entry, at offset.Offset) *sent {
	under := &sent{done: make(chan struct{})}
	w.mu.Lock()
	if w.err != nil {
		under.err = w.err
		close(under.done)
		w.mu.Unlock()
		return under
	}
	w.wait = under
	w.mu.Unlock()
	w.producer.Begin(time.Now())
	for _, e := range entries {
		one := producer.Record{Key: e.Key, Value: e.Value, Headers: producer.NoHeaders, File: at.File, Pos: at.Pos}
		w.producer.Append(w.topic, w.topic.Partition(e.Partition, e.Key, e.Value), &one)
	}
	w.producer.End()
	w.producer.Cut(func(err error) {
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.decide(nil)
		}
	})
	return under
}

// notFenced says why there can be no transactions and what helps; "" where it is another error.
func notFenced(c *Client, err error, id string) string {
	switch {
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return fmt.Sprintf("allow it: %s --operation Write --operation Describe --transactional-id '%s'", c.allow(), id)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return "allow it: " + c.allow() + " --operation IdempotentWrite --cluster"
	case errors.Is(err, kerr.UnsupportedVersion):
		return "the brokers know no transactions, which Kafka has since 0.11"
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return "the brokers' transaction.max.timeout.ms is less than a minute"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, kerr.CoordinatorNotAvailable):
		return "the brokers have no coordinator for transactions; with fewer than three of them set transaction.state.log.replication.factor"
	}
	return ""
}
