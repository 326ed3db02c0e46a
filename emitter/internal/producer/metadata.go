package producer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// initialize gets the producer's id, which the cluster gives to each new one.
func (p *Producer) initialize() {
	if p.transactions != nil {
		p.transactions.run()
		return
	}
	for pause := p.cfg.firstPause; ; pause = min(2*pause, p.cfg.mostPause) {
		err := p.follow()
		if err == nil {
			close(p.ready)
			return
		}
		if p.ctx.Err() != nil {
			return
		}
		if !p.cfg.Client.Transient(err) {
			p.fail(fmt.Errorf("asking Kafka for the id of an idempotent producer: %w", err))
			return
		}
		if !p.pause(pause) {
			return
		}
	}
}

// follow takes the id of the producer before this one, or else a new one.
func (p *Producer) follow() error {
	if line := p.cfg.Client.Line; line != nil {
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = []kmsg.MetadataRequestTopic{}
		resp, err := req.RequestWith(p.ctx, p.client)
		if err != nil {
			return err
		}
		if resp.ClusterID != nil {
			p.cluster = *resp.ClusterID
		}
		if id, epoch, ok := line.Follow(p.cluster); ok {
			p.id, p.epoch = id, epoch
			return nil
		}
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp, err := req.RequestWith(p.ctx, p.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err == nil {
		p.id, p.epoch = resp.ProducerID, resp.ProducerEpoch
	}
	return err
}

// leave lets the next producer follow this one, which has ended. One whose id a broker knows otherwise has none to follow.
func (p *Producer) leave() {
	line := p.cfg.Client.Line
	if line == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ready:
		switch {
		case p.transactions != nil:
			p.transactions.leave(line)
		case !p.spoilt:
			line.Leave(p.cluster, p.id, p.epoch)
		}
	default:
	}
}

// pause waits; false: the producer has ended.
func (p *Producer) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-p.ctx.Done():
		return false
	}
}

// Topic returns a topic, once the cluster knows it, or an error when ctx or the producer ends first or the topic may not be seen.
func (p *Producer) Topic(ctx context.Context, name string) (*Topic, error) {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, p.cfg.mostPause) {
		p.mu.Lock()
		t := p.topics[name]
		p.mu.Unlock()
		if t != nil {
			return t, nil
		}
		err := p.refresh(ctx, []string{name})
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case p.ctx.Err() != nil:
			return nil, p.ctx.Err()
		case !p.cfg.Client.Transient(err) && !errors.Is(err, kerr.UnknownTopicOrPartition):
			return nil, fmt.Errorf("topic %s: %w", name, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		case <-p.ctx.Done():
		}
	}
}

// ask has the topics looked up anew soon.
func (p *Producer) ask() {
	select {
	case p.stale <- struct{}{}:
	default:
	}
}

// refreshTopics keeps up with leaders and numbers of partitions: when a fault asks for it, and now and then.
func (p *Producer) refreshTopics() {
	pause := p.cfg.firstPause // between two at least, and longer while they fail
	for {
		select {
		case <-p.stale:
		case <-time.After(p.cfg.Client.MetadataAge):
		case <-p.ctx.Done():
			return
		}
		if err := p.refreshAll(); err != nil {
			p.ask()
			pause = min(2*pause, p.cfg.mostPause)
		} else {
			pause = p.cfg.firstPause
		}
		if !p.pause(pause) {
			return
		}
	}
}

// refreshMany is how many topics are asked for at once.
const refreshMany = 1000

func (p *Producer) refreshAll() error {
	p.mu.Lock()
	names := make([]string, 0, len(p.topics))
	for name := range p.topics {
		names = append(names, name)
	}
	p.mu.Unlock()
	var failed error
	for names := range slices.Chunk(names, refreshMany) {
		if err := p.refresh(p.ctx, names); err != nil {
			failed = err // of one topic perhaps, which the others do not wait for
		}
	}
	return failed
}

// refresh looks topics up. It returns an error if the cluster does not answer, or has something against one of them.
func (p *Producer) refresh(ctx context.Context, names []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	select {
	case p.refreshing <- struct{}{}:
		defer func() { <-p.refreshing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	req := kmsg.NewPtrMetadataRequest()
	for i := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &names[i]
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return err
	}
	err = p.learnAll(resp)
	if errors.Is(err, errAnew) {
		p.fail(err)
	}
	return err
}

// errAnew ends a producer, for the numbers of its batches are those of the topic that was before, and so may be the partitions of its
// records. A new producer can go on.
var errAnew = fmt.Errorf("was deleted and made anew: %w", kerr.UnknownTopicID)

func (p *Producer) learnAll(resp *kmsg.MetadataResponse) (err error) {
	var moved []*connection
	defer func() {
		for _, c := range moved {
			c.end(errMoved)
		}
	}()
	p.mu.Lock()
	defer p.unlock()
	clear(p.addresses)
	for _, b := range resp.Brokers {
		p.addresses[b.NodeID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	}
	for node, b := range p.brokers { // another broker may have the address that a connection was made to, and answer there
		if now, known := p.addresses[node]; known && b.conn != nil && b.conn.address != now {
			moved = append(moved, b.conn)
		}
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.Topic == nil {
			continue
		}
		failed := kerr.ErrorForCode(t.ErrorCode)
		if failed == nil && len(t.Partitions) == 0 {
			failed = kerr.UnknownTopicOrPartition
		}
		if failed == nil {
			failed = p.learn(t)
		}
		p.look(*t.Topic, failed)
		if failed != nil && !errors.Is(err, errAnew) {
			err = failed
		}
	}
	return err
}

// learn takes up what the cluster says of a topic. It returns an error if a partition has no leader, and asks again then.
func (p *Producer) learn(t *kmsg.MetadataResponseTopic) error {
	topic := p.topics[*t.Topic]
	if topic == nil {
		topic = &Topic{name: *t.Topic}
	}
	switch none := [16]byte{}; {
	case topic.id == none:
		topic.id = t.TopicID
	case t.TopicID != none && t.TopicID != topic.id: // an old broker may not know it
		return fmt.Errorf("topic %s %w", topic.name, errAnew)
	}
	p.grows(topic, len(t.Partitions))
	var missing error
	for i := range t.Partitions {
		number := int(t.Partitions[i].Partition)
		if number >= len(t.Partitions) || number < 0 {
			return fmt.Errorf("topic %s has %d partitions, and one of them has the number %d", topic.name, len(t.Partitions), number)
		}
		for len(topic.partitions) <= number {
			topic.partitions = append(topic.partitions, &partition{topic: topic, number: int32(len(topic.partitions))})
		}
		part := topic.partitions[number]
		if leader := t.Partitions[i].Leader; leader >= 0 {
			part.move(p.broker(leader), p.transactions)
		} else {
			part.move(nil, p.transactions)
			missing = kerr.LeaderNotAvailable
		}
	}
	p.topics[topic.name] = topic
	if missing != nil {
		p.ask()
	}
	return missing
}

// move makes a broker the partition's leader.
func (p *partition) move(b *broker, t *transactions) {
	if p.broker == b {
		return
	}
	if p.listed {
		p.broker.unlist(p)
	}
	p.broker = b
	if b != nil && !p.busy && len(p.queue) > 0 {
		p.list(t)
	}
}
