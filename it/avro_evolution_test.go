package it

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAvroEvolution alters a table while it streams, with compatibility BACKWARD. A change that the registry takes goes through, one
// version each, at its first row. One that it refuses ends Tidemark before the first row of the new shape, with the table, the column,
// the DDL and the registry's reason; after the level is changed it goes on there, and no row is lost or repeated.
func TestAvroEvolution(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	// Apicurio has no level NONE of a subject: it takes the subject's level away, and the global one holds.
	registry := StartRegistry(t, "NONE")
	for _, kind := range []string{"confluent", "apicurio"} {
		t.Run(kind, func(t *testing.T) { evolve(t, rig, registry, kind) })
	}
}

func evolve(t *testing.T, rig *Rig, registry *Registry, kind string) {
	m := rig.MySQL
	m.Exec(t, "DROP DATABASE IF EXISTS evo", "CREATE DATABASE evo", "CREATE TABLE evo.t (id INT PRIMARY KEY, a INT, b VARCHAR(10) NOT NULL)",
		"CREATE TABLE evo.other (id INT PRIMARY KEY)")
	c := rig.Connector(t, "evo_"+kind, "file", "evo\\..*")
	c.Config = c.Config.With(registry.AvroConverter(t, kind)).With(Properties{"topic.creation.default.partitions": "1"})
	decoder := registry.AvroDecoder(kind)
	key, subject := c.Prefix+".evo.t-key", c.Prefix+".evo.t-value"

	rows := int64(0)
	insert := func(statement string) {
		t.Helper()
		rows++
		m.Exec(t, strings.ReplaceAll(statement, "ID", strconv.FormatInt(rows, 10)))
	}
	version := func() int { return len(Of(registry.Versions(t), subject)) }

	p := c.RunStreaming(t)
	insert("INSERT INTO evo.t VALUES (ID, 1, 'x')")
	c.AwaitCount(t, time.Minute, rows)
	registry.SetLevel(t, subject, "BACKWARD")
	registry.SetLevel(t, key, "BACKWARD")
	for i, step := range []struct{ alter, insert string }{
		{"ADD c VARCHAR(5) NULL", "INSERT INTO evo.t VALUES (ID, 1, 'x', 'c')"},
		{"ADD d INT NOT NULL DEFAULT 7", "INSERT INTO evo.t (id, b) VALUES (ID, 'x')"},
		{"MODIFY a BIGINT", "INSERT INTO evo.t (id, a, b) VALUES (ID, 1099511627776, 'x')"},
		{"DROP b", "INSERT INTO evo.t (id) VALUES (ID)"},
	} {
		m.Exec(t, "ALTER TABLE evo.t "+step.alter)
		// Rows of another table go on; the ALTER itself registers nothing.
		insert("INSERT INTO evo.other VALUES (ID)")
		c.AwaitCount(t, time.Minute, rows)
		if got := version(); got != i+1 {
			t.Errorf("after %s, before a row of it, there are %d versions, want %d", step.alter, got, i+1)
		}
		insert(step.insert)
		c.AwaitCount(t, time.Minute, rows)
		if got := version(); got != i+2 {
			t.Errorf("after a row of %s there are %d versions, want %d", step.alter, got, i+2)
		}
	}

	for _, refused := range []struct {
		alter, insert, subject string
		names                  []string // what the message has to name beside the subject
	}{
		{
			"ADD e INT NOT NULL", "INSERT INTO evo.t (id, e) VALUES (ID, 9)", subject,
			[]string{`evo\.t\b`, `column e added`, `ALTER TABLE evo\.t ADD e INT NOT NULL`, `Incompatible artifact`, `(?i)compatibility`},
		},
		{
			"MODIFY d VARCHAR(20)", "INSERT INTO evo.t (id, e, d) VALUES (ID, 9, 'text')", subject,
			[]string{`evo\.t\b`, `column d changed`, `ALTER TABLE evo\.t MODIFY d VARCHAR\(20\)`, `Incompatible artifact`},
		},
		{
			"DROP PRIMARY KEY, ADD PRIMARY KEY (id, e)", "INSERT INTO evo.t (id, e, d) VALUES (ID, 9, 'key')", key,
			[]string{`evo\.t\b`, `column e added`, `DROP PRIMARY KEY, ADD PRIMARY KEY`, `Incompatible artifact`},
		},
	} {
		before := rows
		versions := registry.Versions(t)
		m.Exec(t, "ALTER TABLE evo.t "+refused.alter)
		insert("INSERT INTO evo.other VALUES (ID)") // before the first row that cannot be written
		insert(refused.insert)
		insert("INSERT INTO evo.other VALUES (ID)") // behind it
		if code := p.Wait(t, 60*time.Second); code == 0 {
			t.Errorf("%s: tidemark ended with code 0", refused.alter)
		}
		says(t, p, refused.alter, append(refused.names, strings.ReplaceAll(refused.subject, ".", `\.`))...)
		if got, want := int64(len(c.Records(t))), before+1; got != want {
			t.Errorf("%s: it stopped after %d records, want %d", refused.alter, got, want)
		}
		if got := registry.Versions(t); !slices.Equal(got, versions) {
			t.Errorf("%s: the registry has other versions than before: %v", refused.alter, moreVersions(versions, got))
		}
		// Started again with nothing changed, it stops at the same place and writes nothing.
		p = c.Run(t)
		if code := p.Wait(t, 60*time.Second); code == 0 {
			t.Errorf("%s: started again, tidemark ended with code 0", refused.alter)
		}
		says(t, p, refused.alter+", again", append(refused.names, strings.ReplaceAll(refused.subject, ".", `\.`))...)
		if got, want := int64(len(c.Records(t))), before+1; got != want {
			t.Errorf("%s: started again, it wrote: %d records, want %d", refused.alter, got, want)
		}

		registry.SetLevel(t, refused.subject, "NONE")
		p = c.RunStreaming(t)
		c.AwaitCount(t, 60*time.Second, rows)
		registry.SetLevel(t, refused.subject, "BACKWARD")
	}
	c.AwaitDrained(t, time.Minute)
	p.Terminate(t)

	got := map[string]int{}
	for _, r := range decoder.JSON(t, c.Records(t)) {
		got[column(t, r, "id")]++
	}
	for id := range rows {
		if n := got[strconv.FormatInt(id+1, 10)]; n != 1 {
			t.Errorf("row %d is there %d times", id+1, n)
		}
	}
	if int64(len(got)) != rows {
		t.Errorf("%d rows, want %d", len(got), rows)
	}
}

// says requires that the output of a process that has ended matches all of the expressions.
func says(t *testing.T, p *Process, what string, expressions ...string) {
	t.Helper()
	said := p.Output()
	t.Logf("%s: it said\n%s", what, tail(said, 6))
	for _, e := range expressions {
		if !regexp.MustCompile(e).MatchString(said) {
			t.Errorf("%s: it did not say %q", what, e)
		}
	}
}
