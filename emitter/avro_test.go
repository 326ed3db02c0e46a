package emitter

import (
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// testIDs is a registry that knows every schema at once, or with known only those that were told to it.
type testIDs struct {
	texts []string // by id - 1
	known map[string]bool
	asked []string // subjects
}

func (r *testIDs) ID(subject, text string) (int64, bool) {
	r.asked = append(r.asked, subject)
	if r.known != nil && !r.known[subject] {
		return 0, false
	}
	for i := range r.texts {
		if r.texts[i] == text {
			return int64(i) + 1, true
		}
	}
	r.texts = append(r.texts, text)
	return int64(len(r.texts)), true
}

// avroConverter is Confluent's with its defaults, but that subjects are named by records.
func avroConverter(ids SchemaIDs) *Avro {
	return &Avro{IDs: ids, Subject: func(topic, record string) string { return topic + "-" + record }}
}

// rowOf is an event of one row of testTable.
func rowOf(op binlog.Op, before, after [][]byte, key ...int) *binlog.Rows {
	return &binlog.Rows{
		Info: binlog.Info{File: "f", Pos: 9, Thread: -1}, Op: op, Table: testTable(key...), Before: before, After: after, Base: at(4),
	}
}

// TestAvroOrder has schemas asked for as Debezium registers them: that of the key, then that of the value, at the first
// record, and none for what is not written.
func TestAvroOrder(t *testing.T) {
	a, b, c := cells(1, 100, "x"), cells(1, 200, "x"), cells(2, 100, "x")
	const key, value = "p.db.t-p.db.t.Key", "p.db.t-p.db.t.Envelope"
	for _, tt := range []struct {
		name   string
		ev     *binlog.Rows
		change func(*Config)
		want   []string
	}{
		{"insert", rowOf(binlog.Create, nil, a, 0), nil, []string{key, value}},
		{"update", rowOf(binlog.Update, a, b, 0), nil, []string{key, value}},
		{"key change", rowOf(binlog.Update, a, c, 0), nil, []string{key, value}},
		{"delete", rowOf(binlog.Delete, a, nil, 0), nil, []string{key, value}},
		{"no key", rowOf(binlog.Create, nil, a), nil, []string{value}},
		{"skipped", rowOf(binlog.Update, a, b, 0), func(c *Config) { c.Skip = map[string]bool{"u": true} }, nil},
		{"unchanged", rowOf(binlog.Update, a, cells(1, 100, "x"), 0), func(c *Config) { c.SkipUnchanged = true }, nil},
		{"changed", rowOf(binlog.Update, a, b, 0), func(c *Config) { c.SkipUnchanged = true }, []string{key, value}},
		{"changed key", rowOf(binlog.Update, a, c, 0), func(c *Config) {
			c.SkipUnchanged, c.Columns = true, columnPattern(`db\.t\.s`)
		}, []string{key, value}},
		{"keys in JSON", rowOf(binlog.Create, nil, a, 0), func(c *Config) { c.Key.Avro = nil }, []string{value}},
		{"values in JSON", rowOf(binlog.Create, nil, a, 0), func(c *Config) { c.Value.Avro = nil }, []string{key}},
	} {
		ids := new(testIDs)
		em := avroEmitter(t, ids, tt.change)
		var batch Batch
		for range 2 { // once only
			feed(t, em, &batch, tt.ev)
		}
		if !slices.Equal(ids.asked, tt.want) {
			t.Errorf("%s: asked for %q, want %q", tt.name, ids.asked, tt.want)
		}
		ids = &testIDs{known: map[string]bool{}}
		em = avroEmitter(t, ids, tt.change)
		must(t, em.Begin(tt.ev))
		batch.Reset()
		for i, subject := range tt.want {
			var needed *SchemaNeeded
			err := em.Row(&batch, tt.ev)
			if !errors.As(err, &needed) || needed.Subject != subject || needed.Key != (subject == key) || len(batch.Records) > 0 || batch.Size() > 0 {
				t.Errorf("%s: got %v, want that %s is needed", tt.name, err, subject)
			}
			if table := (schema.TableName{Database: "db", Table: "t"}); needed != nil && needed.Table != table {
				t.Errorf("%s: table %v", tt.name, needed.Table)
			}
			if want := "table db.t, row 0"; err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %s in %v", tt.name, want, err)
			}
			ids.known[subject] = true
			if i == len(tt.want)-1 {
				must(t, em.Row(&batch, tt.ev))
			}
		}
	}
}

// TestAvroCountsInvalidValuesOnce has a row come again and again until its schemas are known: what MySQL holds and Connect
// cannot is told of and counted as often as when they were known at once.
func TestAvroCountsInvalidValuesOnce(t *testing.T) {
	table := &schema.Table{Database: "db", Name: "t", Key: []int{0}, Columns: []schema.Column{
		{Name: "t", Type: 19, Nullable: true}, {Name: "u", Type: 19, Nullable: true},
	}}
	tooLong, longer := []byte{0x81, 0x90, 0}, []byte{0x82, 0x00, 0} // more than a day
	for name, change := range map[string]func(*Config){
		"all":             func(*Config) {},
		"unchanged":       func(c *Config) { c.SkipUnchanged = true },
		"only in the key": func(c *Config) { c.SkipUnchanged, c.Columns = true, columnPattern(`db\.t\.u`) },
	} {
		var got []int64
		for _, ids := range []SchemaIDs{nil, new(testIDs), new(slowIDs)} {
			var count atomic.Int64
			told := 0
			em := avroEmitter(t, ids, func(c *Config) {
				change(c)
				c.Modes.Time, c.Modes.InvalidValues = schema.TimeConnect, &count
				c.Modes.Invalid = func(_, _, _, _ string) { told++ }
				if ids == nil {
					c.Key.Avro, c.Value.Avro = nil, nil
				}
			})
			for _, after := range [][]byte{longer, tooLong} {
				ev := &binlog.Rows{Op: binlog.Update, Table: table, Before: [][]byte{tooLong, longer}, After: [][]byte{after, tooLong}}
				must(t, em.Begin(ev))
				var b Batch
				insist(t, em, &b, func(b *Batch) error { return em.Row(b, ev) })
			}
			got = append(got, count.Load()+1000*int64(told))
		}
		if got[0] == 0 || got[1] != got[0] || got[2] != got[0] {
			t.Errorf("%s: JSON, Avro and Avro with delay have counted %d", name, got)
		}
	}
}

// TestAvroIDs has ids of four and eight bytes in what was compiled before they were known.
func TestAvroIDs(t *testing.T) {
	for _, tt := range []struct {
		wide bool
		id   int64
		want string // of the key; an error if it has blanks
	}{
		{false, 0, "000000000002"},
		{false, 7, "000000000702"},
		{false, 0x7fffffff, "007fffffff02"},
		{false, 0x80000000, "does not fit into the four bytes"}, // signed ones, where it is read
		{false, -1, "is -1, which is none"},
		{true, 7, "00000000000000000702"},
		{true, 0x0102030405060708, "00010203040506070802"},
		{true, -1, "is -1, which is none"},
	} {
		ids := fixedID(tt.id)
		em := avroEmitter(t, ids, func(c *Config) { c.Key.Avro.Wide = tt.wide }) // the same for keys and values
		ev := rowOf(binlog.Update, cells(1, 1, "x"), cells(1, 2, "x"), 0)
		must(t, em.Begin(ev))
		var b Batch
		err := em.Row(&b, ev)
		if strings.Contains(tt.want, " ") {
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "p.db.t-p.db.t.Key") {
				t.Errorf("%d: got %v", tt.id, err)
			}
			continue
		}
		must(t, err)
		prefix := strings.TrimSuffix(tt.want, "02")
		if r := b.Records[0]; hex.EncodeToString(r.Key) != tt.want || !strings.HasPrefix(hex.EncodeToString(r.Value), prefix+"0202") {
			t.Errorf("got %x and %x, want %s", r.Key, r.Value, tt.want)
		}
	}
}

// TestAvroIsWhole has converters that lack a part, and one for headers.
func TestAvroIsWhole(t *testing.T) {
	whole := avroConverter(new(testIDs))
	for want, cfg := range map[string]Config{
		"names of subjects": {Key: Converter{Avro: &Avro{IDs: whole.IDs}}},
		"ids of schemas":    {Value: Converter{Avro: &Avro{Subject: whole.Subject}}},
		"header.converter":  {Header: HeaderConverter{Class: jsonConverter, JSON: Converter{Avro: whole}}},
	} {
		cfg.Prefix = "p"
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want that it is about %s", err, want)
		}
	}
}

type fixedID int64

func (id fixedID) ID(string, string) (int64, bool) { return int64(id), true }

// TestAvroNames has names that Avro does not take: the error says where they are from and what to set. With that set, the
// row is written.
func TestAvroNames(t *testing.T) {
	for _, tt := range []struct {
		name   string
		prefix string
		change func(*schema.Table, *Config)
		want   []string
		fix    func(*Config)
	}{
		{"column", "p", func(t *schema.Table, _ *Config) { t.Columns[2].Name = "order-id" }, []string{
			"table db.t, row 0", "column `order-id`", "field.name.adjustment.mode=avro", "avro_unicode",
		}, func(c *Config) { c.FieldNames = AvroNames }},
		{"column of the key", "p", func(t *schema.Table, _ *Config) { t.Columns[0].Name = "1st" }, []string{
			"column `1st`", "begins with a digit", "field.name.adjustment.mode=avro",
		}, func(c *Config) { c.FieldNames = AvroUnicodeNames }},
		{"prefix", "p-x", func(*schema.Table, *Config) {}, []string{
			"table db.t, row 0", "the key schema of topic p-x.db.t", "schema.name.adjustment.mode=avro",
		}, func(c *Config) { c.SchemaNames = AvroNames }},
		{"value only", "p-x", func(t *schema.Table, _ *Config) { t.Key = nil }, []string{
			"the value schema of topic p-x.db.t", "p-x.db.t.Envelope", "schema.name.adjustment.mode=avro",
		}, func(c *Config) { c.SchemaNames = AvroUnicodeNames }},
		{"part of a name", "p", func(t *schema.Table, c *Config) {
			t.Key, t.Name, c.SchemaNames = nil, "1table", AvroNames
		}, []string{
			"p.db.1table.Envelope", "schema.name.adjustment.mode=avro looks at the first character", "value.converter.scrub.invalid.names=true",
		}, func(c *Config) { c.Value.Avro.Text.Scrub = true }},
		{"field of the routing", "p", func(_ *schema.Table, c *Config) {
			c.Naming = Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regexp.MustCompile(`(.*)\.t`), Replacement: "$1.all", UniqueKey: true, KeyField: "of what"}
		}, []string{"the key schema of topic p.db.all", `"of what"`, "topic.key.field.name"}, func(c *Config) { c.Naming.KeyField = "of" }},
	} {
		table := testTable(0)
		ids := new(testIDs)
		var cfg Config
		avroEmitter(t, ids, func(c *Config) {
			c.Prefix = tt.prefix
			tt.change(table, c)
			cfg = *c
		})
		row := func(cfg Config) error {
			em, err := New(cfg)
			must(t, err)
			ev := &binlog.Rows{Info: binlog.Info{File: "f", Pos: 9}, Op: binlog.Create, Table: table, After: cells(1, 1, "x")}
			must(t, em.Begin(ev))
			return em.Row(new(Batch), ev)
		}
		err := row(cfg)
		if err == nil {
			t.Errorf("%s: no error", tt.name)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %s in %v", tt.name, want, err)
			}
		}
		tt.fix(&cfg)
		if err := row(cfg); err != nil {
			t.Errorf("%s: still %v", tt.name, err)
		}
	}
}
