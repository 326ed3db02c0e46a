package producer

import (
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// untaken returns an error that says so if somebody else has taken the transactional id since the producer before this one in its
// line, since asking for the id would take it back. It is asked beforehand, and not by the id and epoch that the request for a new one
// can carry (KIP-360): when a transaction is open, a coordinator ends that and fences its producer before it looks at them. Without an
// answer from a cluster that knows the question, as Kafka does since 3.0, the id is taken.
func (t *transactions) untaken() error {
	line := t.p.cfg.Client.Line
	if line == nil {
		return nil
	}
	held := line.Held()
	if held == nil {
		return nil
	}
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{t.id}
	resp, err := req.RequestWith(t.p.ctx, t.p.client)
	if err == nil && len(resp.TransactionStates) != 1 {
		err = errNoAnswer
	}
	var state kmsg.DescribeTransactionsResponseTransactionState
	if err == nil {
		state = resp.TransactionStates[0]
		err = kerr.ErrorForCode(state.ErrorCode)
	}
	switch {
	case err != nil && t.p.cfg.Client.Transient(err):
		return err
	case err == nil && !t.left(held, state.ProducerID, state.ProducerEpoch):
		t.p.mu.Lock()
		defer t.p.mu.Unlock()
		t.used = held.Used
		return fmt.Errorf("this process had producer id %d with epoch %d last, and the cluster is at %d with epoch %d: %w", held.ID, held.Epoch, state.ProducerID, state.ProducerEpoch, kerr.ProducerFenced)
	}
	line.Release() // once the request for the id is sent, nobody knows at what epoch the cluster is
	return nil
}

// left says of what a cluster says of the id that nobody else has taken it since a producer left it so. By itself the cluster goes on by
// an epoch with the end of each transaction that it was told, as far as epochs are for one transaction each; and when it ends one that
// has timed out by one more.
func (t *transactions) left(h *kclient.Held, id int64, epoch int16) bool {
	perEnd, most := 0, 0
	if h.Version >= secondProtocol {
		perEnd = 1
	}
	if h.Unanswered {
		most = perEnd
	}
	if !h.Open.IsZero() && time.Since(h.Open) >= t.most/2 {
		most = 1 + perEnd
	}
	if id != h.ID { // the epochs of one have an end
		return int(h.Epoch)+most >= math.MaxInt16-1 && int(epoch) <= most
	}
	return int(epoch) <= int(h.Epoch)+most
}

// leave says in its line at what the id is that this producer had. It has ended. The caller holds the lock.
func (t *transactions) leave(line *kclient.Line) {
	h := kclient.Held{ID: t.p.id, Epoch: t.p.epoch, Version: t.version, Used: t.used, Unanswered: t.unanswered, Open: t.ending}
	if first := t.queue[0]; first.told {
		h.Open = first.begun
	}
	line.Hold(h)
}
