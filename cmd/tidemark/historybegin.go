package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// begin writes the tables as they are at a position into the schema history, as Debezium's snapshot does before it
// streams: without that no Debezium could go on from the history. opts are those of the stream's catalog.
func (s *schemas) begin(ctx context.Context, texts []server.TableText, opts schema.CatalogOptions, charsets server.Charsets, at offset.Offset) error {
	at.TsSec = time.Now().Unix()
	at.Extra = []offset.Member{{Name: "snapshot", Value: `"INITIAL"`}}
	where := position(at)
	var records []schema.HistoryRecord
	add := func(database, ddl string, changes ...schema.Change) {
		records = append(records, schema.HistoryRecord{
			Server: s.c.Prefix, Position: where, Time: time.Now().UnixMilli(), Database: database, DDL: ddl, Changes: changes,
		})
	}
	add("", "SET character_set_server="+charsets.Server+", collation_server="+charsets.ServerCollation)
	byDatabase := map[string][]server.TableText{}
	for _, t := range texts {
		byDatabase[t.Database] = append(byDatabase[t.Database], t)
		add(t.Database, "DROP TABLE IF EXISTS "+quoteName(t.Database)+"."+quoteName(t.Name), schema.Change{Kind: schema.DropTable, Database: t.Database, Table: t.Name})
	}
	for _, database := range slices.Sorted(maps.Keys(byDatabase)) {
		if !s.c.History.OnlyTables {
			name := quoteName(database)
			add(database, "DROP DATABASE IF EXISTS "+name)
			create := "CREATE DATABASE " + name
			if charset := charsets.Databases[database]; charset != "" {
				create += " CHARSET " + charset + " COLLATE " + charsets.Collations[database]
			}
			add(database, create)
			add(database, "USE "+name)
		}
		for _, t := range byDatabase[database] {
			if ddl, change := s.created(t, opts); change.Definition != nil {
				add(database, ddl, change)
			}
		}
	}
	return s.history.write(ctx, records)
}

// created is a table's CREATE TABLE as a history has it: without comments, unless include.schema.comments is set, and cut
// where Debezium's parser cuts. There is no definition if the text cannot be read.
func (s *schemas) created(t server.TableText, opts schema.CatalogOptions) (string, schema.Change) {
	changes, _, err := schema.NewCatalog(opts).Apply(schema.Statement{Database: t.Database, SQL: t.SQL})
	if err == nil && len(changes) == 1 && len(changes[0].Changes) == 1 {
		return changes[0].DDL, changes[0].Changes[0]
	}
	def := s.parse(t.TableID, t.SQL, opts) // printed under ANSI_QUOTES
	return t.SQL, schema.Change{Kind: schema.CreateTable, Database: t.Database, Table: t.Name, Definition: def}
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
