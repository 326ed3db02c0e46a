package binlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// sql writes a statement as a session of some settings does: sql_mode, and character_set_client, whose collation is given.
func (b *binlogBuilder) sql(mode uint64, client uint16, text string) int64 {
	b.group()
	status := binary.LittleEndian.AppendUint32([]byte{0}, 0)             // flags2
	status = binary.LittleEndian.AppendUint64(append(status, 1), mode)   // sql_mode
	status = append(append(status, 6, 3), "std"...)                      // catalog
	status = binary.LittleEndian.AppendUint16(append(status, 4), client) // character_set_client …
	status = binary.LittleEndian.AppendUint16(status, client)            // collation_connection
	status = binary.LittleEndian.AppendUint16(status, 255)               // collation_server
	status = append(append(status, 12, 1), "db\x00"...)                  // databases that are changed
	status = binary.LittleEndian.AppendUint16(append(status, 8), 8)      // collation_database: latin1
	status = append(status, 16, 1)                                       // explicit_defaults_for_timestamp
	status = binary.LittleEndian.AppendUint64(append(status, 17), 12)    // xid
	body := binary.LittleEndian.AppendUint32(nil, 42)                    // thread
	body = append(body, 0, 0, 0, 0, 2, 0, 0)                             // time, database, error
	body = append(binary.LittleEndian.AppendUint16(body, uint16(len(status))), status...)
	body = append(body, "db\x00"...)
	return b.add(evQuery, 0, append(body, text...))
}

func (b *binlogBuilder) ddl(text string) int64 { return b.sql(0, 255, text) }

// mapped writes a TABLE_MAP for the columns given as name and type code (INT or VARCHAR(20)), named or not.
func (b *binlogBuilder) mapped(id uint64, table string, named bool, columns ...string) {
	body := binary.LittleEndian.AppendUint64(nil, id)[:6]
	body = append(body, 1, 0, 2)
	body = append(body, "db\x00"...)
	body = append(append(append(body, byte(len(table))), table...), 0, byte(len(columns)))
	var types, meta, names []byte
	for _, c := range columns {
		name, typ, _ := strings.Cut(c, " ")
		if typ == "varchar" {
			types, meta = append(types, typeVarchar), append(meta, 80, 0)
		} else {
			types = append(types, typeLong)
		}
		names = append(append(names, byte(len(name))), name...)
	}
	body = append(append(append(body, types...), byte(len(meta))), meta...)
	body = append(body, make([]byte, (len(columns)+7)/8)...)
	if named {
		body = append(append(body, metaColumnName, byte(len(names))), names...)
		body = append(body, metaSimpleKey, 1, 0)
	}
	b.add(evTableMap, 0, body)
}

// write writes a row of INTs for a table of mapped.
func (b *binlogBuilder) write(id uint64, values ...uint32) {
	body := binary.LittleEndian.AppendUint64(nil, id)[:6]
	body = append(body, 1, 0, 2, 0, byte(len(values)), 0xff, 0)
	for _, v := range values {
		body = binary.LittleEndian.AppendUint32(body, v)
	}
	b.add(evWrite, 0, body)
}

// readTables reads a binlog and returns, for each rows event, the columns of its table with their defaults, and for each
// statement its text and the columns that its tables have afterwards.
func readTables(t testing.TB, b *binlogBuilder, cfg Config, start Start) (lines, warnings []string, err error) {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	cfg.Log = zap.New(core)
	if cfg.Captured == nil {
		cfg.Captured = func(database, table string) bool { return database == "db" && table != "other" }
	}
	r, err := newReader(cfg, b.clone())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.asm.early = true
	if err := r.startFiles(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	r.begin()
	for {
		ev, err := r.Read(t.Context())
		if err != nil {
			for _, entry := range logs.All() {
				warnings = append(warnings, entry.Message)
			}
			if err == io.EOF {
				err = nil
			}
			return lines, warnings, err
		}
		switch ev := ev.(type) {
		case *Rows:
			line := ev.Table.Name
			for _, c := range ev.Table.Columns {
				line += " " + c.Name
				if c.Def != nil && c.Def.Default != nil {
					line += "=" + *c.Def.Default
				}
			}
			lines = append(lines, line)
			for ev.Next() {
			}
		case *SchemaChange:
			for _, c := range ev.Changes {
				line := c.DDL + " →"
				for _, change := range c.Changes {
					line += " " + change.Table
					if change.Definition != nil {
						line += columnNamesOf(change.Definition)
					}
				}
				lines = append(lines, line)
			}
		case *Truncate:
			lines = append(lines, "truncate "+ev.Table)
		}
	}
}

func columnNamesOf(def *schema.Definition) string {
	var names []string
	for _, c := range def.Columns {
		names = append(names, c.Name)
	}
	return "(" + strings.Join(names, " ") + ")"
}

// TestI10_DDLMovesTheCatalog: each row has the columns and defaults of its position.
func TestI10_DDLMovesTheCatalog(t *testing.T) {
	b := numberedBinlog()
	b.ddl("CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL DEFAULT 5)")
	b.transaction(func() { b.mapped(9, "t", true, "id", "a"); b.write(9, 1, 2) })
	b.ddl("ALTER TABLE t ALTER COLUMN a SET DEFAULT 6")
	b.transaction(func() { b.mapped(9, "t", true, "id", "a"); b.write(9, 1, 2) })
	b.ddl("ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 7 AFTER id")
	b.transaction(func() { b.mapped(10, "t", true, "id", "b", "a"); b.write(10, 1, 2, 3) })
	b.ddl("RENAME TABLE t TO u")
	b.transaction(func() { b.mapped(11, "u", true, "id", "b", "a"); b.write(11, 1, 2, 3) })
	lines, warnings, err := readTables(t, b, Config{}, Start{})
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	wantLines(t, lines, []string{
		"CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL DEFAULT 5) → t(id a)",
		"t id a=5",
		"ALTER TABLE t ALTER COLUMN a SET DEFAULT 6 → t(id a)",
		"t id a=6",
		"ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 7 AFTER id → t(id b a)",
		"t id b=7 a=6",
		"RENAME TABLE t TO u → u(id b a)",
		"u id b=7 a=6",
	})
}

// TestSessionSettings: sql_mode and the character set of the client are in the event, and decide how its text is read.
func TestSessionSettings(t *testing.T) {
	for _, c := range []struct {
		name   string
		mode   uint64
		client uint16
		text   string
		want   string
	}{
		{"ANSI_QUOTES", modeAnsiQuotes, 255, `CREATE TABLE "q t" ("id" INT PRIMARY KEY, "we""ird" VARCHAR(5) DEFAULT 'x')`, `q t(id we"ird)`},
		{"quotes of strings", 0, 255, `CREATE TABLE t (c ENUM("a","b") DEFAULT "a")`, "t(c)"},
		{"latin1", 0, 8, "CREATE TABLE t (`caf\xe9` INT)", "t(café)"},
		{"gbk", 0, 28, "CREATE TABLE t (`\xc4\xe3\xba\xc3` INT)", "t(你好)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := anonymousBinlog()
			b.sql(c.mode, c.client, c.text)
			r, err := newReader(Config{Captured: func(string, string) bool { return true }}, b)
			if err != nil {
				t.Fatal(err)
			}
			for {
				ev, err := r.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if s, ok := ev.(*SchemaChange); ok {
					d := s.Changes[0].Changes[0].Definition
					if got := d.Name + columnNamesOf(d); got != c.want {
						t.Errorf("%s, want %s", got, c.want)
					}
					return
				}
			}
		})
	}
	got := decodeStatement(queryEvent{status: append(binary.LittleEndian.AppendUint64([]byte{1}, modeRealAsFloat|modeNoBackslashEscapes), 4, 33, 0, 33, 0, 255, 0, 8, 45, 0, 200, 1, 2)})
	want := schema.Statement{RealAsFloat: true, NoBackslashEscapes: true, Collation: 255, DatabaseCollation: 45}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzStatus(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 6, 3, 's', 't', 'd', 4, 33, 0, 33, 0, 255, 0, 12, 1, 'd', 'b', 0})
	f.Add([]byte{12, 254, 11, 2, 'm', 'e', 3, 'h'})
	f.Fuzz(func(_ *testing.T, b []byte) { parseStatus(b) })
}

// TestI11_StoredTables: a statement gives the versions of what it changed: the one before without a position, and those
// from the end of each statement on, as long as a restart may need them. Loading them at any offset gives the catalog of
// that position.
func TestI11_StoredTables(t *testing.T) {
	for name, begin := range bothBinlogs {
		t.Run(name, func(t *testing.T) {
			b := begin()
			b.ddl("ALTER TABLE t ADD COLUMN a INT")
			b.transaction(func() { b.insert("x", 1) })
			b.ddl("ALTER TABLE t ADD COLUMN b INT")
			b.ddl("DROP TABLE t")
			def, err := schema.ParseCreateTable("db", "CREATE TABLE `t` (`id` int)")
			if err != nil {
				t.Fatal(err)
			}
			catalog := schema.NewCatalog(schema.CatalogOptions{})
			catalog.Set("db", "t", def)
			r, err := newReader(Config{Captured: func(string, string) bool { return true }, Catalog: catalog}, b)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.startFiles(t.Context(), Start{}); err != nil {
				t.Fatal(err)
			}
			marks := []offset.Offset{r.Start()}
			want := []string{"(id)"}
			var changes []SchemaChange
			for {
				ev, err := r.Read(t.Context())
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				switch ev := ev.(type) {
				case *Boundary:
					marks, want = append(marks, ev.Offset), append(want, want[len(want)-1])
				case *SchemaChange:
					changes = append(changes, *ev)
					marks, want = append(marks, ev.Before, ev.Record, ev.Offset), append(want, want[len(want)-1], "", []string{"(id a)", "(id a b)", "gone"}[len(changes)-1])
				}
			}
			var store schema.StoredTable
			for i, c := range changes {
				if len(c.Tables) != 1 || len(c.Tables[0].Versions) != i+2 {
					t.Fatalf("statement %d: %+v", i, c.Tables)
				}
				store = c.Tables[0]
			}
			for i, o := range marks {
				if want[i] == "" {
					continue // Debezium's own offset, which is for its history
				}
				at := schema.NewCatalog(schema.CatalogOptions{})
				at.Load([]schema.StoredTable{store}, Reached(o))
				got := "gone"
				if d := at.Definition("db", "t"); d != nil {
					got = columnNamesOf(d)
				}
				if got != want[i] {
					t.Errorf("at %s: %s, want %s", o, got, want[i])
				}
			}
			// What lies before the offset that is stored is left out.
			r.Stored(changes[1].Offset)
			left := r.asm.versions.add(tableName{"db", "t"}, schema.TableName{Database: "db", Table: "t"}, schema.StoredVersion{File: "mysql-bin.000009", Pos: 4})
			if len(left.Versions) != 3 || left.Versions[0].Pos != changes[1].Offset.Pos {
				t.Errorf("left %+v", left.Versions)
			}
		})
	}
}

// TestI11_HistoryWins: entries of an adopted history hold from their positions on, whatever the statement there says; those
// before the start from the beginning, and the statement is not applied again when it is read again.
func TestI11_HistoryWins(t *testing.T) {
	def := func(columns ...string) *schema.Definition {
		d := &schema.Definition{Database: "db", Name: "t", KeyKind: schema.KeyChosen, Key: []string{"id"}}
		for _, c := range columns {
			d.Columns = append(d.Columns, schema.ColumnDef{Name: c, Type: "INT", Length: -1, Scale: -1, Nullable: true, Comment: "history"})
		}
		return d
	}
	for name, begin := range bothBinlogs {
		t.Run(name, func(t *testing.T) {
			b := begin()
			start := b.end
			b.transaction(func() { b.mapped(9, "t", true, "id"); b.write(9, 1) })
			b.ddl("ALTER TABLE t ADD COLUMN a INT")
			end := b.end
			b.transaction(func() { b.mapped(9, "t", true, "id", "a"); b.write(9, 1, 2) })
			gtids := func(n int) string {
				switch {
				case name != "GTIDs":
					return ""
				case n == 0:
					return ""
				}
				return fmt.Sprintf("%s:1-%d", testUUID, n)
			}
			change := func(kind schema.ChangeKind, d *schema.Definition) []schema.Change {
				return []schema.Change{{Kind: kind, Database: "db", Table: "t", Definition: d}}
			}
			history := []schema.HistoryEntry{
				{File: "mysql-bin.000001", Pos: start, Snapshot: true, GTIDs: gtids(0), Database: "db", DDL: "CREATE TABLE t (id INT)", Changes: change(schema.CreateTable, def("id"))},
				{File: "mysql-bin.000001", Pos: end, GTIDs: gtids(1), Database: "db", DDL: "ALTER TABLE t ADD COLUMN a INT", Changes: change(schema.AlterTable, def("id", "a"))},
			}
			comments := func(from Start) string {
				r, err := newReader(Config{Captured: func(string, string) bool { return true }, History: history}, b.clone())
				if err != nil {
					t.Fatal(err)
				}
				r.asm.early = true
				if err := r.startFiles(t.Context(), from); err != nil {
					t.Fatal(err)
				}
				r.begin()
				var got []string
				for {
					ev, err := r.Read(t.Context())
					if err == io.EOF {
						return strings.Join(got, ", ")
					}
					if err != nil {
						t.Fatal(err)
					}
					switch ev := ev.(type) {
					case *Rows:
						got = append(got, "row")
						for _, c := range ev.Table.Columns {
							if c.Def == nil || c.Def.Comment != "history" {
								t.Errorf("column %s has definition %+v", c.Name, c.Def)
							}
							got = append(got, c.Name)
						}
						for ev.Next() {
						}
					case *SchemaChange:
						d := ev.Changes[0].Changes[0].Definition
						got = append(got, "ddl"+columnNamesOf(d))
						if d != history[1].Changes[0].Definition || len(ev.Changes) != 1 {
							t.Errorf("the change is not that of the history: %+v", ev.Changes)
						}
					}
				}
			}
			const all = "row, id, ddl(id a), row, id, a"
			if got := comments(Start{}); got != all {
				t.Errorf("from the beginning: %s", got)
			}
			set := "-"
			if name == "GTIDs" {
				set = "1"
			}
			// Debezium's offset behind the statement lacks its GTID, so with GTIDs it is read again.
			want := "row, id, a"
			if name == "GTIDs" {
				want = "ddl(id a), row, id, a"
			}
			if got := comments(Start{Offset: stored(t, "mysql-bin.000001", end, 0, 0, set)}); got != want {
				t.Errorf("from behind the statement: %s, want %s", got, want)
			}
		})
	}
}

// TestTablesBeforeTheStartStandForASnapshot: in files a table that was made before the start has the form of SHOW CREATE
// TABLE, one that is made behind it the stream's.
func TestTablesBeforeTheStartStandForASnapshot(t *testing.T) {
	b := numberedBinlog()
	b.ddl("CREATE TABLE t (id INT PRIMARY KEY, a BOOL)")
	middle := b.end
	b.ddl("CREATE TABLE u (id INT PRIMARY KEY, a BOOL)")
	for _, c := range []struct {
		from Start
		t    string
	}{
		{Start{}, "BOOL"},
		{Start{File: "mysql-bin.000001", Pos: middle}, "TINYINT"},
		{Start{Offset: stored(t, "mysql-bin.000001", middle, 0, 0, "1")}, "TINYINT"},
	} {
		r, err := newReader(Config{Captured: func(string, string) bool { return true }}, b.clone())
		if err != nil {
			t.Fatal(err)
		}
		r.asm.early = true
		if err := r.startFiles(t.Context(), c.from); err != nil {
			t.Fatal(err)
		}
		r.begin()
		for {
			if _, err := r.Read(t.Context()); err != nil {
				break
			}
		}
		for table, want := range map[string]string{"t": c.t, "u": "BOOL"} {
			d := r.asm.defs.at("db", table)
			if d == nil || !strings.HasPrefix(d.Columns[1].Type, want) {
				t.Errorf("from %+v: %s is %+v, want %s", c.from, table, d, want)
			}
		}
	}
}

// TestUnparseableDDL: with column names in the binlog a statement that is not understood stops nothing; without them the
// table is asked for if nothing has changed it since, and otherwise the stream stops with the statement.
func TestUnparseableDDL(t *testing.T) {
	const odd = "ALTER TABLE t MODIFY COLUMN a FROBNICATED(((GLUE"
	now, err := schema.ParseCreateTable("db", "CREATE TABLE `t` (`id` int NOT NULL, `now` int NOT NULL, PRIMARY KEY (`id`))")
	if err != nil {
		t.Fatal(err)
	}
	build := func(named bool) *binlogBuilder {
		b := numberedBinlog()
		b.ddl("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT NOT NULL DEFAULT 5)")
		b.transaction(func() { b.mapped(9, "t", named, "id", "a"); b.write(9, 1, 2) })
		b.ddl(odd)
		b.transaction(func() { b.mapped(9, "t", named, "id", "a"); b.write(9, 1, 2) })
		return b
	}
	create := "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT NOT NULL DEFAULT 5) → t(id a)"
	t.Run("with names", func(t *testing.T) {
		lines, warnings, err := readTables(t, build(true), Config{}, Start{})
		if err != nil {
			t.Fatal(err)
		}
		wantLines(t, lines, []string{create, "t id a=5", "t id a"})
		if len(warnings) == 0 || !strings.Contains(warnings[0], "a statement was not understood") || !strings.Contains(warnings[0], "FROBNICATE") {
			t.Errorf("warnings %q", warnings)
		}
	})
	t.Run("without names", func(t *testing.T) {
		lines, _, err := readTables(t, build(false), Config{}, Start{})
		wantLines(t, lines, []string{create, "t id a=5"})
		wantError(t, err, "table db.t", "binlog_row_metadata=MINIMAL", odd, "there is no server to ask", "SET PERSIST binlog_row_metadata=FULL", "schema.history.internal.skip.unparseable.ddl=true")
	})
	t.Run("skipped", func(t *testing.T) {
		lines, _, err := readTables(t, build(false), Config{SkipUnparseableDDL: true}, Start{})
		if err != nil {
			t.Fatal(err)
		}
		wantLines(t, lines, []string{create, "t id a=5", odd + " →", "t id a=5"})
	})
	for _, later := range []bool{false, true} {
		t.Run(fmt.Sprintf("asked, changed later: %v", later), func(t *testing.T) {
			b := build(false)
			if later {
				b.ddl("ALTER TABLE t ADD COLUMN c INT")
			}
			r, err := newReader(Config{
				Captured: func(string, string) bool { return true },
				Refresh:  func(context.Context, string, string) (*schema.Definition, error) { return now, nil },
			}, b.clone())
			if err != nil {
				t.Fatal(err)
			}
			r.asm.defs.unchanged = func(ctx context.Context, _, table string) (bool, error) {
				return mentionedNowhere(ctx, b.at("mysql-bin.000001", r.asm.next), table)
			}
			var last string
			for err == nil {
				var ev Event
				if ev, err = r.Read(t.Context()); err == nil {
					if rows, ok := ev.(*Rows); ok {
						last = rows.Table.Columns[1].Name
						for rows.Next() {
						}
					}
				}
			}
			if later {
				wantError(t, err, "table db.t", odd, "the table was changed again since")
			} else if err != io.EOF || last != "now" {
				t.Errorf("column %s, %v", last, err)
			}
		})
	}
}

// TestI10_CatalogOfALaterPosition: definitions that were read when the stream had not come so far already have what the
// statements until there do.
func TestI10_CatalogOfALaterPosition(t *testing.T) {
	b := numberedBinlog()
	b.ddl("ALTER TABLE t ADD COLUMN a INT NOT NULL DEFAULT 5")
	b.transaction(func() { b.mapped(9, "t", true, "id", "a"); b.write(9, 1, 2) })
	read := b.end
	b.ddl("ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 6")
	b.transaction(func() { b.mapped(9, "t", true, "id", "a", "b"); b.write(9, 1, 2, 3) })
	def, err := schema.ParseCreateTable("db", "CREATE TABLE `t` (`id` int NOT NULL, `a` int NOT NULL DEFAULT '5', PRIMARY KEY (`id`))")
	if err != nil {
		t.Fatal(err)
	}
	catalog := schema.NewCatalog(schema.CatalogOptions{})
	catalog.Set("db", "t", def)
	set, err := offset.ParseGTIDSet(testUUID + ":1-2")
	if err != nil {
		t.Fatal(err)
	}
	lines, warnings, err := readTables(t, b, Config{Catalog: catalog, CatalogAt: offset.Offset{File: "mysql-bin.000001", Pos: read, GTIDs: set}}, Start{})
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	var rows []string
	for _, l := range lines {
		if strings.HasPrefix(l, "t ") {
			rows = append(rows, l)
		}
	}
	wantLines(t, rows, []string{"t id a=5", "t id a=5 b=6"})
}
