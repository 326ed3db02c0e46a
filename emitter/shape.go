package emitter

import "github.com/tidemark-cdc/tidemark/schema"

// A shape is a Connect schema whose leaves say where their values come from. A format compiles it into a [program];
// the schema part of JSON is printed from the same tree.
type shape struct {
	typ    *schema.Type
	fields []shape // the members of a struct, one for each of typ.Fields; nil for a leaf
	leaf   leaf
}

// leaf is where the value of a shape without members comes from.
type leaf struct {
	kind     leafKind
	constant schema.Value // of leafConst
	field    field        // of leafField
	image    image        // of leafCell
	column   *column      // of leafCell
	slot     slot         // of leafSlot
}

type leafKind uint8

const (
	leafConst leafKind = iota
	leafField
	leafCell
	leafSlot // a tree of values that is put there before each record
)

// image is one of a row's two images.
type image uint8

const (
	before image = iota
	after
)

// field is a member of the envelope that comes from the event, the row or the clock.
type field uint8

const (
	sourceTsMs field = iota
	sourceTsUs
	sourceTsNs
	sourceServerID
	sourceGTID
	sourceFile
	sourcePos
	sourceThread
	sourceQuery
	sourceDatabase
	sourceTable
	sourceRow
	envelopeTsMs
	envelopeTsUs
	envelopeTsNs
	fields // how many there are
)

// scope says how long the text of a part of a record stays the same.
type scope uint8

const (
	scopePlan  scope = iota // as long as the plan
	scopeEvent              // during one rows event
	scopeClock              // until the clock is read again
	scopeRow
)

func (f field) scope() scope {
	switch f {
	case sourceRow:
		return scopeRow
	case envelopeTsMs, envelopeTsUs, envelopeTsNs:
		return scopeClock
	}
	return scopeEvent
}

// nullable says that no text is null.
func (f field) nullable() bool { return f == sourceGTID || f == sourceQuery }

// member is a named shape inside a struct.
type member struct {
	name string
	shape
}

// structShape makes a struct of members; typ brings name, version and the like.
func structShape(typ schema.Type, members []member) shape {
	s := shape{typ: &typ}
	typ.Type = "struct"
	typ.Fields = make([]schema.Field, len(members))
	s.fields = make([]shape, len(members))
	for i, m := range members {
		typ.Fields[i] = schema.Field{Name: m.name, Type: m.typ}
		s.fields[i] = m.shape
	}
	return s
}

func constant(name string, typ schema.Type, v schema.Value) member {
	return member{name, shape{typ: &typ, leaf: leaf{kind: leafConst, constant: v}}}
}

func fromField(name string, typ schema.Type, f field) member {
	return member{name, shape{typ: &typ, leaf: leaf{kind: leafField, field: f}}}
}

func text(s string) schema.Value { return schema.Value{Kind: schema.String, Bytes: []byte(s)} }

var (
	stringType         = schema.Type{Type: "string"}
	optionalStringType = schema.Type{Type: "string", Optional: true}
	int64Type          = schema.Type{Type: "int64"}
	optionalInt64Type  = schema.Type{Type: "int64", Optional: true}
	int32Type          = schema.Type{Type: "int32"}
)

// rowShape is the struct of a table's row as one image has it.
func rowShape(name string, columns []column, img image) shape {
	return structShape(schema.Type{Name: name, Optional: true}, cellMembers(columns, img))
}

// null is a shape of the same schema without a value.
func null(s shape) shape { return shape{typ: s.typ} }

// keyShape is the record key: the key's columns as one image has them, in the key's own order, and what the naming of
// topics adds.
func keyShape(name string, columns []column, img image, added []member) shape {
	return structShape(schema.Type{Name: name}, append(cellMembers(columns, img), added...))
}

func cellMembers(columns []column, img image) []member {
	members := make([]member, len(columns))
	for i := range columns {
		c := &columns[i]
		members[i] = member{c.field, shape{typ: c.typ, leaf: leaf{kind: leafCell, image: img, column: c}}}
	}
	return members
}

// change is what a change event says of its row. Each has a shape of its own, so that its constant parts are.
type change uint8

const (
	created change = iota
	updated
	deleted
	truncated
	changes // how many there are
)

// envelopeShape is Debezium's change event for a table whose schemas have the names given.
func envelopeShape(row, envelope string, columns []column, source shape, c change) shape {
	old, current := rowShape(row, columns, before), rowShape(row, columns, after)
	if c == created || c == truncated {
		old = null(old)
	}
	if c == deleted || c == truncated {
		current = null(current)
	}
	return structShape(schema.Type{Name: envelope, Version: 2}, []member{
		{"before", old},
		{"after", current},
		{"source", source},
		{"transaction", transactionShape()},
		constant("op", stringType, text([...]string{"c", "u", "d", "t"}[c])),
		fromField("ts_ms", optionalInt64Type, envelopeTsMs),
		fromField("ts_us", optionalInt64Type, envelopeTsUs),
		fromField("ts_ns", optionalInt64Type, envelopeTsNs),
	})
}

// formatVersion is the Debezium release whose events these are.
const formatVersion = "3.6.1.Final"

// sourceShape is the source block of events. That of MariaDB's connector has the same fields:
// io.debezium.connector.binlog.BinlogSourceInfoStructMaker makes both.
func sourceShape(cfg *Config) shape {
	unset := text("false")
	name := cfg.SchemaNames.schemaName("io.debezium.connector." + cfg.Connector + ".Source")
	return structShape(schema.Type{Name: name, Version: 1}, []member{
		constant("version", stringType, text(formatVersion)),
		constant("connector", stringType, text(cfg.Connector)),
		constant("name", stringType, text(cfg.Prefix)),
		fromField("ts_ms", int64Type, sourceTsMs),
		// Debezium leaves snapshot unset in streamed records: the converter puts the default there, or null.
		constant("snapshot", schema.Type{
			Type: "string", Optional: true, Name: "io.debezium.data.Enum", Version: 1,
			Parameters: []schema.Parameter{{
				Name:  "allowed",
				Value: "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental",
			}},
			Default: &unset,
		}, schema.Value{}),
		fromField("db", stringType, sourceDatabase),
		constant("sequence", optionalStringType, schema.Value{}),
		fromField("ts_us", optionalInt64Type, sourceTsUs),
		fromField("ts_ns", optionalInt64Type, sourceTsNs),
		fromField("table", optionalStringType, sourceTable),
		fromField("server_id", int64Type, sourceServerID),
		fromField("gtid", optionalStringType, sourceGTID),
		fromField("file", stringType, sourceFile),
		fromField("pos", int64Type, sourcePos),
		fromField("row", int32Type, sourceRow),
		fromField("thread", optionalInt64Type, sourceThread),
		fromField("query", optionalStringType, sourceQuery),
	})
}

// transactionShape is the transaction block, which is null without transaction metadata.
func transactionShape() shape {
	return constant("", schema.Type{
		Type: "struct", Optional: true, Name: "event.block", Version: 1,
		Fields: []schema.Field{
			{Name: "id", Type: &stringType},
			{Name: "total_order", Type: &int64Type},
			{Name: "data_collection_order", Type: &int64Type},
		},
	}, schema.Value{}).shape
}
