package emitter

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

var (
	optionalInt32Type = schema.Type{Type: "int32", Optional: true}
	optionalBoolType  = schema.Type{Type: "boolean", Optional: true}
)

// changeType is the schema of an element of tableChanges.
func changeType() *schema.Type {
	texts := schema.Type{Type: "array", Optional: true, Items: &stringType}
	column := schema.Type{
		Type: "struct", Name: "io.debezium.connector.schema.Column", Version: 1,
		Fields: []schema.Field{
			{Name: "name", Type: &stringType},
			{Name: "jdbcType", Type: &int32Type},
			{Name: "nativeType", Type: &optionalInt32Type},
			{Name: "typeName", Type: &stringType},
			{Name: "typeExpression", Type: &optionalStringType},
			{Name: "charsetName", Type: &optionalStringType},
			{Name: "length", Type: &optionalInt32Type},
			{Name: "scale", Type: &optionalInt32Type},
			{Name: "position", Type: &int32Type},
			{Name: "optional", Type: &optionalBoolType},
			{Name: "autoIncremented", Type: &optionalBoolType},
			{Name: "generated", Type: &optionalBoolType},
			{Name: "comment", Type: &optionalStringType},
			{Name: "defaultValueExpression", Type: &optionalStringType},
			{Name: "enumValues", Type: &texts},
		},
	}
	table := schema.Type{
		Type: "struct", Optional: true, Name: "io.debezium.connector.schema.Table", Version: 1,
		Fields: []schema.Field{
			{Name: "defaultCharsetName", Type: &optionalStringType},
			{Name: "primaryKeyColumnNames", Type: &texts},
			{Name: "columns", Type: &schema.Type{Type: "array", Items: &column}},
			{Name: "comment", Type: &optionalStringType},
		},
	}
	return &schema.Type{
		Type: "struct", Name: "io.debezium.connector.schema.Change", Version: 1,
		Fields: []schema.Field{
			{Name: "type", Type: &stringType},
			{Name: "id", Type: &stringType},
			{Name: "table", Type: &table},
		},
	}
}

// schemaChangeShapes are the key and value of a schema change.
func schemaChangeShapes(cfg *Config) (key, value shape) {
	pkg := "io.debezium.connector." + cfg.Connector + "."
	key = structShape(schema.Type{Name: pkg + "SchemaChangeKey", Version: 1}, []member{
		fromSlot("databaseName", stringType, slotDatabase),
	})
	source := sourceShape(cfg)
	source.fill("db", slotDatabase)
	source.fill("table", slotTables)
	value = structShape(schema.Type{Name: pkg + "SchemaChangeValue", Version: 1}, []member{
		{"source", source},
		fromField("ts_ms", int64Type, envelopeTsMs),
		fromSlot("databaseName", optionalStringType, slotDatabase),
		constant("schemaName", optionalStringType, schema.Value{}),
		fromSlot("ddl", optionalStringType, slotDDL),
		fromSlot("tableChanges", schema.Type{Type: "array", Items: changeType()}, slotChanges),
	})
	return key, value
}

// SchemaChange appends the records of a DDL statement: one for each of its changes that the schema change topic has.
// Only the last carries the offset after the statement (I3), which lacks its GTID, as Debezium's does; the boundary is
// to be announced after it. Without [Config.SchemaChanges] nothing is appended. On an error b is as it was before.
func (e *Emitter) SchemaChange(b *Batch, ev *binlog.SchemaChange) error {
	last := -1
	for i := range ev.Changes {
		if e.cfg.SchemaChanges && ev.Changes[i].Topic {
			last = i
		}
	}
	if last >= 0 {
		if err := e.side.schemaChange.resolve(); err != nil {
			return fmt.Errorf("%s:%d: %w", ev.Info.File, ev.Info.Pos, err)
		}
	}
	for i := range ev.Changes {
		e.side.changed(ev.Changes[i].Changes)
	}
	if last < 0 {
		return nil
	}
	e.startStatement(ev.Info)
	e.run.row = ev.Row
	if e.side.lastRow >= 0 { // Debezium does not look at the rows of operations that it skips
		e.run.row = e.side.lastRow
	}
	records, size := len(b.Records), len(b.mem)
	for i := range ev.Changes[:last+1] {
		c := &ev.Changes[i]
		if !c.Topic {
			continue
		}
		e.run.slots[slotDatabase] = textTree(c.Database)
		e.run.slots[slotTables] = tree{}
		if c.Tables != nil {
			e.run.slots[slotTables] = textTree(strings.Join(c.Tables, ","))
		}
		e.run.slots[slotDDL] = textTree(c.DDL)
		e.run.slots[slotChanges] = changesTree(c.Changes)
		o := e.Mark(ev.Before)
		if i == last {
			o = e.Mark(ev.Record)
		}
		if err := e.beside(b, &e.side.schemaChange, o); err != nil {
			clear(b.Records[records:])
			b.Records, b.mem = b.Records[:records], b.mem[:size]
			return fmt.Errorf("%s:%d: %w", ev.Info.File, ev.Info.Pos, err)
		}
		b.Records[len(b.Records)-1].Headers = e.headers
	}
	return nil
}

// changesTree is tableChanges.
func changesTree(changes []schema.Change) tree {
	t := tree{members: make([]tree, len(changes))}
	for i := range changes {
		c := &changes[i]
		kind := [...]string{schema.CreateTable: "CREATE", schema.AlterTable: "ALTER", schema.DropTable: "DROP"}[c.Kind]
		table := tree{}
		if c.Kind != schema.DropTable && c.Definition != nil {
			table = tableTree(c.Definition)
		}
		t.members[i].members = []tree{textTree(kind), textTree(tableID(c.Database, c.Table)), table}
	}
	return t
}

// tableID is how Debezium names a table there: "database"."table".
func tableID(database, table string) string {
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	return quote(database) + "." + quote(table)
}

func tableTree(def *schema.Definition) tree {
	columns := make([]tree, len(def.Columns))
	for i := range def.Columns {
		columns[i] = columnTree(&def.Columns[i], i+1)
	}
	return tree{members: []tree{
		optionalText(def.DefaultCharset),
		textsTree(def.Key),
		{members: columns},
		comment(def.Comment, def.BlankComment),
	}}
}

func columnTree(c *schema.ColumnDef, position int) tree {
	def := tree{}
	if c.Default != nil {
		def = textTree(*c.Default)
	}
	return tree{members: []tree{
		textTree(c.Name),
		intTree(int64(c.JDBCType)),
		{}, // nativeType
		textTree(c.Type),
		textTree(cmp.Or(c.Expression, c.Type)),
		optionalText(c.Charset),
		sizeTree(c.Length),
		sizeTree(c.Scale),
		intTree(int64(position)),
		boolTree(c.Nullable),
		boolTree(c.AutoInc),
		boolTree(c.Generated),
		comment(c.Comment, c.BlankComment),
		def,
		labelsTree(c),
	}}
}

// labelsTree is enumValues, which have their quotes.
func labelsTree(c *schema.ColumnDef) tree {
	if c.Quoted != nil {
		return textsTree(c.Quoted)
	}
	if len(c.Labels) == 0 {
		return tree{}
	}
	t := tree{members: make([]tree, len(c.Labels))}
	for i, label := range c.Labels {
		t.members[i] = textTree("'" + label + "'")
	}
	return t
}

// sizeTree is a length or scale; -1 is none.
func sizeTree(n int) tree {
	if n < 0 {
		return tree{}
	}
	return intTree(int64(n))
}

func textsTree(texts []string) tree {
	t := tree{members: make([]tree, len(texts))}
	for i, s := range texts {
		t.members[i] = textTree(s)
	}
	return t
}

// comment is a comment, which may be blank; null when there is none.
func comment(text string, blank bool) tree {
	if blank {
		return textTree("")
	}
	return optionalText(text)
}
