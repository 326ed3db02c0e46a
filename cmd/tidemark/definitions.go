package main

import (
	"context"
	"errors"
	"strings"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/schema"
)

// definitions knows the captured tables by SHOW CREATE TABLE: as they were when the stream was opened, and, when asked
// to refresh, as they are.
type definitions struct {
	server server.Config
	tables map[server.TableID]*schema.Definition
	log    *zap.Logger
}

// readDefinitions reads the definitions of all captured tables.
func readDefinitions(ctx context.Context, conn *server.Conn, cfg server.Config, captured func(database, table string) bool, log *zap.Logger) (*definitions, error) {
	texts, _, err := conn.Definitions(ctx, captured)
	if err != nil {
		return nil, err
	}
	d := &definitions{server: cfg, tables: make(map[server.TableID]*schema.Definition, len(texts)), log: log}
	for _, t := range texts {
		d.tables[t.TableID] = d.parse(t.TableID, t.SQL)
	}
	if len(texts) == 0 {
		log.Warn("no table of the server is captured as things are; there will be no events until one is made that database.include.list, table.include.list and their exclude lists let through")
	}
	return d, nil
}

// parse reads a definition. One that cannot be read costs the table's defaults, not the stream: TABLE_MAP has the rest.
func (d *definitions) parse(id server.TableID, sql string) *schema.Definition {
	def, err := schema.ParseCreateTable(id.Database, sql)
	if err != nil {
		d.log.Warn("a table's definition cannot be read; its events have no defaults in their schema, and no key unless it has a primary key",
			zap.Stringer("table", id), zap.Error(err))
		return nil
	}
	return def
}

// Definition is the table as it was last read.
func (d *definitions) Definition(database, table string) *schema.Definition {
	return d.tables[server.TableID{Database: database, Name: table}]
}

// Refresh reads the table anew, over a connection of its own: this is rare, and an idle connection would be gone by then.
func (d *definitions) Refresh(ctx context.Context, database, table string) (*schema.Definition, error) {
	id := server.TableID{Database: database, Name: table}
	conn, err := server.Connect(ctx, d.server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	sql, err := conn.ShowCreate(ctx, database, table)
	if errors.Is(err, server.ErrNoTable) {
		delete(d.tables, id)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d.tables[id] = d.parse(id, sql)
	return d.tables[id], nil
}

// Tables names the tables of a database that were read: a function logged as text could have changed them.
func (d *definitions) Tables(database string) []string {
	var names []string
	for id := range d.tables {
		if strings.EqualFold(id.Database, database) {
			names = append(names, id.Name)
		}
	}
	return names
}
