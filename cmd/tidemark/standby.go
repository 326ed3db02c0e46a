package main

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/cmd/internal/standby"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// newStandby makes this process one of several that may run a connector, of which a consumer group chooses one; nil where there is no
// such group: with offsets in a file, whose lock keeps others out, and without group.id. The line is of the connector's deliveries. It does
// not wait.
func newStandby(ctx context.Context, c *config.Connector, w *config.Worker, line *kafka.Line, log *zap.Logger) (*standby.Standby, error) {
	switch {
	case w.OffsetTopic == nil:
		return nil, nil
	case w.GroupID == "":
		log.Info("group.id is not set, so there is no standby, and nothing keeps another process with the same configuration from running the connector as well")
		return nil, nil
	}
	return standby.New(ctx, standbyConfig(c, w, line, log))
}

func standbyConfig(c *config.Connector, w *config.Worker, line *kafka.Line, log *zap.Logger) standby.Config {
	return standby.Config{Lock: lockOf(c, w, log), Anew: line.Forget, Fenced: isFenced, LastUse: emitter.LastUse, Replaced: isReplaced, Log: log}
}

// isFenced says that another producer has come to the connector's transactional id.
func isFenced(err error) bool { return errors.Is(err, emitter.ErrFenced) }

// isReplaced says that the server has ended the stream for one that another process of the connector has begun.
func isReplaced(err error) bool { return errors.Is(err, server.ErrReplaced) }

// oneOfSeveral runs a connector while no other process does. run asks may before it sends or stores anything.
func oneOfSeveral(ctx context.Context, s *standby.Standby, run func(ctx context.Context, may func() bool) error) error {
	if s == nil {
		return explainFenced(run(ctx, func() bool { return true }))
	}
	defer s.Close()
	return s.Run(ctx, run)
}

// lockOf is the group that says which process runs a connector, and the topic of all such groups.
func lockOf(c *config.Connector, w *config.Worker, log *zap.Logger) kafka.LockConfig {
	return kafka.LockConfig{
		ClientConfig:      kafka.ClientConfig{Properties: w.Client, Reread: w.ClientReread, ClientID: w.GroupID + "-" + c.Name + "-lock", Log: log},
		Group:             "tidemark-" + w.GroupID + "-" + c.Name,
		Topic:             w.OffsetTopic.Name + "-locks",
		ReplicationFactor: w.OffsetTopic.ReplicationFactor,
		SessionTimeout:    w.StandbySession,
		Says:              c.Fingerprint,
	}
}
