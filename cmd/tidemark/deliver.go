package main

import (
	"context"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// ownClient is a delivery with a Kafka client of its own, whose connections end with it. A broker deals with the requests of a
// connection one after the other, so one that an attempt has given up would hold up those of the next attempt.
type ownClient struct {
	emitter.Delivery
	client *kafka.Client
}

// newDelivery connects to Kafka and starts a delivery over that connection. records bounds the bytes of the records on their
// way; 0: the default. line is what the deliveries of the connector have in common.
func newDelivery(ctx context.Context, c *config.Connector, records int, line *kafka.Line, log *zap.Logger) (emitter.Delivery, error) {
	client, err := kafka.NewClient(kafka.ClientConfig{Properties: c.Producer, Reread: c.ProducerReread, Line: line, Log: log})
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, err
	}
	topics := kafka.NewTopics(client, topicSpec(c), topicGroups(c)...)
	return &ownClient{emitter.NewAtLeastOnce(client, emitter.DeliveryConfig{MaxBytes: records, Topics: topics}), client}, nil
}

// Close gives up what is not acknowledged and closes the connection.
func (d *ownClient) Close() {
	d.Delivery.Close()
	d.client.Close()
}
