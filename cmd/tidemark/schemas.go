package main

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

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
	may     func() bool // whether this process may still store; nil: it may
	log     *zap.Logger

	registries *registries
	refusal    refusal
	warned     bool // of a server that forgets

	late      *lateHistory  // is still to be written; nil: nothing is
	unwritten offset.Offset // statements up to there have no records in the history; zero: all have
}

// openSchemas opens the schema history of a connector; store is shared with the others.
func openSchemas(c *config.Connector, store schema.Store, em *emitter.Emitter, regs *registries, log *zap.Logger) (*schemas, error) {
	s := &schemas{c: c, store: store, emitter: em, registries: regs, log: log}
	switch h := &c.History; {
	case h.Topic != "":
		topic, err := kafka.OpenHistory(kafka.HistoryConfig{
			ClientConfig: kafka.ClientConfig{Properties: h.Producer, Reread: h.ProducerReread, ClientID: c.Name + "-schemahistory", Log: log},
			Consumer:     h.Consumer, ConsumerReread: h.ConsumerReread, Topic: h.Topic, Server: c.Prefix,
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
		UnknownTable:       skipTables(c, log),
		IncludeQuery:       c.IncludeQuery,
		Transactions:       c.Transactions,
		Recount:            recount && c.Transactions,
		Once:               c.ExactlyOnce != nil,
		GTIDSources:        c.GTIDSources,
		SourceRows:         !c.GTIDDML,
		Log:                log,
	}
}

// open opens the stream of the connector's server: at from, with the tables as they were there.
func (s *schemas) open(ctx context.Context, from binlog.Start) (binlog.Source, error) {
	srv := serverConfig(s.c, s.log)
	if err := s.refusal.again(&srv); err != nil {
		return nil, err
	}
	source, err := s.openAt(ctx, srv, from)
	s.refusal.judge(&srv, err)
	return source, err
}

func (s *schemas) openAt(ctx context.Context, srv server.Config, from binlog.Start) (binlog.Source, error) {
	var fenced errgroup.Group // meanwhile
	fenced.Go(func() error { return s.fence(ctx) })
	conn, err := server.Connect(ctx, srv)
	if err = errors.Join(err, fenced.Wait()); err != nil {
		if conn != nil {
			conn.Close()
		}
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
		return nil, otherKind(s.c, conn.Address(), info)
	}
	if info.Forgets() && !s.warned {
		s.warned = true
		s.log.Warn("a crash of the server's computer may take back its last transactions, whose events are in the topics by then; the stream would stop and name them. "+
			"sync_binlog=1 and innodb_flush_log_at_trx_commit=1 on the server prevent that", zap.String("server", conn.Address()),
			zap.String("sync_binlog", info.SyncBinlog), zap.String("innodb_flush_log_at_trx_commit", info.FlushLog))
	}
	opts := catalogOptions(s.c)
	opts.IgnoreCase, opts.Version = info.LowerCaseNames != 0, info.VersionNumber()
	cfg := readerConfig(s.c, from, s.log)
	cfg.Catalog, cfg.IgnoreCase = schema.NewCatalog(opts), opts.IgnoreCase
	cfg.Refresh = s.refresh(srv, opts)
	if from, err = s.define(ctx, conn, info, opts, &cfg, from); err != nil {
		return nil, err
	}
	if err := checkTables(s.c, s.emitter, cfg.Catalog); err != nil {
		return nil, err
	}
	s.registries.lookup(s.emitter, s.c.Filter.Captured, cfg.Catalog)
	reader, err := binlog.Open(ctx, conn, binlog.Replica{ServerID: s.c.ServerID, Name: s.c.Name}, cfg, from)
	switch {
	case err != nil:
		return nil, err
	case s.late != nil:
		return &lateSource{reader, s}, nil
	case len(cfg.History) == 0 || s.store == nil || cfg.CatalogAt.File != "":
		return reader, nil
	}
	if err := s.merge(ctx, opts, cfg.Catalog, reader.Start()); err != nil {
		reader.Close()
		return nil, err
	}
	return reader, nil
}

// fence keeps other processes of this connector, which were suspended or cut off, from storing what they knew of its tables when they
// go on.
func (s *schemas) fence(ctx context.Context) error {
	topic, ok := s.store.(*kafka.SchemaTopic)
	switch {
	case !ok || s.c.TransactionalID == "":
		return nil
	case s.may != nil && !s.may(): // it would be taken from who runs now
		return emitter.ErrStale
	}
	return topic.Fence(ctx, s.c.Name, s.c.Prefix, s.c.TransactionalID+"-schemas")
}

// define fills in what is known of the tables at from: by the schema history, which wins, by the store, or by what the
// server says. It returns where to start.
func (s *schemas) define(ctx context.Context, conn *server.Conn, info *server.Info, opts schema.CatalogOptions, cfg *binlog.Config, from binlog.Start) (binlog.Start, error) {
	s.late, s.unwritten = nil, offset.Offset{}
	stored := false // the store has the definitions: only the history is to be begun
	if from.Offset != nil {
		if s.c.IgnoreGTIDs && !info.MariaDB() {
			plain := *from.Offset
			plain.GTIDs = offset.GTIDSet{}
			from.Offset = &plain
		}
		known, err := s.recall(ctx, cfg, *from.Offset, info.NamesColumns())
		if err != nil {
			return from, err
		}
		if known && (s.history == nil || len(cfg.History) > 0) {
			return from, nil
		}
		stored = known
	}
	fresh := from.Offset == nil
	texts, at, err := conn.Definitions(ctx, wanted(s.c), s.c.Filter.Captured)
	if err != nil {
		return from, err
	}
	captured := 0
	for _, t := range texts {
		if s.c.Filter.Captured(t.Database, t.Name) {
			captured++
		}
	}
	if err := s.guard(captured); err != nil {
		return from, err
	}
	if captured == 0 {
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
	if !fresh {
		covers, known := from.Offset.Covers(offset.Position{File: position.File, Pos: position.Pos, GTIDs: position.GTIDs})
		past = !covers || !known
	}
	charsets, err := conn.Charsets(ctx)
	if err != nil {
		return from, err
	}
	if err := s.beginHistory(ctx, past, fresh, lateHistory{position, texts, charsets, opts}); err != nil || stored {
		return from, err
	}
	if past && !info.NamesColumns() {
		// Nobody can say what the tables were at the start: what SHOW CREATE TABLE says may be wrong there, and nothing in
		// the binlog would show it.
		s.log.Warn("the start lies in the past, the definitions of the tables there are not stored, and the binlog does not name columns (binlog_row_metadata is not FULL): "+
			"only tables whose CREATE TABLE comes by can be read", zap.Stringer("server", position))
		return from, s.replaceStored(ctx, nil)
	}
	for i, t := range texts {
		cfg.Catalog.Set(t.Database, t.Name, s.parse(t.TableID, t.SQL, opts))
		if s.late == nil {
			texts[i] = server.TableText{} // of many tables they are large
		}
	}
	cfg.Catalog.SetServer(charsets.Server)
	databases := wantedDatabases(s.c)
	for database, charset := range charsets.Databases {
		if databases(database) {
			cfg.Catalog.SetDatabase(database, charset)
		}
	}
	if past {
		cfg.CatalogAt = position
	} else if fresh {
		from = startAt(position) // the very point at which the definitions hold
	}
	gtids := ""
	if !position.GTIDs.IsAbsent() {
		gtids = position.GTIDs.String()
	}
	all := cfg.Catalog.All()
	for i := range all {
		v := &all[i].Versions[0]
		v.File, v.Pos, v.GTIDs = position.File, position.Pos, gtids
	}
	return from, s.replaceStored(ctx, all)
}

// replaceStored makes tables all that the store has. What it had is of an offset that is given up: tables may have been
// changed since, and what does not lie before the new start would count there.
func (s *schemas) replaceStored(ctx context.Context, tables []schema.StoredTable) error {
	if s.store == nil {
		return nil
	}
	stale, err := s.store.Load(ctx, s.c.Name, s.c.Prefix)
	if err != nil {
		return err
	}
	kept := make(map[schema.TableName]bool, len(tables))
	for i := range tables {
		kept[schema.TableName{Database: tables[i].Database, Table: tables[i].Table}] = true
	}
	for _, t := range stale {
		if !kept[schema.TableName{Database: t.Database, Table: t.Table}] {
			tables = append(tables, schema.StoredTable{Database: t.Database, Table: t.Table})
		}
	}
	return s.store.Save(ctx, s.c.Name, s.c.Prefix, tables)
}

// wanted says which tables' definitions are read from the server: those of which Debezium's snapshot would write the
// history. That is every table, captured or not, unless schema.history.internal.store.only.captured.* says otherwise: a
// captured one may be made from it (CREATE TABLE … LIKE, RENAME TABLE), and the schema change topic has what is done to it.
func wanted(c *config.Connector) func(database, table string) bool {
	databases := wantedDatabases(c)
	if c.History.OnlyTables || c.History.Topic == "" && c.History.File == "" && !c.SchemaChanges {
		return c.Filter.Captured
	}
	return func(database, _ string) bool { return databases(database) }
}

// wantedDatabases is the same for the databases that the tables are in.
func wantedDatabases(c *config.Connector) func(database string) bool {
	if c.History.OnlyTables || c.History.OnlyDatabases {
		return c.Filter.CapturedDatabase
	}
	return func(string) bool { return true }
}

// startAt is a position of the server between transactions.
func startAt(o offset.Offset) binlog.Start {
	if o.GTIDs.IsAbsent() {
		return binlog.Start{File: o.File, Pos: o.Pos}
	}
	return binlog.Start{Offset: &o} // which has the place in the file, too
}

// recall fills in the tables at a stored offset by the schema history or the store; false when neither has them. named
// says that the binlog names the columns of its rows.
func (s *schemas) recall(ctx context.Context, cfg *binlog.Config, stored offset.Offset, named bool) (bool, error) {
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
			s.adoptedLater(cfg, stored)
			return true, nil
		}
	}
	if s.store == nil {
		return false, nil
	}
	tables, err := s.store.Load(ctx, s.c.Name, s.c.Prefix)
	if err != nil {
		return false, err
	}
	if stored.Side == nil && !named && len(tables) > 0 && allReached(tables, stored) {
		// Who moved the offset has read statements that the store does not know of, and nothing in the binlog would show it.
		s.log.Warn("somebody else has moved the stored offset, and tables may have been changed on the way; as the binlog does not name the columns of its rows "+
			"(binlog_row_metadata is not FULL), Tidemark forgets what it knew of the tables", zap.Stringer("offset", stored), zap.Int("definitions", len(tables)))
		return false, s.replaceStored(ctx, nil)
	}
	cfg.Catalog.Load(tables, binlog.Reached(stored))
	for i := range tables {
		s.registries.note(&tables[i], binlog.Reached(stored))
	}
	if gone := dropped(tables, stored); len(gone) > 0 {
		if err := s.store.Save(ctx, s.c.Name, s.c.Prefix, gone); err != nil {
			return false, err
		}
	}
	return len(cfg.Catalog.Databases()) > 0, nil
}

// allReached says that no version in a store lies behind an offset: then the offset may lie behind everything that was read
// when they were stored. One that was moved back to before a statement that is known is not such.
func allReached(tables []schema.StoredTable, stored offset.Offset) bool {
	reached := binlog.Reached(stored)
	for i := range tables {
		for k := range tables[i].Versions {
			if !reached(&tables[i].Versions[k]) {
				return false
			}
		}
	}
	return true
}

// dropped are the tables of a store that no restart needs any more, as an earlier run has left them: to be forgotten.
func dropped(tables []schema.StoredTable, stored offset.Offset) []schema.StoredTable {
	var gone []schema.StoredTable
	reached := binlog.Reached(stored)
	for i := range tables {
		t := &tables[i]
		if n := len(t.Versions); t.Table != "" && n > 0 && t.Versions[n-1].Definition == nil && reached(&t.Versions[n-1]) {
			gone = append(gone, schema.StoredTable{Database: t.Database, Table: t.Table})
		}
	}
	return gone
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

// changed makes a schema change durable: first in the history, then in our store.
func (s *schemas) changed(ctx context.Context, ev *binlog.SchemaChange) error {
	if err := checkChange(s.c, s.emitter, ev); err != nil {
		return err
	}
	s.registries.changed(ev)
	if records := historyRecords(s.c.Prefix, ev, s.emitter.Mark); s.history != nil && len(records) > 0 && !s.written(ev.Offset) {
		if err := s.history.write(ctx, records); err != nil {
			return err
		}
	}
	if s.store == nil || len(ev.Tables) == 0 {
		return nil
	}
	return s.store.Save(ctx, s.c.Name, s.c.Prefix, ev.Tables)
}
