package sim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/loop"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// mode is how records are delivered.
type mode string

const atLeastOnce mode = "at least once"

// storeKind is where offsets are kept.
type storeKind string

const (
	inFile  storeKind = "file"
	inTopic storeKind = "topic"
)

const connector = "sim"

const replicaID = 7777

var connectorKey = offset.Key{Connector: connector, Server: prefix}

func captured(db, table string) bool { return db == database && table != "other" }

func transient(err error) bool { return server.Transient(err) || kafka.Transient(err) }

// stopped is nil for the error that a stop by signal causes, as in cmd/tidemark.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// run is what tidemark run does with one connector: the product's packages, put together as cmd/tidemark does it.
func (p *process) run() (err error) {
	s := p.s
	log := s.logger(p)
	client := func(purpose string) kafka.ClientConfig {
		return kafka.ClientConfig{Properties: map[string]string{"bootstrap.servers": strings.Join(s.kafka.addresses, ",")}, ClientID: "tidemark-" + purpose, Dial: p.dial(purpose), Log: log}
	}
	store, definitions, err := p.openStores(client, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, definitions.Close(), store.Close()) }()
	em, err := emitter.New(emitter.Config{Prefix: prefix, Tombstones: true})
	if err != nil {
		return err
	}
	tables := &tables{p: p, store: definitions, log: log}
	pipe := loop.Pipeline{
		Open:         tables.open,
		Deliver:      func(ctx context.Context) (emitter.Delivery, error) { return p.deliver(ctx, client(forData)) },
		Transient:    transient,
		SchemaChange: tables.changed,
		Emitter:      em, Store: store, Key: connectorKey,
		MaxRetries: -1, FlushInterval: s.flushInterval, FlushTimeout: flushTimeout, Log: log,
	}
	return pipe.Run(p.ctx)
}

// openStores opens the places of offsets and definitions. The latter are in a file in any case: what reads them from a topic
// unpacks zstd, whose decoders are closed by finalizers, which a bubble does not allow.
func (p *process) openStores(client func(string) kafka.ClientConfig, log *zap.Logger) (offset.Store, schema.Store, error) {
	definitions, err := schema.OpenFileStore(filepath.Join(p.s.folder, "definitions"))
	if err != nil {
		return nil, nil, err
	}
	var store offset.Store
	if p.s.store == inFile {
		store, err = offset.OpenFile("/offsets/connect.offsets", &offset.FileOptions{FS: diskOf{p.s.disk, p}, Warn: func(m string) { log.Warn(m) }})
	} else {
		store, err = kafka.OpenTopicStore(p.ctx, kafka.TopicStoreConfig{
			ClientConfig: client(forOffsets), Topic: offsetsTopic, Partitions: 5, ReplicationFactor: brokers,
		})
	}
	if err != nil {
		return nil, nil, errors.Join(err, definitions.Close())
	}
	return &watchedStore{store, p}, &watchedDefinitions{definitions, p}, nil
}

// ownClient is a delivery with a client of its own.
type ownClient struct {
	emitter.Delivery
	client *kafka.Client
}

func (d *ownClient) Close() {
	d.Delivery.Close()
	d.client.Close()
}

func (p *process) deliver(ctx context.Context, cfg kafka.ClientConfig) (emitter.Delivery, error) {
	client, err := kafka.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, err
	}
	topics := kafka.NewTopics(client, kafka.TopicSpec{Create: true, Partitions: partitions, ReplicationFactor: brokers})
	return &watchedDelivery{&ownClient{emitter.NewAtLeastOnce(client, emitter.DeliveryConfig{Topics: topics, MaxBytes: p.s.maxBytes, Window: p.s.window}), client}, p}, nil
}

// tables opens the stream with what is known of the tables at its start, as cmd/tidemark does without a schema history.
type tables struct {
	p     *process
	store schema.Store
	log   *zap.Logger
}

func (t *tables) open(ctx context.Context, stored offset.Offset) (binlog.Source, error) {
	from := binlog.Start{Now: true}
	if !stored.IsZero() {
		from = binlog.Start{Offset: &stored}
	}
	srv := server.Config{
		Host: "mysql", Port: 3306, User: "u", Password: "pw", SSLMode: server.SSLDisabled, Dial: t.p.dial(forMySQL),
		Heartbeat: t.p.s.heartbeat, ConnectTimeout: 10 * time.Second, Log: t.log,
	}
	conn, err := server.Connect(ctx, srv)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.Check(ctx, server.Requirements{ServerID: replicaID, Identity: connector}); err != nil {
		return nil, err
	}
	info, err := conn.Info(ctx)
	if err != nil {
		return nil, err
	}
	opts := schema.CatalogOptions{Captured: captured, Version: info.VersionNumber()}
	cfg := binlog.Config{Captured: captured, Filters: "f", Log: t.log, Catalog: schema.NewCatalog(opts)}
	cfg.Refresh = func(ctx context.Context, db, table string) (*schema.Definition, error) {
		conn, err := server.Connect(ctx, srv)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		sql, err := conn.ShowCreate(ctx, db, table)
		if err != nil {
			return nil, err
		}
		return schema.NewCatalog(opts).ReadCreateTable(db, sql)
	}
	if from, err = t.define(ctx, conn, info, opts, &cfg, from); err != nil {
		return nil, err
	}
	reader, err := binlog.Open(ctx, conn, binlog.Replica{ServerID: replicaID, Name: connector}, cfg, from)
	if err != nil {
		return nil, err
	}
	if err := t.p.at(pointOpened); err != nil {
		reader.Close()
		return nil, err
	}
	return &watchedSource{reader, t.p}, nil
}

// define fills in the tables at from: out of the store, or as the server has them now.
func (t *tables) define(ctx context.Context, conn *server.Conn, info *server.Info, opts schema.CatalogOptions, cfg *binlog.Config, from binlog.Start) (binlog.Start, error) {
	if from.Offset != nil {
		known, err := t.store.Load(ctx, connector, prefix)
		if err != nil {
			return from, err
		}
		cfg.Catalog.Load(known, binlog.Reached(*from.Offset))
		if len(cfg.Catalog.Databases()) > 0 {
			return from, nil
		}
		return from, fmt.Errorf("the schema store knows no table at the stored offset %s", from.Offset)
	}
	texts, at, err := conn.Definitions(ctx, captured, captured)
	if err != nil {
		return from, err
	}
	position := offset.Offset{File: at.File, Pos: at.Pos}
	if info.UsesGTIDs() {
		position.GTIDs = offset.EmptyGTIDSet()
		if at.GTIDs != "" {
			if position.GTIDs, err = offset.ParseGTIDSet(at.GTIDs); err != nil {
				return from, err
			}
		}
	}
	charsets, err := conn.Charsets(ctx)
	if err != nil {
		return from, err
	}
	for _, text := range texts {
		def, err := schema.NewCatalog(opts).ReadCreateTable(text.Database, text.SQL)
		if err != nil {
			return from, err
		}
		cfg.Catalog.Set(text.Database, text.Name, def)
	}
	cfg.Catalog.SetServer(charsets.Server)
	for db, charset := range charsets.Databases {
		cfg.Catalog.SetDatabase(db, charset)
	}
	all := cfg.Catalog.All()
	for i := range all {
		v := &all[i].Versions[0]
		v.File, v.Pos = position.File, position.Pos
		if !position.GTIDs.IsAbsent() {
			v.GTIDs = position.GTIDs.String()
		}
	}
	if position.GTIDs.IsAbsent() {
		return binlog.Start{File: position.File, Pos: position.Pos}, t.store.Save(ctx, connector, prefix, all)
	}
	return binlog.Start{Offset: &position}, t.store.Save(ctx, connector, prefix, all)
}

func (t *tables) changed(ctx context.Context, ev *binlog.SchemaChange) error {
	if len(ev.Tables) == 0 {
		return nil
	}
	return t.store.Save(ctx, connector, prefix, ev.Tables)
}
