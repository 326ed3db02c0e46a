package it

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLiveModes runs the SQL of the captures on a real server, with the configuration of each, while tail reads. The records have to
// be Debezium's but for what another server and another time make different. Definitions come from SHOW CREATE TABLE here, where
// TestGolden takes the CREATE statements of the binlog for it.
func TestLiveModes(t *testing.T) {
	for _, server := range []struct {
		name    string
		flags   []string
		folders []string
	}{
		{"GTID", gtidFlags, []string{
			"basics", "basics-query", "compressed", "ddl", "ddl-skip-unparseable", "fail-ddl-ansi-quotes", "fail-ddl-skip-row-size", "fail-invalid-date", "fail-row-image-noblob",
			"fail-time-connect", "minimal-metadata", "names", "names-avro", "partial-json", "row-image-noblob", "topics-exclude", "topics-filters",
			"topics-keys", "topics-masks", "transactions", "types-alt1", "types-alt2", "types-alt3", "types-alt4", "types-ddl", "types-default",
		}},
		{"FilePosition", append([]string{"--binlog-row-event-max-size=1024", "--enforce-gtid-consistency=OFF"}, fileFlags...), []string{"basics-file-mode", "transactions-file-mode"}},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			m := StartMySQL(t, append([]string{"--lower-case-table-names=0"}, server.flags...)...)
			for _, name := range server.folders {
				f := goldenFolders[slices.IndexFunc(goldenFolders, func(f goldenFolder) bool { return f.name == name })]
				t.Run(name, func(t *testing.T) { liveFolder(t, m, f) })
			}
		})
	}
}

// liveGlobals are the settings of the server that folders were captured with, beyond the common ones.
var liveGlobals = map[string]string{
	"basics-query": "binlog_rows_query_log_events=ON", "compressed": "binlog_rows_query_log_events=ON",
	"minimal-metadata": "binlog_row_metadata=MINIMAL", "partial-json": "binlog_row_value_options='PARTIAL_JSON'",
}

func liveFolder(t *testing.T, m *MySQL, f goldenFolder) {
	want := readCapture(t, filepath.Join("testdata", "golden", f.name))
	m.clear(t)
	if set := liveGlobals[f.name]; set != "" {
		name, _, _ := strings.Cut(set, "=")
		value := "DEFAULT"
		if name == "binlog_row_metadata" {
			value = "FULL"
		}
		m.Exec(t, "SET GLOBAL "+set)
		defer m.Exec(t, "SET GLOBAL "+name+"="+value)
	}
	m.script(t, filepath.Join(want.dir, "setup.sql"))
	config := Properties(connectorConfig(t, filepath.Join(want.dir, "config.json"))).With(Properties{
		"database.hostname": "127.0.0.1", "database.port": fmt.Sprint(m.Port), "database.user": "tide", "database.password": "tide",
		"snapshot.mode": "no_data",
	})
	l := StartTail(t, config, "now")
	m.script(t, filepath.Join(want.dir, "stream.sql"))
	got := sortRecords(want, l.until(t, 999999))
	// until has left the sentinel's own record out.
	got.records = append(got.records, TailRecord{Topic: "sentinel"})
	l.Stop()
	if f.rows != nil {
		got.records = got.records[:len(got.records)-1]
		rows := slices.DeleteFunc(slices.Clone(f.rows), func(r rightRow) bool { return r == sentinelRow })
		compareRows(t, rows, got.records)
		return
	}
	expected := applyDifferences(t, f, want.records)
	order := moveXA(t, f, expected, make([]expectedOffset, len(expected)))
	var a, b []string
	for i := range got.records {
		a = append(a, liveWhat(t, &got.records[i]))
	}
	for i := range order {
		b = append(b, liveWhat(t, &order[i].TailRecord))
	}
	a[len(a)-1] = b[len(b)-1]
	if order[len(order)-1].payload(t).Status == "END" { // and the end of its transaction comes after it
		a[len(a)-1] = b[len(b)-2]
		b = b[:len(b)-1]
	}
	for _, pair := range matchSequence(t, a, b) {
		if pair[0] == len(a)-1 {
			continue
		}
		g, w := liveNormalised(t, got.records[pair[0]], f), liveNormalised(t, order[pair[1]].TailRecord, f)
		if g != w {
			t.Errorf("%s\n%s", b[pair[1]], difference(g, w))
		}
	}
	if len(got.history) != len(want.history) {
		t.Errorf("%d records of the schema history, want %d", len(got.history), len(want.history))
	}
	for i := range min(len(got.history), len(want.history)) {
		g, w := historyPlace.ReplaceAllString(*got.history[i].Value, ""), historyPlace.ReplaceAllString(*want.history[i].Value, "")
		if g != w {
			t.Errorf("schema history record %d\n%s", i, difference(g, w))
		}
	}
}

var (
	historyPlace  = regexp.MustCompile(`(?m)^ *"(transaction_id|ts_sec|ts_ms|pos|file|gtids)" : .*$`)
	liveTimes     = regexp.MustCompile(`"(ts_ms|ts_us|ts_ns|pos|thread)":\d+`)
	liveFiles     = regexp.MustCompile(`"(gtid|file)":"[^"]*"`)
	liveIDs       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:\d+|file=mysql-bin\.\d+,pos=\d+`)
	liveRowNumber = regexp.MustCompile(`"row":\d+`)
)

// liveWhat names a record without anything of its server.
func liveWhat(t *testing.T, r *TailRecord) string {
	p := r.payload(t)
	key := liveIDs.ReplaceAllString(r.keyText(), "ID")
	switch {
	case r.Value == nil:
		return r.Topic + " tombstone " + key
	case p.DDL != nil:
		return fmt.Sprintf("%s ddl %s %.80q", r.Topic, key, *p.DDL)
	default:
		return r.Topic + " " + p.Op + p.Status + " " + key
	}
}

// liveNormalised is a record without what its server and time decide.
func liveNormalised(t *testing.T, r TailRecord, f goldenFolder) string {
	t.Helper()
	s := r.String()
	for i, h := range r.Headers {
		if h[0] == "__debezium.context.runId" {
			s = strings.ReplaceAll(s, r.Headers[i][1], "")
		}
	}
	s = liveIDs.ReplaceAllString(liveFiles.ReplaceAllString(liveTimes.ReplaceAllString(s, `"$1":0`), `"$1":""`), "ID")
	if f.name == "basics" { // captured with smaller rows events
		s = liveRowNumber.ReplaceAllString(s, `"row":0`)
	}
	return s
}

// sortRecords tells the kinds of records apart, as sortTailed does.
func sortRecords(c *capture, records []TailRecord) tailed {
	var got tailed
	for _, r := range records {
		switch {
		case c.historyTopic != "" && r.Topic == c.historyTopic:
			got.history = append(got.history, r)
		case strings.HasSuffix(r.Topic, c.prefix) && r.Topic != c.prefix:
			got.heartbeats = append(got.heartbeats, r)
		default:
			got.records = append(got.records, r)
		}
	}
	return got
}

// clear drops all databases and makes an empty "inventory".
func (m *MySQL) clear(t testing.TB) {
	t.Helper()
	var statements []string
	for _, row := range m.Query(t, "SHOW DATABASES") {
		switch row[0] {
		case "mysql", "sys", "information_schema", "performance_schema":
		default:
			statements = append(statements, "DROP DATABASE `"+row[0]+"`")
		}
	}
	m.Exec(t, append(statements, "CREATE DATABASE inventory CHARACTER SET utf8mb4")...)
}

// script runs a file of SQL as the mysql client does with --force: a statement that the server refuses is passed over.
func (m *MySQL) script(t testing.TB, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.connect(context.Background())
	if err != nil {
		t.Fatalf("MySQL: %v", err)
	}
	defer c.Close()
	if _, err := c.Execute("USE inventory"); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, s := range splitSQL(string(text)) {
		if _, err := c.Execute(s); err != nil {
			refused++
			t.Logf("%s: %v in %.120s", name, err, s)
		}
	}
	if refused > 3 {
		t.Fatalf("%s: %d statements were refused", name, refused)
	}
}

// splitSQL cuts a script into statements at its delimiter, which the client's DELIMITER command sets, outside of quotes and comments.
func splitSQL(script string) []string {
	var statements []string
	delimiter := ";"
	begin := 0
	add := func(end int) {
		if s := strings.TrimSpace(script[begin:end]); s != "" {
			statements = append(statements, s)
		}
	}
	for i := 0; i < len(script); {
		rest := script[i:]
		skip := func(open, end string) bool {
			if !strings.HasPrefix(rest, open) {
				return false
			}
			n := strings.Index(rest[len(open):], end)
			if n < 0 {
				i = len(script)
			} else {
				i += len(open) + n + len(end)
			}
			return true
		}
		switch {
		case strings.TrimSpace(script[begin:i]) == "" && strings.HasPrefix(rest, "DELIMITER "):
			line, _, _ := strings.Cut(rest, "\n")
			delimiter = strings.TrimSpace(strings.TrimPrefix(line, "DELIMITER "))
			i += len(line)
			begin = i
		case strings.HasPrefix(rest, delimiter):
			add(i)
			i += len(delimiter)
			begin = i
		case skip("-- ", "\n"), skip("#", "\n"):
			if strings.HasPrefix(strings.TrimSpace(script[begin:i]), "-- ") || strings.HasPrefix(strings.TrimSpace(script[begin:i]), "#") {
				begin = i // the client sends no comment before a statement
			}
		case skip("/*", "*/"), skip("`", "`"):
		case rest[0] == '\'' || rest[0] == '"':
			j := 1
			for j < len(rest) && rest[j] != rest[0] {
				if rest[j] == '\\' {
					j++
				}
				j++
			}
			i += min(j+1, len(rest))
		default:
			i++
		}
	}
	add(len(script))
	return statements
}
