package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

const (
	// markersPause is how long after an answer that the end of the transaction before is still being written it is asked again,
	// at first: that takes about two of them.
	markersPause = time.Millisecond
	// mostMarkersPause is that pause at most.
	mostMarkersPause = 50 * time.Millisecond
	// mostExplicit is the last version of AddPartitionsToTxn that is for clients.
	mostExplicit = 3
	// Without transaction.version 2, the last versions of requests that leave the epoch as it is and add no partitions.
	mostProduce, mostEnd = 11, 4
	// secondProtocol is the transaction.version with an epoch for each transaction.
	secondProtocol = 2
)

// run has the id, and then does what is asked of the coordinator, one thing after the other.
func (t *transactions) run() {
	defer close(t.stopped)
	p := t.p
	if !t.initialize() {
		return
	}
	pause, slow := markersPause, p.cfg.firstPause
	for p.ctx.Err() == nil {
		p.mu.Lock()
		first, unasked := t.queue[0], t.unasked()
		switch {
		case t.aborting && p.underWay():
			p.mu.Unlock()
			t.wait()
		case t.aborting:
			why := t.why
			p.mu.Unlock()
			t.aborted = t.abort(first)
			p.cancel(why)
			return
		case first.cut && first.batches == 0:
			p.mu.Unlock()
			t.end(first)
			pause = markersPause
		case t.looksBack(first):
			in, known := t.written(), t.doubts
			p.mu.Unlock()
			if err := t.doubt(in, known); err != nil {
				p.fail(err)
			}
		case len(t.wanted) > 0 && t.proving == 0 && len(unasked) > 0:
			known, told := t.doubts, first.told
			p.mu.Unlock()
			switch all, err := t.ask(unasked, known, told); {
			case err != nil:
				p.fail(err)
			case !all:
				p.pause(slow)
				slow = min(2*slow, p.cfg.mostPause)
			}
		case len(t.wanted) > 0 && t.proving == 0:
			parts := t.toAdd(first)
			p.mu.Unlock()
			switch err := t.add(first, parts); {
			case err == nil:
				pause, slow = markersPause, p.cfg.firstPause
			case errors.Is(err, kerr.ConcurrentTransactions):
				p.pause(pause)
				pause = min(2*pause, mostMarkersPause)
			default:
				p.pause(slow)
				slow = min(2*slow, p.cfg.mostPause)
			}
		default:
			p.mu.Unlock()
			t.wait()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.queue[0].told {
		t.aborted = context.Cause(p.ctx)
	}
}

func (t *transactions) wait() {
	select {
	case <-t.bell:
	case <-t.p.ctx.Done():
	}
}

// underWay tells whether there are requests without an answer. The caller holds the lock.
func (p *Producer) underWay() bool {
	for _, b := range p.brokers {
		if b.requests > 0 {
			return true
		}
	}
	return false
}

// initialize gets the producer's id and a new epoch, which ends what is open of the transactional id and fences its earlier
// producers. It returns false if the producer has ended.
func (t *transactions) initialize() bool {
	p := t.p
	short := markersPause
	for pause := p.cfg.firstPause; ; pause = min(2*pause, p.cfg.mostPause) {
		if !p.may() {
			return false
		}
		err := t.begin()
		if err == nil {
			err = t.recover()
		}
		switch {
		case err == nil:
			close(p.ready)
			return true
		case p.ctx.Err() != nil:
			return false
		case errors.Is(err, kerr.ConcurrentTransactions): // an earlier one is being ended
			if !p.pause(short) {
				return false
			}
			short, pause = min(2*short, mostMarkersPause), p.cfg.firstPause/2
			continue
		case errors.Is(err, ErrFenced):
			p.fail(err)
			return false
		case !p.cfg.Client.Transient(err):
			p.fail(t.refusal(err))
			return false
		}
		if !p.pause(pause) {
			return false
		}
	}
}

func (t *transactions) begin() error {
	p := t.p
	if err := t.untaken(); err != nil {
		return err
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &t.id, int32(t.most.Milliseconds())
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp, err := req.RequestWith(p.ctx, p.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return err
	}
	c, err := t.connection()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id, p.epoch, t.begins = resp.ProducerID, resp.ProducerEpoch, resp.ProducerEpoch
	t.version, t.used = c.made.Transactions, time.Now()
	return nil
}

// refusal says why there is no id.
func (t *transactions) refusal(err error) error {
	const doing = "asking Kafka for the id of a transactional producer"
	switch {
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return fmt.Errorf("transactional id %s: %s: transaction.timeout.ms=%d is larger than transaction.max.timeout.ms of the brokers; lower the one or raise the other: %w",
			t.id, doing, t.most.Milliseconds(), err)
	case ends(err):
		t.p.mu.Lock()
		defer t.p.mu.Unlock()
		return t.failure(err, doing)
	}
	return fmt.Errorf("transactional id %s: %s: %w", t.id, doing, err)
}

// toAdd is the partitions to be added now. The caller holds the lock, and calls add then.
func (t *transactions) toAdd(first *transaction) []*partition {
	parts := t.wanted
	t.wanted, t.adding = nil, true
	if !first.told {
		first.begun = time.Now()
		for _, part := range t.every {
			if !part.held && !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// add adds partitions to a transaction. It returns an error if that has to be tried again with some of them.
func (t *transactions) add(first *transaction, parts []*partition) error {
	resp, sent, err := t.call(t.addition(parts), func(c *kclient.Connection) int16 { return min(c.AddPartitionsToTxn, mostExplicit) })
	answers := make(map[partitionKey]error)
	if err == nil {
		for _, topic := range resp.(*kmsg.AddPartitionsToTxnResponse).Topics {
			for _, part := range topic.Partitions {
				answers[partitionKey{topic: topic.Topic, partition: part.Partition}] = kerr.ErrorForCode(part.ErrorCode)
			}
		}
	}

	p := t.p
	p.mu.Lock()
	t.adding = false
	var failed error
	again := err // one that says more than that the coordinator is busy, if there is one
	added := parts[:0]
	for _, part := range parts {
		cause, there := answers[partitionKey{topic: part.topic.name, partition: part.number}]
		if there && cause == nil {
			part.in = first
			added = append(added, part)
			continue
		}
		if refused := t.unaddable(part, cause); refused != nil {
			failed = refused
		}
		if again == nil || errors.Is(again, kerr.ConcurrentTransactions) || errors.Is(again, kerr.OperationNotAttempted) {
			again = cmp.Or(cause, errNoAnswer)
		}
		if part.held {
			t.wanted = append(t.wanted, part)
		}
	}
	first.told = first.told || len(added) > 0 || err != nil && sent
	switch {
	case err == nil:
		t.used = time.Now()
	case sent && t.version < secondProtocol:
		failed = fmt.Errorf("transactional id %s: the connection to its coordinator has ended, and what was sent over it might get into a later transaction: %w: %w", t.id, ErrAgain, err)
	case hopeless(err):
		failed = err
	}
	t.wanted = slices.DeleteFunc(t.wanted, func(part *partition) bool { return part.in == first }) // appended to meanwhile
	t.release(added)
	p.wakeAll() // for partitions that have waited
	p.unlock()
	if failed != nil {
		p.fail(failed)
	} else {
		t.look(again)
	}
	return again
}

// addition is the request that adds partitions, which it sorts.
func (t *transactions) addition(parts []*partition) *kmsg.AddPartitionsToTxnRequest {
	slices.SortFunc(parts, func(x, y *partition) int { return strings.Compare(x.topic.name, y.topic.name) })
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.id, t.p.id, t.p.epoch
	for i, part := range parts {
		if i == 0 || part.topic != parts[i-1].topic {
			topic := kmsg.NewAddPartitionsToTxnRequestTopic()
			topic.Topic = part.topic.name
			req.Topics = append(req.Topics, topic)
		}
		topic := &req.Topics[len(req.Topics)-1]
		topic.Partitions = append(topic.Partitions, part.number)
	}
	return req
}

// unaddable is the error that ends the producer if an answer says that a partition cannot be added, whenever that is tried.
func (t *transactions) unaddable(part *partition, cause error) error {
	switch {
	case cause == nil, kerr.IsRetriable(cause), errors.Is(cause, kerr.ConcurrentTransactions), errors.Is(cause, kerr.OperationNotAttempted):
		return nil
	case ends(cause):
		return t.failure(cause, "adding topic "+part.topic.name+" to the transaction")
	case len(part.queue) > 0:
		return refusal(part, cause, nil)
	}
	return fmt.Errorf("adding topic %s to the transaction: %w", part.topic.name, cause)
}

var errNoAnswer = errors.New("the answer says nothing of what was asked")

// hopeless says of the lack of an answer that trying again does not help.
func hopeless(err error) bool {
	return errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, kerr.UnsupportedVersion) || errors.Is(err, kerr.TransactionalIDAuthorizationFailed)
}

// look has the coordinator looked up again if an answer says that it is another one, and topics that are not known.
func (t *transactions) look(cause error) {
	switch {
	case errors.Is(cause, kerr.UnknownTopicOrPartition):
		t.p.ask()
	case errors.Is(cause, kerr.NotCoordinator), errors.Is(cause, kerr.CoordinatorNotAvailable), errors.Is(cause, kerr.CoordinatorLoadInProgress):
		t.p.mu.Lock()
		c := t.peer.conn
		t.p.mu.Unlock()
		if c != nil {
			c.end(errNotConnected)
		}
	}
}

// end ends the first transaction, of which everything is acknowledged, and goes on to the next one.
func (t *transactions) end(first *transaction) {
	p := t.p
	if first.told {
		if err := t.finish(true); err != nil {
			p.fail(err)
			return
		}
	}
	p.mu.Lock()
	t.committed = t.committed || first.told
	t.queue = t.queue[1:]
	waiting := t.waiting
	t.waiting = nil
	t.release(waiting)
	p.unlock()
	first.ended(nil)
	first.ended = nil // partitions keep the transaction for long
}

// abort ends the first transaction with nothing of it.
func (t *transactions) abort(first *transaction) error {
	if !first.told {
		return nil
	}
	return t.finish(false)
}

// finish sends the end of a transaction until it is answered. It never sends it again when there is no answer: were it delivered late,
// it could end the next transaction.
func (t *transactions) finish(commit bool) error {
	p := t.p
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = t.id, p.id, p.epoch, commit
	doing := "committing"
	if !commit {
		doing = "aborting"
	}
	short, pause := markersPause, p.cfg.firstPause
	for {
		resp, sent, err := t.call(req, func(c *kclient.Connection) int16 {
			if t.version < secondProtocol {
				return min(c.EndTxn, mostEnd)
			}
			return c.EndTxn
		})
		if err == nil {
			answer := resp.(*kmsg.EndTxnResponse)
			if err = kerr.ErrorForCode(answer.ErrorCode); err == nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				t.used = time.Now()
				if answer.Version > mostEnd && answer.ProducerID >= 0 {
					if answer.ProducerID != p.id { // the epochs of one have an end
						t.begins = answer.ProducerEpoch
					}
					p.id, p.epoch = answer.ProducerID, answer.ProducerEpoch
					t.series++
				}
				return nil
			}
			switch {
			case ends(err):
				p.mu.Lock()
				defer p.mu.Unlock()
				return t.failure(err, doing)
			case errors.Is(err, kerr.ConcurrentTransactions):
				if !p.pause(short) {
					return p.ctx.Err()
				}
				short = min(2*short, mostMarkersPause)
				continue
			case kerr.IsRetriable(err):
				t.look(err)
			case errors.Is(err, kerr.UnknownServerError):
				t.unanswered = true
				return fmt.Errorf("transactional id %s: %s: %w: %w", t.id, doing, ErrUnknownOutcome, err)
			default:
				return fmt.Errorf("transactional id %s: %s: %w", t.id, doing, err)
			}
		} else if sent {
			t.unanswered = true
			return fmt.Errorf("transactional id %s: %s: %w: its coordinator was told, and there is no answer: %w", t.id, doing, ErrUnknownOutcome, err)
		} else if p.ctx.Err() != nil || hopeless(err) {
			return err
		}
		if !p.pause(pause) {
			return p.ctx.Err()
		}
		pause = min(2*pause, p.cfg.mostPause)
	}
}

// call sends a request to the coordinator and waits for its answer. Without one, sent says whether the request may have arrived.
func (t *transactions) call(req kmsg.Request, most func(*kclient.Connection) int16) (answer kmsg.Response, sent bool, err error) {
	p := t.p
	c, err := t.connection()
	if err != nil {
		return nil, false, err
	}
	version := min(most(c.made), req.MaxVersion())
	if version < 0 {
		return nil, false, fmt.Errorf("the broker at %s has no transactions: %w", c.address, kerr.UnsupportedVersion)
	}
	req.SetVersion(version)
	frame := p.formatter.AppendRequest(nil, req, c.next)
	done := make(chan error, 1)
	e := exchange{number: c.next, answer: req.ResponseKind(), done: func(err error) { done <- err }}
	c.next++
	if !p.may() {
		return nil, false, ErrStale
	}
	if err := c.write(e, net.Buffers{frame}); err != nil {
		return nil, false, err
	}
	select {
	case err := <-done:
		return e.answer, true, err
	case <-p.ctx.Done():
		return nil, true, p.ctx.Err()
	}
}

// connection is the one to the coordinator, which is looked up if there is none.
func (t *transactions) connection() (*connection, error) {
	p := t.p
	p.mu.Lock()
	c := t.peer.conn
	p.mu.Unlock()
	if c != nil {
		return c, nil
	}
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = 1, t.id, []string{t.id}
	resp, err := req.RequestWith(p.ctx, p.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(resp.Host, strconv.Itoa(int(resp.Port)))
	made, err := p.cfg.Client.Connect(p.ctx, address)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c = t.peer.connected(made, address)
	p.running.Go(c.read)
	return c, nil
}
