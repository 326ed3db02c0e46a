package main

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// newEmitter makes the emitter of a connector.
func newEmitter(c *config.Connector) (*emitter.Emitter, error) {
	return emitter.New(emitter.Config{
		Prefix:          c.Prefix,
		Key:             emitter.Converter(c.Key),
		Value:           emitter.Converter(c.Value),
		Tombstones:      c.Tombstones,
		ExtendedHeaders: c.ExtendedHeaders,
	})
}

// startOf turns a configured starting point into the reader's.
func startOf(s config.Start) (binlog.Start, error) {
	switch s.Mode {
	case config.Oldest:
		return binlog.Start{Oldest: true}, nil
	case config.AtFile:
		return binlog.Start{File: s.File, Pos: s.Pos}, nil
	case config.AtGTIDs:
		set, err := offset.ParseGTIDSet(s.GTIDs)
		if err != nil {
			return binlog.Start{}, fmt.Errorf("GTID set %q: %w", s.GTIDs, err)
		}
		return binlog.Start{GTIDs: set}, nil
	}
	return binlog.Start{Now: true}, nil
}

// serverConfig says how to reach the connector's server.
func serverConfig(c *config.Connector, log *zap.Logger) server.Config {
	return server.Config{
		Host:                    c.Host,
		Port:                    int(c.Port),
		User:                    c.User,
		Password:                c.Password.Reveal(),
		SSLMode:                 server.SSLMode(c.SSL),
		AllowPublicKeyRetrieval: c.AllowPublicKeyRetrieval,
		ConnectTimeout:          c.ConnectTimeout,
		Heartbeat:               c.Heartbeat,
		Log:                     log,
	}
}

// openServer checks the connector's server, reads the definitions of the captured tables and opens the stream.
func openServer(ctx context.Context, c *config.Connector, from binlog.Start, log *zap.Logger) (binlog.Source, error) {
	cfg := serverConfig(c, log)
	conn, err := server.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.Check(ctx, server.Requirements{ServerID: c.ServerID, Identity: c.Name}); err != nil {
		return nil, err
	}
	defs, err := readDefinitions(ctx, conn, cfg, c.Filter.Captured, log)
	if err != nil {
		return nil, err
	}
	return binlog.Open(ctx, conn, binlog.Replica{ServerID: c.ServerID, Name: c.Name},
		binlog.Config{Captured: c.Filter.Captured, Definitions: defs, Log: log}, from)
}
