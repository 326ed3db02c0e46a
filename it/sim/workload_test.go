package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

const (
	database = "db"

	typeLong     = 3
	typeLongLong = 8
	typeVarchar  = 15
	varcharBytes = 160 // VARCHAR(40) of utf8mb4
)

type column struct {
	name string
	kind byte
}

// table is a table as it is now. The first column is the key, if it has one.
type table struct {
	name     string
	keyed    bool
	captured bool
	id       uint64 // of TABLE_MAP: another one with each version
	columns  []column
	rows     map[int64][]any
	keys     []int64 // of rows, so that one can be chosen
	added    int     // columns so far
}

// define is what SHOW CREATE TABLE says.
func (t *table) define() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE `%s` (\n", t.name)
	for i, c := range t.columns {
		kind := map[byte]string{typeLong: "int", typeLongLong: "bigint", typeVarchar: "varchar(40)"}[c.kind]
		if i > 0 {
			kind += " DEFAULT NULL"
		} else {
			kind += " NOT NULL"
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "  `%s` %s", c.name, kind)
	}
	if t.keyed {
		fmt.Fprintf(&b, ",\n  PRIMARY KEY (`%s`)", t.columns[0].name)
	}
	b.WriteString("\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci")
	return b.String()
}

// change is what happened to one row. Those of captured tables are numbered.
type change struct {
	seq           int
	table         string
	op            byte // c, u, d; k: an update of the key, which is three records
	columns       []column
	before, after []any
}

// transaction is a group of the binlog, whichever server has it.
type transaction struct {
	number  int // in the order of all
	gtid    string
	first   int // number of the first captured change
	ddl     string
	events  []*event // from BEGIN, or the statement itself, to the end
	changes []*change
}

// event is one of a transaction, without its place.
type event struct {
	kind     byte
	body     []byte
	rows     int  // in the event
	captured bool // of a captured table
	changes  []*change
}

// workload makes transactions out of a seed. It belongs to one goroutine.
type workload struct {
	rng    *rand.Rand
	full   bool // binlog_row_metadata
	tables []*table
	seq    int
	number int
	nextID uint64
	nextPK int64
}

func newWorkload(rng *rand.Rand, full bool) *workload {
	w := &workload{rng: rng, full: full, nextID: 100}
	for _, name := range []string{"kv", "ledger", "wide", "other"} {
		t := &table{
			name: name, keyed: true, captured: name != "other", id: w.id(), rows: map[int64][]any{},
			columns: []column{{"id", typeLongLong}, {"ver", typeLongLong}, {"val", typeVarchar}},
		}
		if name == "wide" {
			for i := range 6 {
				t.columns = append(t.columns, column{fmt.Sprintf("w%d", i), []byte{typeLong, typeVarchar}[i%2]})
			}
		}
		w.tables = append(w.tables, t)
	}
	return w
}

func (w *workload) id() uint64 {
	w.nextID++
	return w.nextID
}

// next makes the next transaction.
func (w *workload) next() *transaction {
	tx := &transaction{number: w.number, first: w.seq}
	w.number++
	if w.rng.IntN(25) == 0 {
		w.alter(tx)
		return tx
	}
	tx.events = []*event{{kind: evQuery, body: queryBody(database, "BEGIN")}}
	statements := 1 + w.rng.IntN(3)
	most := 6
	switch w.rng.IntN(25) {
	case 0:
		statements, most = 3, 120 // a large one
		if w.rng.IntN(12) == 0 {
			most = 900 // which is more than a batch
		}
	case 1:
		statements = 0 // an empty one
	}
	for range statements {
		w.statement(tx, 1+w.rng.IntN(most))
	}
	tx.events = append(tx.events, &event{kind: evXID, body: make([]byte, 8)})
	return tx
}

// alter changes the columns of a table.
func (w *workload) alter(tx *transaction) {
	t := w.tables[w.rng.IntN(len(w.tables))]
	if len(t.columns) > 5 && w.rng.IntN(2) == 0 {
		at := len(t.columns) - 1
		tx.ddl = fmt.Sprintf("ALTER TABLE `%s` DROP COLUMN `%s`", t.name, t.columns[at].name)
		t.columns = slices.Clone(t.columns[:at])
		for k, row := range t.rows {
			t.rows[k] = slices.Clone(row[:at])
		}
	} else {
		t.added++
		c := column{fmt.Sprintf("x%d", t.added), typeLong}
		kind := "INT"
		if w.rng.IntN(2) == 0 {
			c.kind, kind = typeVarchar, "VARCHAR(40)"
		}
		tx.ddl = fmt.Sprintf("ALTER TABLE `%s` ADD COLUMN `%s` %s DEFAULT NULL", t.name, c.name, kind)
		t.columns = append(slices.Clone(t.columns), c)
		for k, row := range t.rows {
			t.rows[k] = append(slices.Clone(row), nil)
		}
	}
	t.id = w.id()
	tx.events = []*event{{kind: evQuery, body: queryBody(database, tx.ddl)}}
}

// statement changes n rows of one table in one way, in one or more rows events.
func (w *workload) statement(tx *transaction, n int) {
	t := w.tables[w.rng.IntN(len(w.tables))]
	kind := byte(evWrite)
	if len(t.keys) > 20 {
		kind = []byte{evWrite, evUpdate, evUpdate, evDelete}[w.rng.IntN(4)]
	}
	var changes []*change
	for range n {
		if kind != evWrite && len(t.keys) == 0 {
			break
		}
		changes = append(changes, w.change(t, kind))
	}
	tx.changes = append(tx.changes, changes...)
	tx.events = append(tx.events, &event{kind: evTableMap, body: tableMapBody(t.id, t, w.full), captured: t.captured})
	for len(changes) > 0 {
		k := min(len(changes), 1+w.rng.IntN(40))
		tx.events = append(tx.events, &event{
			kind: kind, body: rowsBody(t.id, kind, k == len(changes), t.columns, changes[:k]),
			rows: k, captured: t.captured, changes: changes[:k],
		})
		changes = changes[k:]
	}
}

// change does something to one row.
func (w *workload) change(t *table, kind byte) *change {
	c := &change{table: t.name, columns: t.columns, seq: -1}
	if t.captured {
		c.seq = w.seq
		w.seq++
	}
	if kind == evWrite {
		w.nextPK++
		c.op, c.after = 'c', w.row(t, w.nextPK, 1)
		t.rows[w.nextPK] = c.after
		t.keys = append(t.keys, w.nextPK)
		return c
	}
	at := w.rng.IntN(len(t.keys))
	key := t.keys[at]
	c.before = t.rows[key]
	if kind == evDelete {
		c.op = 'd'
		delete(t.rows, key)
		t.keys = slices.Delete(t.keys, at, at+1)
		return c
	}
	c.op = 'u'
	to := key
	if w.rng.IntN(8) == 0 {
		c.op = 'k'
		w.nextPK++
		to = w.nextPK
		delete(t.rows, key)
		t.keys[at] = to
	}
	c.after = w.row(t, to, c.before[1].(int64)+1)
	t.rows[to] = c.after
	return c
}

func (w *workload) row(t *table, key, version int64) []any {
	row := []any{key, version}
	for _, c := range t.columns[2:] {
		switch {
		case w.rng.IntN(6) == 0:
			row = append(row, nil)
		case c.kind == typeVarchar:
			row = append(row, strings.Repeat(string(rune('a'+w.rng.IntN(26))), w.rng.IntN(30))+"é☃")
		default:
			row = append(row, int64(int32(w.rng.Uint32())))
		}
	}
	return row
}

// pause is how long the primary rests between transactions.
func (w *workload) pause() time.Duration {
	switch w.rng.IntN(30) {
	case 0:
		return time.Duration(w.rng.IntN(5000)) * time.Millisecond
	case 1, 2, 3, 4, 5, 6, 7:
		return 0
	}
	return time.Duration(w.rng.IntN(400)) * time.Millisecond
}
