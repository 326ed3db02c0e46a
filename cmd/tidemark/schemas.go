package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// schemas keeps what is known of one connector's tables from one start to the next: in a store of our own beside the
// offset and, when one is configured, in Debezium's schema history.
type schemas struct {
	c       *config.Connector
	store   schema.Store // nil: nothing is kept
	history history      // nil: none is configured
	emitter *emitter.Emitter
	log     *zap.Logger
}

// history is Debezium's schema history, in a topic or in a file.
type history interface {
	// read returns all of it; nothing when there is none yet.
	read(ctx context.Context) ([]schema.HistoryEntry, error)
	// write appends records and returns when they are durable.
	write(ctx context.Context, records []schema.HistoryRecord) error
	close()
}

// openSchemas opens the schema history of a connector; store is shared with the others.
func openSchemas(c *config.Connector, store schema.Store, em *emitter.Emitter, log *zap.Logger) (*schemas, error) {
	s := &schemas{c: c, store: store, emitter: em, log: log}
	switch h := &c.History; {
	case h.Topic != "":
		topic, err := kafka.OpenHistory(kafka.HistoryConfig{
			ClientConfig: kafka.ClientConfig{Properties: h.Producer, ClientID: c.Name + "-schemahistory", Log: log},
			Consumer:     h.Consumer, Topic: h.Topic, Server: c.Prefix,
		})
		if err != nil {
			return nil, err
		}
		s.history = historyTopic{topic}
	case h.File != "":
		file, err := schema.OpenHistoryFile(h.File)
		if err != nil {
			return nil, err
		}
		s.history = historyFile{file}
	}
	return s, nil
}

func (s *schemas) close() {
	if s.history != nil {
		s.history.close()
	}
}

type historyTopic struct{ topic *kafka.History }

func (h historyTopic) read(ctx context.Context) ([]schema.HistoryEntry, error) {
	entries, _, err := h.topic.Read(ctx)
	return entries, err
}

func (h historyTopic) write(ctx context.Context, records []schema.HistoryRecord) error {
	texts := make([][]byte, len(records))
	for i := range records {
		texts[i] = schema.AppendHistory(nil, &records[i])
	}
	return h.topic.Append(ctx, texts...)
}

func (h historyTopic) close() { h.topic.Close() }

type historyFile struct{ file *schema.HistoryFile }

func (h historyFile) read(context.Context) ([]schema.HistoryEntry, error) { return h.file.Read() }

func (h historyFile) write(_ context.Context, records []schema.HistoryRecord) error {
	return h.file.Append(records)
}

func (h historyFile) close() { _ = h.file.Close() }

// catalogOptions say how DDL is read.
func catalogOptions(c *config.Connector) schema.CatalogOptions {
	return schema.CatalogOptions{
		Captured:              c.Filter.Captured,
		CapturedDatabase:      c.Filter.CapturedDatabase,
		OnlyCapturedTables:    c.History.OnlyTables,
		OnlyCapturedDatabases: c.History.OnlyDatabases,
		MariaDB:               c.MariaDB,
		Filter:                c.History.Filtered,
		Comments:              c.Modes.Comments,
	}
}

// readerConfig is what both kinds of readers take of a connector.
func readerConfig(c *config.Connector, from binlog.Start, log *zap.Logger) binlog.Config {
	recount := false // an offset of Debezium's does not tell which records of a key change it covers
	if from.Offset != nil && from.Offset.Side == nil {
		_, recount = from.Offset.Member("transaction_id")
	}
	return binlog.Config{
		Captured:           c.Filter.Captured,
		Filters:            c.Filter.Fingerprint(),
		SkipUnparseableDDL: c.History.SkipUnparseable,
		IncludeQuery:       c.IncludeQuery,
		Transactions:       c.Transactions,
		Recount:            recount && c.Transactions,
		GTIDSources:        c.GTIDSources,
		SourceRows:         !c.GTIDDML,
		Log:                log,
	}
}

// open opens the stream of the connector's server: at from, with the tables as they were there.
func (s *schemas) open(ctx context.Context, from binlog.Start) (binlog.Source, error) {
	srv := serverConfig(s.c, s.log)
	conn, err := server.Connect(ctx, srv)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.Check(ctx, server.Requirements{ServerID: s.c.ServerID, Identity: s.c.Name}); err != nil {
		return nil, err
	}
	info, err := conn.Info(ctx)
	if err != nil {
		return nil, err
	}
	if info.MariaDB() != s.c.MariaDB {
		return nil, fmt.Errorf("connector.class is that of another kind of server: the server at %s is a %s (%s); set connector.class to %s",
			conn.Address(), info.Flavor, info.Version, config.ClassOf(info.MariaDB()))
	}
	opts := catalogOptions(s.c)
	opts.IgnoreCase, opts.Version = info.LowerCaseNames != 0, info.VersionNumber()
	cfg := readerConfig(s.c, from, s.log)
	cfg.Catalog = schema.NewCatalog(opts)
	cfg.Refresh = s.refresh(srv, opts)
	if from, err = s.define(ctx, conn, info, opts, &cfg, from); err != nil {
		return nil, err
	}
	if err := checkTables(s.c, s.emitter, cfg.Catalog); err != nil {
		return nil, err
	}
	return binlog.Open(ctx, conn, binlog.Replica{ServerID: s.c.ServerID, Name: s.c.Name}, cfg, from)
}

// define fills in what is known of the tables at from: by the schema history, which wins, by the store, or by what the
// server says. It returns where to start.
func (s *schemas) define(ctx context.Context, conn *server.Conn, info *server.Info, opts schema.CatalogOptions, cfg *binlog.Config, from binlog.Start) (binlog.Start, error) {
	if from.Offset != nil {
		if s.c.IgnoreGTIDs && !info.MariaDB() {
			plain := *from.Offset
			plain.GTIDs = offset.GTIDSet{}
			from.Offset = &plain
		}
		known, err := s.recall(ctx, cfg, *from.Offset)
		if err != nil || known {
			return from, err
		}
	}
	texts, at, err := conn.Definitions(ctx, s.c.Filter.Captured)
	if err != nil {
		return from, err
	}
	if err := s.guard(len(texts)); err != nil {
		return from, err
	}
	if len(texts) == 0 {
		s.log.Warn("no table of the server is captured as things are; there will be no events until one is made that database.include.list, table.include.list and their exclude lists let through")
	}
	position := offset.Offset{File: at.File, Pos: at.Pos}
	if info.UsesGTIDs() {
		if position.GTIDs, err = offset.ParseGTIDSet(at.GTIDs); err != nil {
			return from, fmt.Errorf("%s: executed GTIDs: %w", conn.Address(), err)
		}
		if at.GTIDs == "" {
			position.GTIDs = offset.EmptyGTIDSet()
		}
	}
	past := from.Oldest || from.File != "" || !from.GTIDs.IsAbsent()
	if from.Offset != nil {
		covers, known := from.Offset.Covers(offset.Position{File: position.File, Pos: position.Pos, GTIDs: position.GTIDs})
		past = !covers || !known
	}
	if past && !info.NamesColumns() {
		// Nobody can say what the tables were at the start: what SHOW CREATE TABLE says may be wrong there, and nothing in
		// the binlog would show it.
		s.log.Warn("the start lies in the past, the definitions of the tables there are not stored, and the binlog does not name columns (binlog_row_metadata is not FULL): "+
			"only tables whose CREATE TABLE comes by can be read", zap.Stringer("server", position))
		return from, nil
	}
	for _, t := range texts {
		cfg.Catalog.Set(t.Database, t.Name, s.parse(t.TableID, t.SQL, opts))
	}
	charsets, err := conn.Charsets(ctx)
	if err != nil {
		return from, err
	}
	cfg.Catalog.SetServer(charsets.Server)
	for database, charset := range charsets.Databases {
		if s.c.Filter.CapturedDatabase(database) {
			cfg.Catalog.SetDatabase(database, charset)
		}
	}
	if past {
		cfg.CatalogAt = position
	} else if from.Offset == nil {
		from = startAt(position) // the very point at which the definitions hold
	}
	if from.Offset == nil && s.history != nil {
		if err := s.begin(ctx, texts, opts, charsets, position); err != nil {
			return from, err
		}
	}
	if s.store == nil {
		return from, nil
	}
	all := cfg.Catalog.All()
	for i := range all {
		v := &all[i].Versions[0]
		v.File, v.Pos = position.File, position.Pos
		if !position.GTIDs.IsAbsent() {
			v.GTIDs = position.GTIDs.String()
		}
	}
	return from, s.store.Save(ctx, s.c.Name, s.c.Prefix, all)
}

// startAt is a position of the server between transactions.
func startAt(o offset.Offset) binlog.Start {
	if o.GTIDs.IsAbsent() {
		return binlog.Start{File: o.File, Pos: o.Pos}
	}
	return binlog.Start{GTIDs: o.GTIDs}
}

// recall fills in the tables at a stored offset by the schema history or the store; false when neither has them.
func (s *schemas) recall(ctx context.Context, cfg *binlog.Config, stored offset.Offset) (bool, error) {
	if s.history != nil {
		entries, err := s.history.read(ctx)
		if err != nil {
			return false, err
		}
		if len(entries) > 0 {
			if s.c.History.PreferDDL {
				for i := range entries {
					entries[i].Changes = nil // so that the text counts
				}
			}
			cfg.History = entries
			return true, nil
		}
		s.log.Warn("the configured schema history is empty or does not exist, though an offset is stored; Tidemark goes on without it. " +
			"From now on DDL is written to it, but a Debezium could not take over with it alone: it would need snapshot.mode=recovery")
	}
	if s.store == nil {
		return false, nil
	}
	tables, err := s.store.Load(ctx, s.c.Name, s.c.Prefix)
	if err != nil {
		return false, err
	}
	cfg.Catalog.Load(tables, binlog.Reached(stored))
	return len(cfg.Catalog.Databases()) > 0, nil
}

// guard holds the number of captured tables against guardrail.collections.max.
func (s *schemas) guard(tables int) error {
	most := s.c.MostTables
	if most <= 0 || tables <= most {
		return nil
	}
	text := fmt.Sprintf("%d tables are captured, more than guardrail.collections.max=%d; narrow table.include.list, or raise the limit", tables, most)
	if s.c.MostTablesFail {
		return errors.New(text)
	}
	s.log.Warn(text)
	return nil
}

// parse reads a definition as the connector of the server's kind does. One that cannot be read costs the table's defaults,
// not the stream: TABLE_MAP has the rest.
func (s *schemas) parse(id server.TableID, sql string, opts schema.CatalogOptions) *schema.Definition {
	def, err := schema.NewCatalog(opts).ReadCreateTable(id.Database, sql)
	if err != nil {
		s.log.Warn("a table's definition cannot be read; its events have no defaults in their schema, and no key unless it has a primary key",
			zap.Stringer("table", id), zap.Error(err))
		return nil
	}
	return def
}

// refresh asks the server for a table as it is now, over a connection of its own: this is rare, and an idle connection
// would be gone by then.
func (s *schemas) refresh(srv server.Config, opts schema.CatalogOptions) func(ctx context.Context, database, table string) (*schema.Definition, error) {
	return func(ctx context.Context, database, table string) (*schema.Definition, error) {
		conn, err := server.Connect(ctx, srv)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		sql, err := conn.ShowCreate(ctx, database, table)
		if errors.Is(err, server.ErrNoTable) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return s.parse(server.TableID{Database: database, Name: table}, sql, opts), nil
	}
}

// checkTables finds captured tables whose rows could not be written, before any of them comes.
func checkTables(c *config.Connector, em *emitter.Emitter, catalog *schema.Catalog) error {
	for _, database := range catalog.Databases() {
		for _, table := range catalog.Tables(database) {
			if err := checkTable(c, em, catalog.Definition(database, table)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkTable(c *config.Connector, em *emitter.Emitter, def *schema.Definition) error {
	if def == nil || !c.Filter.Captured(def.Database, def.Name) {
		return nil
	}
	names := make([]string, len(def.Columns))
	for i := range def.Columns {
		names[i] = def.Columns[i].Name
	}
	return em.CheckColumns(def.Database, def.Name, names)
}

// checkChange is checkTables for the tables of a statement.
func checkChange(c *config.Connector, em *emitter.Emitter, ev *binlog.SchemaChange) error {
	for _, change := range ev.Changes {
		for _, t := range change.Changes {
			if err := checkTable(c, em, t.Definition); err != nil {
				return fmt.Errorf("%s:%d: %w", ev.Info.File, ev.Info.Pos, err)
			}
		}
	}
	return nil
}

// changed makes a schema change durable: first in the history, then in our store.
func (s *schemas) changed(ctx context.Context, ev *binlog.SchemaChange) error {
	if err := checkChange(s.c, s.emitter, ev); err != nil {
		return err
	}
	if records := historyRecords(s.c.Prefix, ev, s.emitter.Mark); s.history != nil && len(records) > 0 {
		if err := s.history.write(ctx, records); err != nil {
			return err
		}
	}
	if s.store == nil || len(ev.Tables) == 0 {
		return nil
	}
	return s.store.Save(ctx, s.c.Name, s.c.Prefix, ev.Tables)
}

// historyRecords are the records that Debezium's schema history has of a statement.
func historyRecords(prefix string, ev *binlog.SchemaChange, mark func(offset.Offset) offset.Offset) []schema.HistoryRecord {
	var records []schema.HistoryRecord
	for i := range ev.Changes {
		if c := &ev.Changes[i]; c.History {
			records = append(records, schema.HistoryRecord{
				Server: prefix, Position: position(mark(ev.Record)), Time: time.Now().UnixMilli(),
				Database: c.Database, DDL: c.DDL, Changes: c.Changes,
			})
		}
	}
	return records
}

// position is an offset as a schema history has it.
func position(o offset.Offset) []schema.Member {
	members := o.Members()
	all := make([]schema.Member, 0, len(members))
	for _, m := range members {
		if m.Name != "row" {
			all = append(all, schema.Member(m))
		}
	}
	return all
}
