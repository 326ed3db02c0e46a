package main

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// poison has the connector go on without what cannot be written. A nil one does not.
type poison struct {
	emitter.Poison
	spec kafka.TopicSpec // of the topic of dead letters
	log  *zap.Logger

	mu     sync.Mutex
	said   int         // in the present period
	unsaid int         // in it, only counted
	timer  *time.Timer // ends the period; nil: there is none
	closed bool
}

// In each period so many are said one by one; the others are counted.
const (
	saidOneByOne = 10
	sayPeriod    = time.Minute
)

// newPoison returns nil if what cannot be written is to stop the connector.
func newPoison(c *config.Connector, regs *registries, log *zap.Logger) *poison {
	t := c.Tolerance
	if t == nil {
		return nil
	}
	p := &poison{
		Poison: emitter.Poison{Topic: t.Topic, Connector: c.Name, ContextHeaders: t.ContextHeaders},
		spec:   kafka.TopicSpec{Create: true, Partitions: 1, ReplicationFactor: t.ReplicationFactor},
		log:    log,
	}
	p.Told = p.tell
	if text := regs.text(c, false); text != nil {
		var mu sync.Mutex
		p.Text = func(value []byte) []byte {
			mu.Lock()
			defer mu.Unlock()
			_, json, err := text.read(value)
			if err != nil {
				return nil // the note says less then
			}
			return json
		}
	}
	return p
}

// rows is what the loop needs.
func (p *poison) rows() *emitter.Poison {
	if p == nil {
		return nil
	}
	return &p.Poison
}

// add has a delivery go on without what cannot be written. The topic of dead letters is made, if it is missing, before it is needed:
// what stands in the way is better known at the start.
func (p *poison) add(ctx context.Context, client *kafka.Client, cfg *emitter.DeliveryConfig) error {
	if p == nil {
		return nil
	}
	cfg.Poison = &p.Poison
	if p.Topic == "" {
		return nil
	}
	topics := &deadTopics{Topics: cfg.Topics, topic: p.Topic, dead: kafka.NewTopics(client, p.spec)}
	cfg.Topics = topics
	return topics.Ensure(ctx, p.Topic)
}

// deadTopics are the topics of a connector, of which that of dead letters is made in another way.
type deadTopics struct {
	emitter.Topics
	topic string
	dead  *kafka.Topics
}

// Ensure implements [emitter.Topics].
func (d *deadTopics) Ensure(ctx context.Context, topic string) error {
	if topic == d.topic {
		return d.dead.Ensure(ctx, topic)
	}
	return d.Topics.Ensure(ctx, topic)
}

// Again has a topic made again that is gone, as [kafka.Topics.Again] does.
func (d *deadTopics) Again(ctx context.Context, topic string) {
	if again, ok := d.Topics.(interface{ Again(context.Context, string) }); ok && topic != d.topic {
		again.Again(ctx, topic)
	} else if topic == d.topic {
		d.dead.Again(ctx, topic)
	}
}

// tell says that a record is left out.
func (p *poison) tell(o *emitter.LeftOut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil && !p.closed {
		p.timer = time.AfterFunc(sayPeriod, p.sum)
	}
	if p.said >= saidOneByOne {
		p.unsaid++
		return
	}
	p.said++
	const mostOfKey = 200
	fields := []zap.Field{
		zap.String("topic", o.Topic), zap.String("table", o.Database+"."+o.Table), zap.ByteString("key", o.Key[:min(len(o.Key), mostOfKey)]), zap.Int("size", o.Size),
		zap.String("file", o.File), zap.Int64("pos", o.Pos), zap.Int64("row", o.Row), zap.String("gtid", o.GTID), zap.Uint64("so_far", p.Count()), zap.Error(o.Err),
	}
	text := "a record is left out, as errors.tolerance=all asks"
	if p.Topic != "" {
		text += "; the topic of dead letters has a note of it"
		fields = append(fields, zap.String("dead_letters", p.Topic))
	}
	if p.said == saidOneByOne {
		text += "; the next ones are only counted, for up to a minute"
	}
	p.log.Warn(text, fields...)
}

// sum ends a period.
func (p *poison) sum() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unsaid > 0 {
		p.log.Warn("more records were left out, as errors.tolerance=all asks", zap.Int("records", p.unsaid), zap.Uint64("so_far", p.Count()))
	}
	p.said, p.unsaid, p.timer = 0, 0, nil
}

// close says what is not said yet.
func (p *poison) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	timer := p.timer
	p.mu.Unlock()
	if timer != nil && timer.Stop() {
		p.sum()
	}
}
