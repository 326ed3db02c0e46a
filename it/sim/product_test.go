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
	log := p.s.logger(p)
	client := func(purpose string) kafka.ClientConfig {
		return kafka.ClientConfig{Properties: map[string]string{"bootstrap.servers": strings.Join(p.s.kafka.addresses, ",")}, ClientID: "tidemark-" + purpose, Dial: p.dial(purpose), Log: log}
	}
	line := new(kafka.Line)
	data := func() kafka.ClientConfig {
		cfg := client(forData)
		cfg.Line = line
		return cfg
	}
	lock, err := p.standby(client(forLock), line, log)
	if err != nil {
		return err
	}
	if lock != nil {
		defer lock.Close()
	}
	store, definitions, err := p.openStores(client, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, definitions.Close(), store.Close()) }()
	stream := func(ctx context.Context, may func() bool) error {
		em, err := emitter.New(emitter.Config{Prefix: prefix, Tombstones: true})
		if err != nil {
			return err
		}
		tables := &tables{p: p, may: may, store: definitions, log: log}
		pipe := loop.Pipeline{
			Open:         tables.open,
			Deliver:      func(ctx context.Context) (emitter.Delivery, error) { return p.deliver(ctx, data(), may) },
			Transient:    transient,
			May:          may,
			SchemaChange: tables.changed,
			Emitter:      em, Store: &watchedStore{store, p}, Key: connectorKey,
			MaxRetries: -1, FlushInterval: p.s.flushInterval, FlushTimeout: flushTimeout, Log: log,
		}
		p.s.mode.use(p, &pipe, store, data())
		return pipe.Run(ctx)
	}
	if lock == nil {
		return stream(p.ctx, func() bool { return true })
	}
	return lock.Run(p.ctx, func(ctx context.Context, may func() bool) error { return stream(ctx, p.only(may)) })
}

// standby is the process as one of those of which a group chooses one; nil: there is no such group.
func (p *process) standby(cfg kafka.ClientConfig, line *kafka.Line, log *zap.Logger) (*loop.Standby, error) {
	if !p.s.locked {
		return nil, nil
	}
	cfg.ClientID = clientOf(p) // for to the kernel they are all this one
	return loop.NewStandby(p.ctx, loop.StandbyConfig{
		Lock: kafka.LockConfig{ClientConfig: cfg, Group: lockGroup, Topic: locksTopic, ReplicationFactor: brokers, SessionTimeout: p.s.session},
		Anew: line.Forget, Fenced: isFenced, LastUse: emitter.LastUse, Replaced: isReplaced, Log: log,
	})
}

func isFenced(err error) bool { return errors.Is(err, emitter.ErrFenced) }

func isReplaced(err error) bool { return errors.Is(err, server.ErrReplaced) }

// openStores opens the places of offsets and definitions. Beside an offsets topic the latter are in memory, which stands for
// their topic: what reads that unpacks zstd, whose decoders are closed by finalizers, which a bubble does not allow.
func (p *process) openStores(client func(string) kafka.ClientConfig, log *zap.Logger) (offset.Store, schema.Store, error) {
	if p.s.store == inTopic {
		store, err := kafka.OpenTopicStore(p.ctx, kafka.TopicStoreConfig{
			ClientConfig: client(forOffsets), Topic: offsetsTopic, Partitions: 5, ReplicationFactor: brokers,
		})
		if err != nil {
			return nil, nil, err
		}
		return store, &watchedDefinitions{definitionsOf{&p.s.definitions, p}, p}, nil
	}
	definitions, err := schema.OpenFileStore(filepath.Join(p.s.folder, "definitions"))
	if err != nil {
		return nil, nil, err
	}
	store, err := offset.OpenFile("/offsets/connect.offsets", &offset.FileOptions{FS: diskOf{p.s.disk, p}, Warn: func(m string) { log.Warn(m) }})
	if err != nil {
		return nil, nil, errors.Join(err, definitions.Close())
	}
	return store, &watchedDefinitions{definitions, p}, nil
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

func (p *process) deliver(ctx context.Context, cfg kafka.ClientConfig, may func() bool) (emitter.Delivery, error) {
	return p.begin(ctx, cfg, may, func(client *kafka.Client, cfg emitter.DeliveryConfig) (emitter.Delivery, error) {
		return emitter.NewAtLeastOnce(client, cfg), nil
	})
}

// begin begins a delivery over a client of its own.
func (p *process) begin(ctx context.Context, cfg kafka.ClientConfig, may func() bool, make func(*kafka.Client, emitter.DeliveryConfig) (emitter.Delivery, error)) (emitter.Delivery, error) {
	client, err := kafka.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, err
	}
	topics := kafka.NewTopics(client, kafka.TopicSpec{Create: true, Partitions: partitions, ReplicationFactor: brokers})
	delivery, err := make(client, emitter.DeliveryConfig{Topics: topics, May: may, MaxBytes: p.s.maxBytes, Window: p.s.window})
	if err != nil {
		client.Close()
		return nil, err
	}
	return &watchedDelivery{&ownClient{delivery, client}, p}, nil
}

// tables opens the stream with what is known of the tables at its start, as cmd/tidemark does without a schema history.
type tables struct {
	p     *process
	may   func() bool
	store schema.Store
	log   *zap.Logger
}

func (t *tables) open(ctx context.Context, stored offset.Offset) (binlog.Source, error) {
	if t.p.s.grouped() {
		if err := t.p.pass(); err != nil {
			return nil, err
		}
		if !t.may() {
			return nil, emitter.ErrStale
		}
		t.p.s.definitions.fence(t.p)
	}
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
