package it

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// liveCase is SQL and the rows that it has to give.
type liveCase struct {
	name string // what it shows
	sql  []string
	// Rows as liveRow prints them: "table op key image", for updates "before => after".
	want []string
	// Schema changes are among the rows, as "ddl text".
	ddl   bool
	check func(t *testing.T, records []TailRecord) // what else the records have to be
}

// liveGroup is cases that share a server and one tail, each in a database of its own. They are read while they happen and then once
// more from the start, when all of their tables have changed or are gone: old rows have the columns of their time (I10).
type liveGroup struct {
	config      Properties
	environment []string
	before      []string // run before anything is read
	cases       []liveCase
}

func (g liveGroup) run(t *testing.T, m *MySQL) {
	file, pos := m.Position(t)
	m.Exec(t, append([]string{
		"DROP DATABASE IF EXISTS live", "CREATE DATABASE live CHARACTER SET utf8mb4", "CREATE TABLE live.sentinel (id INT PRIMARY KEY)",
	}, g.before...)...)
	l := StartTail(t, TailConfig(m, "live", g.config), "now", g.environment...)
	seen := make([][]string, len(g.cases))
	for i, c := range g.cases {
		ok := t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			database := fmt.Sprintf("live%d", i)
			statements := []string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database + " CHARACTER SET utf8mb4", "USE " + database}
			statements = append(statements, c.sql...)
			statements = append(statements, fmt.Sprintf("INSERT INTO live.sentinel VALUES (%d)", i))
			m.Exec(t, statements...)
			records := l.until(t, i)
			seen[i] = liveRows(t, records, c.ddl)
			if !slices.Equal(seen[i], c.want) {
				t.Errorf("\ngot\n  %s\nwant\n  %s", shorten(seen[i]), shorten(c.want))
			}
			if c.check != nil {
				c.check(t, slices.DeleteFunc(records, func(r TailRecord) bool { return r.payload(t).Op == "" }))
			}
		})
		if !ok && l.ended() {
			return
		}
	}
	l.Stop()
	t.Run("TestI10_read_again_from_the_start", func(t *testing.T) {
		past := StartTail(t, TailConfig(m, "live", g.config), fmt.Sprintf("%s:%d", file, pos), g.environment...)
		for i, c := range g.cases {
			if got := liveRows(t, past.until(t, i), c.ddl); !slices.Equal(got, seen[i]) {
				t.Errorf("%s\nread again\n  %s\nread while it happened\n  %s", c.name, shorten(got), shorten(seen[i]))
			}
		}
		past.Stop()
	})
}

func shorten(rows []string) string {
	var lines []string
	for _, r := range rows {
		if len(r) > 1500 {
			r = r[:700] + " … " + r[len(r)-700:]
		}
		lines = append(lines, r)
	}
	return strings.Join(lines, "\n  ")
}

// liveRows are records as "table op key image".
func liveRows(t testing.TB, records []TailRecord, ddl bool) []string {
	rows := []string{}
	for i := range records {
		r := &records[i]
		p := r.payload(t)
		table := r.Topic[strings.IndexByte(r.Topic, '.')+1:]
		table = table[strings.IndexByte(table, '.')+1:]
		switch {
		case p.DDL != nil:
			if ddl && !strings.Contains(*p.DDL, " DATABASE ") {
				rows = append(rows, "ddl "+*p.DDL)
			}
		case p.Status != "" || strings.Contains(r.Topic, "heartbeat"):
		case r.Value == nil:
			rows = append(rows, fmt.Sprintf("%s tombstone %s", table, r.keyText()))
		case p.Op == "u":
			rows = append(rows, fmt.Sprintf("%s u %s %s => %s", table, r.keyText(), p.Before, p.After))
		case p.Op == "d":
			rows = append(rows, fmt.Sprintf("%s d %s %s", table, r.keyText(), p.Before))
		default:
			rows = append(rows, fmt.Sprintf("%s %s %s %s", table, p.Op, r.keyText(), p.After))
		}
	}
	return rows
}
