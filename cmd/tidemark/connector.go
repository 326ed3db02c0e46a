package main

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// newEmitter makes the emitter of a connector. Without registries it has no ids of Avro schemas and writes no records with
// them.
func newEmitter(c *config.Connector, regs *registries, log *zap.Logger) (*emitter.Emitter, error) {
	modes := c.Modes
	told := map[string]bool{} // a column is mapped anew with each version of its table
	modes.Invalid = func(database, table, column, what string) {
		if name := database + "." + table + "." + column; told[name] {
			return
		} else {
			told[name] = true
		}
		log.Warn("a value that MySQL holds cannot be written as its type has it; null, or zero in a required column, stands for it and its like",
			zap.String("column", database+"."+table+"."+column), zap.String("value", what))
	}
	connectorType := "mysql"
	if c.MariaDB {
		connectorType = "mariadb"
	}
	return emitter.New(emitter.Config{
		Prefix:          c.Prefix,
		Connector:       connectorType,
		Key:             converter(&c.Key, regs, true),
		Value:           converter(&c.Value, regs, false),
		Header:          emitter.HeaderConverter{Class: c.HeaderConverter.Class, JSON: converter(&c.HeaderConverter.JSON, nil, false)},
		Tombstones:      c.Tombstones,
		ExtendedHeaders: c.ExtendedHeaders,
		SchemaChanges:   c.SchemaChanges,
		Transactions:    c.Transactions,
		Modes:           modes,
		Naming:          emitter.Naming(c.Naming),
		SchemaNames:     emitter.NameMode(c.SchemaNames),
		FieldNames:      emitter.NameMode(c.FieldNames),
		Columns:         c.Columns,
		Keys:            c.Keys,
		Skip:            c.SkipOperations,
		SkipUnchanged:   c.SkipUnchanged,
		Placeholder:     c.Placeholder,
	})
}

// converter is the emitter's configuration for a converter of keys or values.
func converter(c *config.Converter, regs *registries, key bool) emitter.Converter {
	converter := emitter.Converter{Schemas: c.Schemas, ReplaceNullWithDefault: c.ReplaceNullWithDefault, NumericDecimals: c.NumericDecimals}
	if c.Avro != nil {
		converter.Avro = regs.avroConverter(c.Avro, key)
		converter.ReplaceNullWithDefault = !c.Avro.IgnoreDefaults
	}
	return converter
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
	case config.AtOffset:
		o, err := offset.Parse([]byte(s.Offset))
		return binlog.Start{Offset: &o}, err
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
		ReadPassword:            c.ReadPassword,
		TLS:                     c.TLS,
		CleartextPassword:       c.CleartextPassword,
		PublicKeyFile:           c.PublicKeyFile,
		ConnectTimeout:          c.ConnectTimeout,
		Heartbeat:               serverHeartbeat(c),
		InitialStatements:       c.InitialStatements,
		Log:                     log,
	}
}

// serverHeartbeat is how often the server shows that it is there while nothing happens: as often as heartbeat records are
// wanted, which come with it.
func serverHeartbeat(c *config.Connector) time.Duration {
	const least = 100 * time.Millisecond
	if d := c.Heartbeats.Interval; d > 0 && (d < c.Heartbeat || c.Heartbeat == 0) {
		return max(d, least)
	}
	return c.Heartbeat
}
