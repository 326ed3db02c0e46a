package main

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

// ownStore is the offsets topic of one connector (offsets.storage.topic) before the worker's place, as Kafka Connect has
// it: what it does not have is loaded from there, and what is saved is copied there as well as can be, so that a
// connector whose own topic is taken away goes on.
type ownStore struct {
	*kafka.TopicStore // the connector's own
	worker            offset.Store
	log               *zap.Logger
	failing           bool
}

func openOwnStore(ctx context.Context, c *config.Connector, w *config.Worker, worker offset.Store, log *zap.Logger) (*ownStore, error) {
	cfg := kafka.TopicStoreConfig{
		ClientConfig: kafka.ClientConfig{Properties: c.Producer, Reread: c.ProducerReread, ClientID: c.Name + "-offsets", Log: log},
		Topic:        c.OffsetsTopic, Partitions: -1, ReplicationFactor: -1,
	}
	if w.OffsetTopic != nil {
		cfg.Partitions, cfg.ReplicationFactor, cfg.Settings = w.OffsetTopic.Partitions, w.OffsetTopic.ReplicationFactor, w.OffsetTopic.Config
	}
	own, err := kafka.OpenTopicStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &ownStore{TopicStore: own, worker: worker, log: log}, nil
}

func (s *ownStore) Load(ctx context.Context, key offset.Key) (offset.Offset, error) {
	o, err := s.TopicStore.Load(ctx, key)
	if err != nil || !o.IsZero() {
		return o, err
	}
	return s.worker.Load(ctx, key)
}

func (s *ownStore) Save(ctx context.Context, key offset.Key, o offset.Offset) error {
	if err := s.TopicStore.Save(ctx, key, o); err != nil {
		return err
	}
	s.copy(ctx, key, o)
	return nil
}

// copy copies an offset that is stored to the worker's place.
func (s *ownStore) copy(ctx context.Context, key offset.Key, o offset.Offset) {
	err := s.worker.Save(ctx, key, o)
	if err != nil && !s.failing && !errors.Is(err, context.Canceled) {
		s.log.Warn("the offset is stored in the connector's own topic, but could not be copied to the worker's place", zap.Error(err))
	}
	s.failing = err != nil
}
