package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// written is a history that only remembers.
type written struct{ records []schema.HistoryRecord }

func (w *written) read(context.Context) ([]schema.HistoryEntry, error) { return nil, nil }

func (w *written) write(_ context.Context, records []schema.HistoryRecord) error {
	w.records = append(w.records, records...)
	return nil
}

func (w *written) close() {}

// A history is begun as a snapshot of Debezium's begins it.
func TestHistoryBegin(t *testing.T) {
	texts := []server.TableText{
		{TableID: server.TableID{Database: "d", Name: "t"}, SQL: "CREATE TABLE `t` (\n  `a` int NOT NULL COMMENT 'c',\n  PRIMARY KEY (`a`)\n) ENGINE=InnoDB COMMENT='t'\n/*!50100 PARTITION BY HASH (`a`)\nPARTITIONS 3 */"},
		{TableID: server.TableID{Database: "d", Name: "u"}, SQL: "CREATE TABLE \"u\" (\n  \"a\" int\n)"},
	}
	charsets := server.Charsets{Server: "utf8mb4", ServerCollation: "utf8mb4_bin", Databases: map[string]string{"d": "latin1"}, Collations: map[string]string{"d": "latin1_bin"}}
	begin := func(c config.Connector) (ddl []string, records []schema.HistoryRecord) {
		t.Helper()
		w := &written{}
		s := &schemas{c: &c, history: w, log: zap.NewNop()}
		if err := s.begin(t.Context(), texts, catalogOptions(&c), charsets, offset.Offset{File: "mysql-bin.000002", Pos: 700}); err != nil {
			t.Fatal(err)
		}
		for _, r := range w.records {
			ddl = append(ddl, r.DDL)
		}
		return ddl, w.records
	}
	made := "CREATE TABLE `t` (\n  `a` int NOT NULL COMMENT 'c',\n  PRIMARY KEY (`a`)\n) ENGINE=InnoDB COMMENT='t'\n/*!50100 PARTITION BY HASH (`a`)\nPARTITIONS 3"
	tables := []string{
		"SET character_set_server=utf8mb4, collation_server=utf8mb4_bin", "DROP TABLE IF EXISTS `d`.`t`", "DROP TABLE IF EXISTS `d`.`u`",
		made, texts[1].SQL,
	}
	databases := []string{"DROP DATABASE IF EXISTS `d`", "CREATE DATABASE `d` CHARSET latin1 COLLATE latin1_bin", "USE `d`"}

	ddl, records := begin(config.Connector{Filter: &config.Filter{}})
	if want := slices.Insert(slices.Clone(tables), 3, databases...); !slices.Equal(ddl, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(ddl, "\n"), strings.Join(want, "\n"))
	}
	if def := records[6].Changes[0].Definition; def.Comment != "" || def.Columns[0].Comment != "" {
		t.Error("it has comments, though include.schema.comments is not set")
	}
	if def := records[7].Changes[0].Definition; len(def.Columns) != 1 {
		t.Errorf("what was printed under ANSI_QUOTES has the definition %v", def)
	}

	_, records = begin(config.Connector{Filter: &config.Filter{}, Modes: schema.Modes{Comments: true}})
	if def := records[6].Changes[0].Definition; def.Comment != "t" || def.Columns[0].Comment != "c" {
		t.Error("it lacks comments, though include.schema.comments is set")
	}

	c := config.Connector{Filter: &config.Filter{}}
	c.History.OnlyTables = true
	if ddl, _ = begin(c); !slices.Equal(ddl, tables) {
		t.Errorf("store.only.captured.tables.ddl: got\n%s\nwant\n%s", strings.Join(ddl, "\n"), strings.Join(tables, "\n"))
	}
}

// What a captured table may be made from has to be known, too, and the schema change topic has all tables.
func TestWanted(t *testing.T) {
	for name, tt := range map[string]struct {
		keys map[string]string
		want string // of captured table, another one, one of another database
	}{
		"default":                       {nil, "true true true"},
		"no history, no schema changes": {map[string]string{"include.schema.changes": "false"}, "true false false"},
		"captured tables only":          {map[string]string{"schema.history.internal.store.only.captured.tables.ddl": "true"}, "true false false"},
		"captured databases only":       {map[string]string{"schema.history.internal.store.only.captured.databases.ddl": "true"}, "true true false"},
		"history, no schema changes": {map[string]string{
			"include.schema.changes": "false", "schema.history.internal.kafka.topic": "h", "schema.history.internal.kafka.bootstrap.servers": "k:9092",
		}, "true true true"},
	} {
		t.Run(name, func(t *testing.T) {
			c := connectorOf(t, tt.keys)
			keep := wanted(c)
			var got []string
			for _, id := range [][2]string{{"d", "t"}, {"d", "other"}, {"e", "t"}} {
				got = append(got, map[bool]string{true: "true", false: "false"}[keep(id[0], id[1])])
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
}

// connectorOf is a connector with these keys beside those that it must have; it captures table t of database d.
func connectorOf(t *testing.T, keys map[string]string) *config.Connector {
	t.Helper()
	all := map[string]string{
		"connector.class": "io.debezium.connector.mysql.MySqlConnector", "database.hostname": "db", "database.user": "u", "database.password": "p",
		"database.server.id": "1", "topic.prefix": "p", "snapshot.mode": "no_data", "database.include.list": "d", "table.include.list": "d.t",
	}
	maps.Copy(all, keys)
	text, err := json.Marshal(map[string]any{"name": "shop", "config": all})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	worker, connector := filepath.Join(dir, "worker.properties"), filepath.Join(dir, "shop.json")
	for path, content := range map[string][]byte{worker: []byte("bootstrap.servers=k:9092\noffset.storage.file.filename=" + dir + "/offsets.dat\n"), connector: text} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load([]string{worker, connector}, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Connectors[0]
}
