package it

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Table is a table as the checker needs it. Every row is compared as the texts of these columns, in this order.
type Table struct {
	Name    string // "db.table"
	Columns []string
	Key     []string
	Scale   map[string]int // fraction digits of DECIMAL columns, whose events carry base64
}

// Row is the values of a table's columns in order, joined: the text of numbers and strings, absent for NULL.
type Row string

const (
	separator = "\x1f"
	absent    = "\x00"
)

// NewRow makes a Row of values: nil, integers or strings.
func NewRow(values ...any) Row {
	parts := make([]string, len(values))
	for i, v := range values {
		if parts[i] = absent; v != nil {
			parts[i] = fmt.Sprint(v)
		}
	}
	return Row(strings.Join(parts, separator))
}

// Values are the parts of a row, "\x00" for NULL.
func (r Row) Values() []string { return strings.Split(string(r), separator) }

func (r Row) String() string {
	return strings.ReplaceAll(strings.ReplaceAll(string(r), separator, "|"), absent, "NULL")
}

// Change is one row that a writer changed in a transaction that the server committed. Before is empty for an insert, After for a
// delete.
type Change struct {
	Table         string
	Before, After Row
	// Version orders the changes of one key when several writers change it; 0 keeps the order of the log.
	Version int64
}

// Stored is a source offset as it was found in the store.
type Stored struct {
	File  string
	Pos   int64
	Event int64
	Row   int
	GTIDs string
	Time  time.Time // when it was stored, or a little later
}

// ParseStored reads a stored offset's JSON.
func ParseStored(value []byte, at time.Time) (Stored, error) {
	var v struct {
		File  string
		Pos   *int64
		Event int64
		Row   int
		GTIDs string
	}
	d := json.NewDecoder(bytes.NewReader(value))
	if err := d.Decode(&v); err != nil || v.File == "" || v.Pos == nil {
		return Stored{}, fmt.Errorf("not an offset: %q (%v)", value, err)
	}
	return Stored{v.File, *v.Pos, v.Event, v.Row, v.GTIDs, at}, nil
}

func (s Stored) String() string {
	return fmt.Sprintf("%s:%d event %d row %d", s.File, s.Pos, s.Event, s.Row)
}

// Evidence is all that is known after a run.
type Evidence struct {
	Prefix   string // topic prefix: a table's topic is Prefix + "." + its name
	Tables   []Table
	Changes  []Change         // from the writers' log
	Final    map[string][]Row // table → its rows by SELECT at the end, in any order
	Messages []Message        // all records of all topics, each partition in order
	Offsets  []Stored         // every offset that was ever stored, in order
	Binlog   *Binlog          // the server's list of its events
	Together bool             // an offset is in one Kafka transaction with the records before it, whatever is appended first
}

// Report is what [Check] found.
type Report struct {
	Problems []string // the first ones of each kind; none: all is proven

	Expected    int // records that the changes make
	Unique      int // different records found
	Repeated    int // records found again
	Replays     int // runs of repeated records, each from a stored offset
	Inside      int // stored offsets inside a transaction
	Transaction int // transactions seen in the events
}

func (r *Report) String() string {
	return fmt.Sprintf("%d records expected, %d found, %d repeated in %d replays, %d stored offsets inside a transaction, %d transactions; %d problems",
		r.Expected, r.Unique, r.Repeated, r.Replays, r.Inside, r.Transaction, len(r.Problems))
}

// Check proves, without any code of the product, that the topics hold what the writers did: nothing lost, nothing invented, each
// key in order, repeated records only as a gap-free replay from the offset that was stored then, no stored offset ahead of what
// the broker had appended, stored offsets never backwards and with exactly the GTIDs that were complete.
func Check(e Evidence) *Report {
	c := &checker{Evidence: e, tables: map[string]*Table{}, kinds: map[string]int{}}
	for i := range e.Tables {
		c.tables[e.Tables[i].Name] = &e.Tables[i]
	}
	c.resolve()
	records := c.parse()
	unique := c.partitions(records)
	c.chains(unique)
	c.fold(unique)
	return &c.report
}

type checker struct {
	Evidence
	tables map[string]*Table
	places []Place // of Offsets
	report Report
	kinds  map[string]int
}

// problem notes a problem; of each kind only the first five in full.
func (c *checker) problem(kind, format string, args ...any) {
	if c.kinds[kind]++; c.kinds[kind] <= 5 {
		c.report.Problems = append(c.report.Problems, kind+": "+fmt.Sprintf(format, args...))
	}
}

// record is one record of a topic, understood.
type record struct {
	table         *Table
	topic         string
	partition     int32
	offset        int64
	time          time.Time
	key           Row
	op            byte // c, u, d; t for a tombstone
	before, after Row
	other         string // the other key of a key change, from the headers
	place         Place
	gtid          string
}

func (r *record) String() string {
	return fmt.Sprintf("%s/%d@%d %c key %s at %s", r.topic, r.partition, r.offset, r.op, r.key, r.place)
}

// same says whether two records are the same event: all but where and when it was appended.
func (r *record) same(o *record) bool {
	return r.op == o.op && r.key == o.key && r.before == o.before && r.after == o.after && r.other == o.other && r.gtid == o.gtid
}

// order puts the records of one row in the order d, tombstone, c.
func (r *record) order(o *record) int {
	rank := func(op byte) int { return strings.IndexByte("udtc", op) }
	return cmp.Or(r.place.Compare(o.place), cmp.Compare(rank(r.op), rank(o.op)))
}

// resolve turns the stored offsets into places and checks them among themselves.
func (c *checker) resolve() {
	for i, s := range c.Offsets {
		p, err := c.Binlog.Resolve(s)
		if err != nil {
			c.problem("offset", "stored offset %d (%v): %v", i, s, err)
		}
		if s.Event > 0 || s.Row > 0 {
			c.report.Inside++
		}
		if i > 0 && err == nil && p.Compare(c.places[i-1]) < 0 {
			c.problem("backwards", "stored offset %d (%v) lies before the one stored before it (%v)", i, s, c.Offsets[i-1])
		}
		c.places = append(c.places, p)
		if s.GTIDs == "" {
			continue
		}
		// One server from its first transaction on: the set is one interval, uuid:1-n.
		last := s.GTIDs[strings.LastIndexAny(s.GTIDs, ":-")+1:]
		n, err := strconv.ParseInt(last, 10, 64)
		if want := c.Binlog.LastGTID(s); err != nil || strings.Count(s.GTIDs, ":") != 1 || n != want {
			c.problem("gtids", "stored offset %d (%v) carries gtids %q, but the last complete transaction there is number %d", i, s, s.GTIDs, want)
		}
	}
}

// parse reads all messages; what is not a record of a known table is a problem.
func (c *checker) parse() []*record {
	var all []*record
	var last *record
	for i := range c.Messages {
		m := &c.Messages[i]
		r := &record{topic: m.Topic, partition: m.Partition, offset: m.Offset, time: m.Time}
		if r.table = c.tables[strings.TrimPrefix(m.Topic, c.Prefix+".")]; r.table == nil {
			c.problem("invented", "a topic that no table has: %s", m.Topic)
			continue
		}
		if err := c.understand(r, m, last); err != nil {
			c.problem("unreadable", "%s/%d@%d: %v", m.Topic, m.Partition, m.Offset, err)
			continue
		}
		all = append(all, r)
		last = r
	}
	return all
}

func (c *checker) understand(r *record, m *Message, last *record) error {
	if known := m.understood; known != nil {
		where := *r
		*r = *known
		r.table, r.partition, r.offset, r.time = where.table, where.partition, where.offset, where.time
		return nil
	}
	key, err := fields(payload(m.Key))
	if err != nil {
		return fmt.Errorf("key %q: %v", m.Key, err)
	}
	if r.key, err = c.row(r.table, r.table.Key, key); err != nil {
		return fmt.Errorf("key %q: %v", m.Key, err)
	}
	for name, value := range m.Headers {
		if name == "__debezium.newkey" || name == "__debezium.oldkey" {
			other, err := fields(payload([]byte(value)))
			if err != nil {
				return fmt.Errorf("header %s %q: %v", name, value, err)
			}
			k, err := c.row(r.table, r.table.Key, other)
			if err != nil {
				return fmt.Errorf("header %s %q: %v", name, value, err)
			}
			r.other = name + "=" + string(k)
		}
	}
	if m.Value == nil {
		// A tombstone says nothing about itself: it belongs to the delete that stands right before it in its partition.
		if last == nil || last.op != 'd' || last.topic != r.topic || last.partition != r.partition || last.key != r.key {
			return fmt.Errorf("a tombstone for key %s that does not follow its delete", r.key)
		}
		r.op, r.place, r.gtid = 't', last.place, last.gtid
		if last.other != r.other {
			return fmt.Errorf("a tombstone whose key change header is %q, but %q at its delete", r.other, last.other)
		}
		return nil
	}
	var v struct {
		Op            string
		Before, After map[string]json.RawMessage
		Source        struct {
			File, GTID, DB, Table string
			Pos                   int64
			Row                   int
		}
	}
	if err := json.Unmarshal(payload(m.Value), &v); err != nil {
		return err
	}
	if len(v.Op) != 1 || !strings.Contains("cud", v.Op) {
		return fmt.Errorf("op is %q", v.Op)
	}
	if v.Source.DB+"."+v.Source.Table != r.table.Name {
		return fmt.Errorf("source is %s.%s", v.Source.DB, v.Source.Table)
	}
	r.op, r.gtid = v.Op[0], v.Source.GTID
	r.place.Pos, r.place.Row = v.Source.Pos, v.Source.Row
	if r.place.File, err = fileNumber(v.Source.File); err != nil {
		return err
	}
	for _, image := range []struct {
		cells map[string]json.RawMessage
		row   *Row
	}{{v.Before, &r.before}, {v.After, &r.after}} {
		if image.cells == nil {
			continue
		}
		if len(image.cells) != len(r.table.Columns) {
			return fmt.Errorf("an image has %d columns, the table %d", len(image.cells), len(r.table.Columns))
		}
		if *image.row, err = c.row(r.table, r.table.Columns, image.cells); err != nil {
			return err
		}
	}
	m.understood = r
	return nil
}

// payload is the value inside JsonConverter's schema envelope, or all of it when there is none.
func payload(text []byte) []byte {
	if !bytes.HasPrefix(text, []byte(`{"schema":`)) {
		return text
	}
	var v struct {
		Schema  json.RawMessage
		Payload json.RawMessage
	}
	if json.Unmarshal(text, &v) == nil && v.Schema != nil && v.Payload != nil {
		return v.Payload
	}
	return text
}

// fields are the members of an object; nil for null.
func fields(text []byte) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	return m, json.Unmarshal(text, &m)
}

func (c *checker) row(t *Table, columns []string, cells map[string]json.RawMessage) (Row, error) {
	parts := make([]string, len(columns))
	for i, name := range columns {
		cell, ok := cells[name]
		if !ok {
			return "", fmt.Errorf("no column %s", name)
		}
		switch {
		case string(cell) == "null":
			parts[i] = absent
		case cell[0] == '"':
			var s string
			if err := json.Unmarshal(cell, &s); err != nil {
				return "", err
			}
			parts[i] = s
			if scale, ok := t.Scale[name]; ok {
				text, err := decimal(s, scale)
				if err != nil {
					return "", fmt.Errorf("column %s: %v", name, err)
				}
				parts[i] = text
			}
		default:
			parts[i] = string(cell)
		}
	}
	return Row(strings.Join(parts, separator)), nil
}

// decimal is the text of a Connect Decimal: base64 of a big-endian two's complement integer, and a scale.
func decimal(text string, scale int) (string, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", err
	}
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
		n.Neg(n)
	}
	digits := fmt.Sprintf("%0*s", scale+1, n.String())
	if scale == 0 {
		return sign + digits, nil
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:], nil
}

// partitions checks each partition's log: it has to be made of runs in binlog order, the first from the beginning and each other
// one a gap-free replay from the offset that was stored when it began. It returns each event once, by first appearance.
func (c *checker) partitions(records []*record) []*record {
	groups := map[string][]*record{}
	var names []string
	for _, r := range records {
		name := fmt.Sprintf("%s/%d", r.topic, r.partition)
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], r)
	}
	var all []*record
	for _, name := range names {
		all = append(all, c.partition(name, groups[name])...)
	}
	return all
}

func (c *checker) partition(name string, log []*record) []*record {
	sorted := slices.Clone(log)
	slices.SortStableFunc(sorted, (*record).order)
	unique := sorted[:0:0]
	index := make(map[*record]int, len(log))
	for _, r := range sorted {
		if k := len(unique); k > 0 && unique[k-1].order(r) == 0 {
			if !unique[k-1].same(r) {
				c.problem("changed", "%v and %v are at one place, but differ", unique[k-1], r)
			}
			c.report.Repeated++
		} else {
			unique = append(unique, r)
		}
		index[r] = len(unique) - 1
	}
	for i, r := range log {
		at := index[r]
		want := 0
		if i > 0 {
			want = index[log[i-1]] + 1
		}
		switch {
		case at == want:
		case at > want:
			c.problem("order", "%s: %v is followed by %v, which lies %d records further on", name, before(log, i), r, at-want)
		default:
			c.report.Replays++
			c.replay(name, unique, r, at)
		}
		if !c.Binlog.IsRows(r.place) {
			c.problem("invented", "%v: no rows event begins there", r)
		}
	}
	if !c.Together {
		c.acknowledged(name, unique)
	}
	return unique
}

func before(log []*record, i int) any {
	if i == 0 {
		return "the beginning"
	}
	return log[i-1]
}

// replay checks that a run of repeated records begins with the first record of the partition that an offset does not cover which
// was the newest stored one at that moment.
func (c *checker) replay(name string, unique []*record, first *record, at int) {
	newest := sort.Search(len(c.Offsets), func(i int) bool { return c.Offsets[i].Time.After(first.time) })
	// Times are whole milliseconds: all offsets stored in the same one may have been the newest.
	for i := newest - 1; i >= -1; i-- {
		from := Place{}
		if i >= 0 {
			from = c.places[i]
		}
		if sort.Search(len(unique), func(k int) bool { return unique[k].place.Compare(from) >= 0 }) == at {
			return
		}
		if i < 0 || first.time.Sub(c.Offsets[i].Time) > time.Millisecond {
			break
		}
	}
	stored := "no offset"
	if newest > 0 {
		stored = c.Offsets[newest-1].String()
	}
	c.problem("doubled", "%s: %v is repeated, but the newest stored offset then was %s", name, first, stored)
}

// acknowledged checks each stored offset: the broker must have appended all records that it covers before it was stored.
func (c *checker) acknowledged(name string, unique []*record) {
	latest := make([]time.Time, len(unique)) // of unique[:i+1]
	for i, r := range unique {
		latest[i] = r.time
		if i > 0 && latest[i-1].After(r.time) {
			latest[i] = latest[i-1]
		}
	}
	for i, s := range c.Offsets {
		n := sort.Search(len(unique), func(k int) bool { return unique[k].place.Compare(c.places[i]) >= 0 })
		if n > 0 && latest[n-1].After(s.Time) {
			c.problem("ahead", "%s: offset %v was stored at %s, but a record before it was appended only at %s", name, s,
				s.Time.Format("15:04:05.000"), latest[n-1].Format("15:04:05.000"))
		}
	}
}

// event is what a change has to become.
type event struct {
	op            byte
	before, after Row
	other         string
}

// chains compares the events of each key with what the writers did to it.
func (c *checker) chains(unique []*record) {
	type id struct {
		table string
		key   Row
	}
	expected := map[id][]event{}
	changes := slices.Clone(c.Changes)
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Version, b.Version) })
	for _, ch := range changes {
		t := c.tables[ch.Table]
		add := func(key Row, e event) {
			k := id{ch.Table, key}
			expected[k] = append(expected[k], e)
			c.report.Expected++
		}
		was, is := t.keyOf(ch.Before), t.keyOf(ch.After)
		switch {
		case ch.Before == "":
			add(is, event{op: 'c', after: ch.After})
		case ch.After == "":
			add(was, event{op: 'd', before: ch.Before})
			add(was, event{op: 't'})
		case was == is:
			add(is, event{op: 'u', before: ch.Before, after: ch.After})
		default:
			add(was, event{op: 'd', before: ch.Before, other: "__debezium.newkey=" + string(is)})
			add(was, event{op: 't', other: "__debezium.newkey=" + string(is)})
			add(is, event{op: 'c', after: ch.After, other: "__debezium.oldkey=" + string(was)})
		}
	}
	found := map[id][]*record{}
	for _, r := range unique {
		k := id{r.table.Name, r.key}
		if first := found[k]; first != nil && first[0].partition != r.partition {
			c.problem("partition", "%s key %s is in partitions %d and %d", r.topic, r.key, first[0].partition, r.partition)
		}
		found[k] = append(found[k], r)
		c.report.Unique++
	}
	for k, want := range expected {
		got := found[k]
		for i, w := range want {
			if i >= len(got) {
				c.problem("lost", "%s key %s: %d of %d events, the first missing one is %c %v → %v", k.table, k.key, len(got), len(want), w.op, w.before, w.after)
				break
			}
			g := got[i]
			if e := (event{g.op, g.before, g.after, g.other}); e != w {
				c.problem("differs", "%s key %s: event %d is %c %v → %v %q, want %c %v → %v %q (%v)", k.table, k.key, i, e.op, e.before, e.after, e.other,
					w.op, w.before, w.after, w.other, g)
				break
			}
		}
		if len(got) > len(want) {
			c.problem("invented", "%s key %s: %d events, want %d; the first one too many is %v", k.table, k.key, len(got), len(want), got[len(want)])
		}
	}
	for k, got := range found {
		if expected[k] == nil {
			c.problem("invented", "%s key %s was never written: %v", k.table, k.key, got[0])
		}
	}
}

// keyOf is the key of a row.
func (t *Table) keyOf(r Row) Row {
	if r == "" {
		return ""
	}
	values := r.Values()
	parts := make([]string, len(t.Key))
	for i, name := range t.Key {
		parts[i] = values[slices.Index(t.Columns, name)]
	}
	return Row(strings.Join(parts, separator))
}

// fold applies the events to empty tables, which have to become what SELECT sees; and it counts transactions.
func (c *checker) fold(unique []*record) {
	state := map[string]map[Row]Row{}
	transactions := map[string]bool{}
	inOrder := slices.Clone(unique)
	slices.SortStableFunc(inOrder, (*record).order)
	for _, r := range inOrder {
		transactions[r.gtid] = true
		if state[r.table.Name] == nil {
			state[r.table.Name] = map[Row]Row{}
		}
		switch r.op {
		case 'd':
			delete(state[r.table.Name], r.key)
		case 'c', 'u':
			state[r.table.Name][r.key] = r.after
		}
	}
	c.report.Transaction = len(transactions)
	for name, rows := range c.Final {
		t := c.tables[name]
		for _, want := range rows {
			k := t.keyOf(want)
			if got := state[name][k]; got != want {
				c.problem("table", "%s key %s: the events end in %v, the table in %v", name, k, got, want)
			}
			delete(state[name], k)
		}
		for k, row := range state[name] {
			c.problem("table", "%s key %s: the events end in %v, but the table has no such row", name, k, row)
		}
	}
}
