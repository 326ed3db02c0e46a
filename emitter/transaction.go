package emitter

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// The members of an offset inside a transaction.
const (
	transactionIDMember = "transaction_id"
	tableCountPrefix    = "transaction_data_collection_order_"
)

// transaction counts the events of the open transaction, for Debezium's transaction metadata.
type transaction struct {
	id      string          // "": none is open
	value   schema.Value    // the same
	member  offset.Member   // … and again
	total   int64           // events so far
	counts  countMap        // of each table
	current *tableCount     // of the event begun
	block   [3]tree         // the transaction block of the event at hand
	lists   []tree          // data_collections of the record of its end …
	pairs   []tree          // … and their members
	members []offset.Member // what offsets have now; nil: to be made
	slab    []offset.Member // memory for members, which offsets keep
	made    int             // bytes of members since it was set to 0

	recounting bool  // rows that the stored offset covers are counted again
	stored     int64 // how many events that offset has
}

// open begins a transaction without events.
func (t *transaction) open(id string) {
	t.id, t.value, t.total, t.members = id, text(id), 0, nil
	t.member = offset.TextMember(transactionIDMember, id)
	t.counts.clear()
}

// close ends the transaction.
func (t *transaction) close() {
	t.id, t.members = "", nil
	t.counts.clear()
}

// recount begins counting again what a stored offset has counted.
func (t *transaction) recount(ev *binlog.Rows) {
	t.recounting, t.stored = true, t.total
	t.open(t.id)
	t.current = t.counts.version(ev.Table)
}

// collections are the tables with their events. The result holds until the next call.
func (t *transaction) collections() tree {
	n := len(t.counts.order)
	if cap(t.lists) < n || t.lists == nil {
		t.lists, t.pairs = make([]tree, n), make([]tree, 2*n)
	}
	for i, c := range t.counts.order {
		pair := t.pairs[2*i : 2*i+2]
		pair[0].value, pair[1].value = c.value, schema.Value{Kind: schema.Int, Int: c.events}
		t.lists[i].members = pair
	}
	return tree{members: t.lists[:n]}
}

// mark gives an offset the members that it has inside the open transaction.
func (t *transaction) mark(o *offset.Offset) {
	if t.members == nil {
		t.makeMembers()
	}
	if len(o.Extra) == 0 {
		o.Extra = t.members
		return
	}
	extra := make([]offset.Member, 0, len(o.Extra)+len(t.members))
	for _, m := range o.Extra {
		if m.Name != transactionIDMember && !strings.HasPrefix(m.Name, tableCountPrefix) {
			extra = append(extra, m)
		}
	}
	o.Extra = append(extra, t.members...)
}

// makeMembers makes the members in the order in which Debezium puts them into its map. The memory of older ones is in
// use by offsets; it is had for many at once.
func (t *transaction) makeMembers() {
	const many = 256
	n := 1 + len(t.counts.order)
	t.made += n * int(unsafe.Sizeof(offset.Member{}))
	if cap(t.slab)-len(t.slab) < n {
		t.slab = make([]offset.Member, 0, max(n, many))
	}
	start := len(t.slab)
	t.slab = append(t.slab, t.member)
	for _, c := range t.counts.order {
		t.slab = append(t.slab, offset.Member{Name: c.member, Value: t.counts.text(c)})
	}
	t.members = t.slab[start:len(t.slab):len(t.slab)]
}

// bound is an end of a transaction.
type bound uint8

const (
	beginning bound = iota
	ending
)

// transactionShapes are the key and value of the record of a transaction's beginning or end.
func transactionShapes(at bound) (key, value shape) {
	key = structShape(schema.Type{Name: "io.debezium.connector.common.TransactionMetadataKey", Version: 1}, []member{
		fromSlot("id", stringType, slotID),
	})
	collections := schema.Type{Type: "array", Optional: true, Items: &schema.Type{
		Type: "struct", Optional: true, Name: "event.collection", Version: 1,
		Fields: []schema.Field{{Name: "data_collection", Type: &stringType}, {Name: "event_count", Type: &int64Type}},
	}}
	value = structShape(schema.Type{Name: "io.debezium.connector.common.TransactionMetadataValue", Version: 1}, []member{
		constant("status", stringType, text([...]string{"BEGIN", "END"}[at])),
		fromSlot("id", stringType, slotID),
		fromSlot("event_count", optionalInt64Type, slotCount),
		fromSlot("data_collections", collections, slotCollections),
		fromField("ts_ms", int64Type, sourceTsMs),
	})
	return key, value
}

// Transaction appends the record of a transaction's beginning and counts its events from here on. The transaction that a
// stored offset lies in ([Emitter.Resume]) goes on without a second record, as long as its rows are not sent again.
// Without [Config.Transactions] nothing happens.
func (e *Emitter) Transaction(b *Batch, ev *binlog.Begin) error {
	if !e.cfg.Transactions {
		return nil
	}
	t := &e.side.transaction
	if t.id == ev.ID && (ev.Resume || t.total == 0) {
		return nil
	}
	if err := e.side.begin.resolve(); err != nil {
		return err
	}
	t.open(ev.ID)
	e.start(&ev.Info)
	e.run.slots[slotID] = tree{value: t.value}
	e.run.slots[slotCount], e.run.slots[slotCollections] = tree{}, tree{}
	return e.beside(b, &e.side.begin, e.Mark(ev.Offset))
}

// Commit appends the record of a transaction's end, with how many events it had, at the offset before its end: the
// boundary is to be announced after it. It does nothing for a boundary that ends no transaction.
func (e *Emitter) Commit(b *Batch, ev *binlog.Boundary) error {
	t := &e.side.transaction
	if !ev.Commit || t.id == "" {
		return nil
	}
	if err := e.side.end.resolve(); err != nil {
		return err
	}
	e.start(&ev.Info)
	e.run.slots[slotID] = tree{value: t.value}
	e.run.slots[slotCount] = intTree(t.total)
	e.run.slots[slotCollections] = t.collections()
	if err := e.beside(b, &e.side.end, e.Mark(ev.Before)); err != nil {
		return err
	}
	t.close()
	return nil
}

// Resume takes up the counts of the transaction that a stored offset lies in. It is to be called before the first event
// of a source that was opened there; what was counted before is forgotten.
func (e *Emitter) Resume(stored offset.Offset) {
	t := &e.side.transaction
	*t = transaction{}
	e.side.lastRow = -1
	if !e.cfg.Transactions {
		return
	}
	id, ok := stored.Member(transactionIDMember)
	if !ok || id == "" {
		return
	}
	t.open(id)
	for _, m := range stored.Extra {
		if table, ok := strings.CutPrefix(m.Name, tableCountPrefix); ok {
			n, err := strconv.ParseInt(m.Value, 10, 64)
			if err == nil && n > 0 {
				t.counts.add(t.counts.table(table), n)
				t.total += n
			}
		}
	}
}

// Mark gives an offset inside the open transaction the members that say so. Offsets outside, and all of them without
// [Config.Transactions], stay as they are. Records are marked already; boundaries are to be.
func (e *Emitter) Mark(o offset.Offset) offset.Offset {
	e.mark(&o)
	return o
}

func (e *Emitter) mark(o *offset.Offset) {
	if e.side.transaction.id != "" {
		e.side.transaction.mark(o)
	}
}

// uncount takes back the last n events, which are all of one table.
func (t *transaction) uncount(n int64) {
	if n == 0 {
		return
	}
	t.total -= n
	t.counts.remove(t.current, n)
	t.members = nil
}

// count counts the event that is about to be written and makes its transaction block.
func (e *Emitter) count() {
	t := &e.side.transaction
	if t.id == "" {
		e.run.slots[slotTransaction] = tree{}
		return
	}
	t.total++
	t.counts.add(t.current, 1)
	t.members = nil
	t.block[0].value = t.value
	t.block[1].value = schema.Value{Kind: schema.Int, Int: t.total}
	t.block[2].value = schema.Value{Kind: schema.Int, Int: t.current.events}
	e.run.slots[slotTransaction].members = t.block[:]
}
