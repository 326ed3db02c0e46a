package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/offset"
)

const (
	// fenceTimeout is how long the transaction of an offset may be open. It has two records.
	fenceTimeout = time.Minute
	// fenceWait is how long the coordinator of transactions is waited for while the cluster answers otherwise.
	fenceWait = 15 * time.Second
	// fenceWaitAgain is the same when that was in vain before.
	fenceWaitAgain = time.Second
)

// fence is the writer of the offset under a key. It belongs to who has the key's token.
type fence struct {
	*transactional
	store *TopicStore
	last  *Prepared // what was stored last since the offset was loaded …
	tried *Prepared // … and what may have been stored after it
}

// Fence takes a transactional id for a key: from now on [TopicStore.Save] stores offset and side record under it in one
// transaction, which fails with an error that wraps [offset.ErrUnusable] when somebody else has taken the id since. So one that
// was suspended, or cut off, and goes on later can no more set the offset back. It blocks until whatever transaction of the id
// was open has ended, so that what is loaded afterwards is the last offset. It is to be called anew before each Load.
//
// Where the cluster or its permissions do not allow transactions, that is said once, and Save writes without them.
func (s *TopicStore) Fence(ctx context.Context, key offset.Key, id string) error {
	k, giveBack, err := s.take(ctx, key)
	if err != nil {
		return fmt.Errorf("offsets topic %s: %w", s.topic, err)
	}
	defer giveBack()
	if k.fence != nil {
		k.fence.close()
		k.fence, k.last = nil, nil
	}
	if err := s.settle(ctx, k); err != nil {
		return fmt.Errorf("offsets topic %s: %w", s.topic, err)
	}
	wait := s.fenceWait
	if k.open {
		wait = min(wait, fenceWaitAgain)
	}
	f, err := s.openFence(ctx, id, wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		if err := s.client.Ping(ctx); err != nil {
			return fmt.Errorf("offsets topic %s: %w", s.topic, err)
		}
	}
	switch why := notFenced(s.client, err, id); {
	case err == nil:
		k.fence = f
	case ctx.Err() != nil || why == "":
		return err
	case !k.open:
		k.open = true
		s.log.Warn("the offset is stored without a transaction, so that another process with this connector's name, which was suspended or cut off, could still set it back when it goes on: "+why,
			zap.String("transactional.id", id), zap.Error(err))
	}
	return nil
}

// openFence takes a transactional id, for which it waits only so long.
func (s *TopicStore) openFence(ctx context.Context, id string, most time.Duration) (*fence, error) {
	w := newTransactional(s.client.Internal(), 1<<20, s.Ends(id, nil, nil), s.again)
	f := &fence{transactional: w, store: s}
	if !s.keepFence(f) {
		f.close()
		return nil, errClosed
	}
	if err := w.begin(ctx, s.topic, most); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// loaded has what is in the topic count, which has been read.
func (f *fence) loaded(now *Prepared) { f.last, f.tried = now, nil }

// close ends the producer. Any goroutine may call it, more than once.
func (f *fence) close() {
	f.store.mu.Lock()
	delete(f.store.fences, f)
	f.store.mu.Unlock()
	f.transactional.close()
}

// keepFence has the store end a producer with itself, unless it has ended.
func (s *TopicStore) keepFence(f *fence) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.fences[f] = struct{}{}
	}
	return !s.closed
}

// saveFenced is Save in a transaction.
func (s *TopicStore) saveFenced(ctx context.Context, key offset.Key, k *savedKey, o offset.Offset) error {
	if k.last != nil { // not waited for to its end
		if err := k.last.wait(ctx); err == nil {
			k.fence.last, k.last = k.fence.tried, nil
		} else if ctx.Err() != nil {
			return err
		}
	}
	if err := k.fence.ended(); err != nil {
		if err := s.fenceAgain(ctx, key, k, err); err != nil {
			return err
		}
	}
	f := k.fence
	next := s.prepare(key, o, f.last)
	if len(next.Entries) == 0 {
		f.last = next
		return nil
	}
	f.tried = next
	k.last = f.write(next.Entries, next.offset)
	if err := k.last.wait(ctx); err != nil {
		if errors.Is(err, producer.ErrFenced) {
			return fenced(err)
		}
		return withSize(err, next.Entries)
	}
	f.last, k.last = next, nil
	return nil
}

// withSize adds what helps when a record of an offset is refused for its size.
func withSize(err error, entries []Entry) error {
	if !errors.Is(err, kerr.MessageTooLarge) {
		return err
	}
	most := 0
	for _, e := range entries {
		most = max(most, len(e.Key)+len(e.Value))
	}
	return fmt.Errorf("%w: the record has %d bytes; raise max.request.size of the worker's producer and max.message.bytes of the topic", err, most)
}

// fenced is the error after which nothing can be stored.
func fenced(err error) error { return fmt.Errorf("%w: %w", offset.ErrUnusable, err) }

// fenceAgain goes on after a fault, with a new producer. What has become of the transaction under way is then known, and in
// the topic is what was stored last or was to be. If it is anything else, somebody else has written it.
func (s *TopicStore) fenceAgain(ctx context.Context, key offset.Key, k *savedKey, cause error) error {
	if errors.Is(cause, producer.ErrFenced) {
		return fenced(cause)
	}
	f, err := s.openFence(ctx, k.fence.id, s.fenceWait)
	if err != nil {
		return errors.Join(cause, err)
	}
	before := k.fence
	before.close()
	k.fence, k.last = f, nil
	f.last, f.tried = before.last, before.tried
	if err := s.readToEnd(ctx); err != nil {
		f.failed(err) // so that the next Save comes here again
		return err
	}
	now := s.present(key)
	known := f.last == nil && f.tried == nil || now.value == nil // nothing is there any more, as in a topic that was made anew
	for _, p := range []*Prepared{f.last, f.tried} {
		known = known || p != nil && bytes.Equal(now.value, p.value)
	}
	if !known {
		return fmt.Errorf("%w: under %s is %s, which somebody else has written: another instance of this connector, or Kafka Connect, seems to run", offset.ErrUnusable, key, now.value)
	}
	f.loaded(now)
	return nil
}

// unfence ends all producers.
func (s *TopicStore) unfence() {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.fences))
	s.mu.Unlock()
	for _, f := range all {
		f.close()
	}
}
