package emitter

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/avro"
)

// TestAdviceHelps does what the error for a name tells to do, each way by itself: the row is written then.
func TestAdviceHelps(t *testing.T) {
	const (
		mode  = "set schema.name.adjustment.mode=avro, which"
		scrub = "set value.converter.scrub.invalid.names=true, if that is Confluent's converter"
	)
	topic := regexp.MustCompile(`topic\.naming\.strategy=io\.debezium\.schema\.(\S+) with topic\.regex=(\S+) and topic\.replacement=([^ ,]+)`)
	for _, tt := range []struct {
		name                  string
		prefix, table, column string
		change                func(*Config)
		want                  []string // "mode", "scrub", "topic", "field": the ways that are named
	}{
		{"dash", "p-x", "t", "c", nil, []string{"mode"}},
		{"first digit", "1p", "t", "c", nil, []string{"mode"}},
		{"later digit", "p", "1t", "c", nil, []string{"scrub", "topic"}},
		{"later digit, adjusted", "p", "1t", "c", func(c *Config) { c.SchemaNames = AvroNames }, []string{"scrub", "topic"}},
		{"later digit, adjusted to codes", "p", "1t", "c", func(c *Config) { c.SchemaNames = AvroUnicodeNames }, []string{"scrub", "topic"}},
		{"dash and digits", "1p-x", "2t", "c", nil, []string{"scrub", "topic"}},
		{"dash and digit, adjusted", "p-x", "1t", "c", func(c *Config) { c.SchemaNames = AvroNames }, []string{"scrub", "topic"}},
		{"ids of eight bytes", "p", "1t", "c", func(c *Config) { c.Value.Avro.Wide = true }, []string{"topic"}},
		{"without the database", "p", "1t", "c", func(c *Config) { c.Naming.Class = "SchemaTopicNamingStrategy" }, []string{"scrub", "topic"}},
		{"topics in Unicode", "p", "1t", "c", func(c *Config) { c.Naming.Class = "DefaultUnicodeTopicNamingStrategy" }, []string{"scrub"}},
		{"column", "p", "t", "a-b", nil, []string{"field"}},
		{"columns that are scrubbed to one", "p", "t", "a-b", func(c *Config) { c.Value.Avro.Text.Scrub = true }, []string{"field"}},
	} {
		row := func(change func(*Config)) error {
			// Keys are JSON: what a value needs is needed for it alone.
			em := avroEmitter(t, new(testIDs), func(c *Config) {
				c.Key.Avro, c.Prefix = nil, tt.prefix
				for _, f := range []func(*Config){tt.change, change} {
					if f != nil {
						f(c)
					}
				}
			})
			table := testTable(0)
			table.Name, table.Columns[2].Name, table.Columns[1].Name = tt.table, tt.column, "a_b"
			ev := &binlog.Rows{Info: binlog.Info{File: "f", Pos: 9}, Op: binlog.Create, Table: table, After: cells(1, 1, "x")}
			must(t, em.Begin(ev))
			return em.Row(new(Batch), ev)
		}
		err := row(nil)
		var unusable *UnusableSchema
		if !errors.As(err, &unusable) {
			t.Errorf("%s: got %v", tt.name, err)
			continue
		}
		text := err.Error()
		fixes := map[string]func(*Config){}
		if strings.Contains(text, mode) {
			fixes["mode"] = func(c *Config) { c.SchemaNames = AvroNames }
		}
		if strings.Contains(text, scrub) {
			fixes["scrub"] = func(c *Config) { c.Value.Avro.Text.Scrub = true }
		}
		if strings.Contains(text, "field.name.adjustment.mode") && strings.Contains(text, "avro_unicode") {
			fixes["field"] = func(c *Config) { c.FieldNames = AvroUnicodeNames }
		}
		if m := topic.FindStringSubmatch(text); m != nil {
			fixes["topic"] = func(c *Config) {
				c.Naming = Naming{Class: m[1], Regex: regexp.MustCompile("^(?:" + m[2] + ")$"), Replacement: m[3]}
				if strings.Contains(text, "and schema.name.adjustment.mode=avro,") {
					c.SchemaNames = AvroNames
				}
			}
		}
		if len(fixes) != len(tt.want) {
			t.Errorf("%s: %d ways, want %v: %v", tt.name, len(fixes), tt.want, err)
		}
		for _, way := range tt.want {
			if fixes[way] == nil {
				t.Errorf("%s: no way %s in %v", tt.name, way, err)
			} else if err := row(fixes[way]); err != nil {
				t.Errorf("%s: %s does not help: %v", tt.name, way, err)
			}
		}
	}
}

// Where the topic's name is made by a pattern already, another one is advised.
func TestAdviceOnRouting(t *testing.T) {
	em := avroEmitter(t, new(testIDs), func(c *Config) {
		c.Key.Avro = nil
		c.Naming = Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regexp.MustCompile(`(.*)[.]t`), Replacement: "$1.2024"}
	})
	ev := &binlog.Rows{Info: binlog.Info{File: "f", Pos: 9}, Op: binlog.Create, Table: testTable(0), After: cells(1, 1, "x")}
	must(t, em.Begin(ev))
	err := em.Row(new(Batch), ev)
	if err == nil || !strings.Contains(err.Error(), "write another topic.replacement, so that the topic is p.db._2024") {
		t.Error(err)
	}
}

// TestSchemaIsChecked has a schema whose names are good and that Avro does not take all the same: no id is asked for.
func TestSchemaIsChecked(t *testing.T) {
	ids := new(testIDs)
	r := &registered{
		cfg: new(Config), avro: &Avro{IDs: ids, Subject: func(topic, _ string) string { return topic }, Text: avro.Options{}}, prefix: make([]byte, 5),
		typ: &schema.Type{Type: "struct", Name: "a.V", Fields: []schema.Field{
			{Name: "v", Type: &schema.Type{Type: "array", Items: &schema.Type{Type: "float"}, Default: &schema.Value{Kind: schema.Vector, Bytes: []byte{0, 0, 0xc0, 0x7f}}}}, // NaN
		}}, need: SchemaNeeded{Topic: "t"},
	}
	err := r.resolve()
	var unusable *UnusableSchema
	if !errors.As(err, &unusable) || !strings.Contains(err.Error(), "is none that Avro takes") || len(ids.asked) > 0 {
		t.Errorf("got %v, asked for %v", err, ids.asked)
	}
}

// TestClockAfterTheWait has a row wait for its schema behind another one in the same batch: its time is that at which it is
// written, however long the registry was away.
func TestClockAfterTheWait(t *testing.T) {
	clock := time.Unix(1795979007, 0)
	value := func(ids SchemaIDs, wait time.Duration) []byte {
		t.Helper()
		now := clock
		em := avroEmitter(t, ids, func(c *Config) { c.Clock = func() time.Time { return now } })
		var b Batch
		b.Records = append(b.Records, Record{}) // of another row, for which the clock was read
		ev := rowOf(binlog.Create, nil, cells(1, 1, "x"))
		must(t, em.Begin(ev))
		err := em.Row(&b, ev)
		if needed := (*SchemaNeeded)(nil); wait > 0 && !errors.As(err, &needed) {
			t.Fatalf("got %v", err)
		}
		for err != nil {
			now = now.Add(wait)
			wait = 0
			err = em.Row(&b, ev)
		}
		return b.Records[1].Value
	}
	late := value(new(slowIDs), time.Hour)
	if bytes.Equal(late, value(new(testIDs), 0)) {
		t.Error("it has the time before the wait")
	}
	clock = clock.Add(time.Hour)
	if !bytes.Equal(late, value(new(testIDs), 0)) {
		t.Error("it does not have the time after the wait")
	}
}
