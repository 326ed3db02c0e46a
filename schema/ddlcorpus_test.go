package schema

import (
	"bufio"
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// corpusStatement is a statement and what the DDL parser of Debezium 3.6.1.Final (MySqlAntlrDdlParser, with comments)
// made of it. The first 305 are from the examples of its debezium-ddl-parser (Apache License 2.0, Debezium Authors); the
// rest were generated.
type corpusStatement struct {
	DB     string            `json:"db"`
	SQL    string            `json:"sql"`
	Reset  bool              `json:"reset"`  // a new parser
	Events []string          `json:"events"` // TYPE "db"."table" "db"."previous": the statement as it is recorded
	Tables []json.RawMessage `json:"tables"` // those that are new or changed, as history records have them
	Gone   []string          `json:"gone"`
}

func readCorpus(t *testing.T, file string) []corpusStatement {
	t.Helper()
	lines := bufio.NewScanner(openGzip(t, file))
	lines.Buffer(nil, 1<<24)
	var all []corpusStatement
	for lines.Scan() {
		var s corpusStatement
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) < 1000 {
		t.Fatalf("%d statements", len(all))
	}
	return all
}

func TestCatalogMakesOfDDLWhatDebeziumDoes(t *testing.T) {
	testCorpus(t, "ddl-corpus.jsonl.gz", CatalogOptions{Version: 80200})
}

// The connector for MariaDB has a parser of its own (MariaDbAntlrDdlParser of 3.6.1.Final).
func TestCatalogMakesOfDDLWhatDebeziumDoesForMariaDB(t *testing.T) {
	testCorpus(t, "ddl-corpus-mariadb.jsonl.gz", CatalogOptions{Version: 110800, MariaDB: true})
}

func testCorpus(t *testing.T, file string, options CatalogOptions) {
	options.Comments = true
	options.Filter = func(string) bool { return false } // the parser alone has none
	var catalog *Catalog
	for _, s := range readCorpus(t, file) {
		if s.Reset {
			catalog = NewCatalog(options)
		}
		changes, _, err := catalog.Apply(Statement{Database: s.DB, SQL: s.SQL})
		if err != nil {
			t.Errorf("%s: %v", s.SQL, err)
			continue
		}
		if diff := cmp.Diff(s.records(t), records(changes)); diff != "" {
			t.Errorf("%s: records (-want +got)\n%s", s.SQL, diff)
		}
		for _, raw := range s.Tables {
			var want historyChange
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			database, table, err := splitTableID(want.ID)
			if err != nil {
				t.Fatal(err)
			}
			def := catalog.Definition(database, table)
			if def == nil {
				t.Errorf("%s: table %s is not known", s.SQL, want.ID)
				continue
			}
			w := historyWriter{}
			w.change(&Change{Kind: CreateTable, Database: database, Table: table, Definition: def})
			if !bytes.Equal(w.out, raw) {
				t.Errorf("%s (-want +got)\n%s", s.SQL, cmp.Diff(string(raw), string(w.out)))
			}
		}
		for _, id := range s.Gone {
			if database, table, _ := splitTableID(id); catalog.Definition(database, table) != nil {
				t.Errorf("%s: table %s is still known", s.SQL, id)
			}
		}
	}
}

// records are the texts of the records that the events lead to: one for SET, none for TRUNCATE.
func (s *corpusStatement) records(t *testing.T) []string {
	var all []string
	for _, event := range s.Events {
		head, ddl, ok := strings.Cut(event, ": ")
		switch kind, _, _ := strings.Cut(head, " "); {
		case !ok:
			t.Fatalf("event %q", event)
		case kind == "TRUNCATE_TABLE", kind == "SET_VARIABLE" && slices.Contains(all, ddl):
		default:
			all = append(all, ddl)
		}
	}
	if len(s.Events) == 0 {
		all = []string{trimStatement(s.SQL)}
	}
	return all
}

func records(changes []SchemaChange) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.DDL)
	}
	return all
}

func FuzzCatalog(f *testing.F) {
	for _, sql := range []string{
		"CREATE TABLE t (a INT DEFAULT b'1', `e` ENUM('x','y'), UNIQUE KEY u ((a), e(2))) /*!50100 CHARSET=x */",
		"CREATE TABLE t (a x(1) DEFAULT 0x00, PRIMARY KEY (a",
		"ALTER TABLE t ADD (x SERIAL, y NCHAR), CHANGE a b REAL(1,2) AFTER x, CONVERT TO CHARACTER SET latin1, RENAME u",
		"RENAME TABLE t TO u, u TO t; DROP TABLE IF EXISTS a, `b`.`c` CASCADE",
		"CREATE DATABASE d CHARSET latin1; USE d; ALTER DATABASE COLLATE utf8mb4_bin",
		"SET STATEMENT max_statement_time=1 FOR CREATE OR REPLACE TABLE t (j JSON DEFAULT uuid()) WITH SYSTEM VERSIONING",
		"CREATE DEFINER=`a`@`%` VIEW v AS SELECT 1", "/*M! DROP TABLE t */ /*!99999 x */ SET @a = 1, NAMES x",
		"ALTER TABLE t ALTER a SET DEFAULT -1.5, ORDER BY a, b DESC, DROP c, ADD PARTITION (PARTITION p VALUES IN (1))",
		"CREATE UNIQUE INDEX i ON t (a DESC, (b + 1))", "CREATE TABLE l LIKE t", "CREATE TABLE s SELECT 1",
	} {
		f.Add(sql, uint8(0))
		f.Add(sql, uint8(255))
	}
	f.Fuzz(func(t *testing.T, sql string, flags uint8) {
		c := NewCatalog(CatalogOptions{MariaDB: flags&1 != 0, IgnoreCase: flags&2 != 0, OnlyCapturedTables: flags&4 != 0})
		s := Statement{
			Database: "d", SQL: "CREATE TABLE t (a INT NOT NULL, b VARCHAR(9), c ENUM('x') DEFAULT 'x', UNIQUE (a))",
			AnsiQuotes: flags&8 != 0, NoBackslashEscapes: flags&16 != 0,
		}
		if flags&32 != 0 {
			s.Form = ShowCreateForm
		}
		if _, _, err := c.Apply(s); err != nil {
			t.Fatal(err)
		}
		s.SQL = sql
		changes, _, err := c.Apply(s)
		if err != nil && len(changes) > 0 {
			t.Errorf("changes beside the error %v", err)
		}
		for i := range changes {
			for _, change := range changes[i].Changes {
				if def := change.Definition; def != nil {
					checkDefinition(t, def)
				}
			}
			AppendHistory(nil, &HistoryRecord{DDL: changes[i].DDL, Changes: changes[i].Changes})
		}
		for _, name := range c.Tables("d") {
			checkDefinition(t, c.Definition("d", name))
		}
		if _, err := ParseCreateTable("d", sql); err != nil {
			return
		}
	})
}

// checkDefinition holds what every definition has to be: no column twice, all with types, keys of known columns.
func checkDefinition(t *testing.T, def *Definition) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range def.Columns {
		if name := strings.ToLower(c.Name); seen[name] {
			t.Errorf("%s.%s has two columns %s", def.Database, def.Name, c.Name)
		} else {
			seen[name] = true
		}
		if c.Type == "" {
			t.Errorf("%s.%s: column %s has no type", def.Database, def.Name, c.Name)
		}
		if c.Server != nil && c.Server.Labels != nil && len(c.Server.Labels) != len(c.Labels) {
			t.Errorf("%s: %d labels, %d on the server", c.Name, len(c.Labels), len(c.Server.Labels))
		}
	}
}
