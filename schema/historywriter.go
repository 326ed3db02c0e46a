package schema

import (
	"strconv"
	"unicode/utf8"
)

// HistoryRecord is a record of Debezium's schema history as it is written.
type HistoryRecord struct {
	Server   string   // topic.prefix
	Position []Member // the offset at the end of the statement, in its order
	Time     int64    // ts_ms: the connector's clock
	Database string
	DDL      string
	Changes  []Change
}

// Record is the entry as it is written again.
func (e *HistoryEntry) Record() HistoryRecord {
	return HistoryRecord{
		Server: e.Server, Position: e.Position, Time: e.Time, Database: e.Database, DDL: e.DDL, Changes: e.Changes,
	}
}

// AppendHistory appends the text that Debezium's KafkaSchemaHistory writes of a record: JSON with line breaks and
// indents, as Jackson's default printer puts them.
func AppendHistory(dst []byte, r *HistoryRecord) []byte {
	w := historyWriter{out: dst, pretty: true}
	w.record(r)
	return w.out
}

// AppendHistoryLine appends the text that Debezium's FileSchemaHistory writes of a record: one line of JSON without
// blanks, and its end.
func AppendHistoryLine(dst []byte, r *HistoryRecord) []byte {
	w := historyWriter{out: dst}
	w.record(r)
	return append(w.out, '\n')
}

// historyWriter prints JSON as Jackson does, pretty or compact.
type historyWriter struct {
	out    []byte
	pretty bool
	depth  int
	more   bool // a member or an element of what is open stands already
}

func (w *historyWriter) record(r *HistoryRecord) {
	w.open()
	w.name("source")
	w.open()
	w.text("server", r.Server)
	w.close()
	w.name("position")
	w.open()
	for _, m := range r.Position {
		w.name(m.Name)
		w.out = append(w.out, m.Value...)
	}
	w.close()
	w.name("ts_ms")
	w.out = strconv.AppendInt(w.out, r.Time, 10)
	w.text("databaseName", r.Database)
	w.text("ddl", r.DDL)
	w.name("tableChanges")
	w.list(len(r.Changes), func(i int) { w.change(&r.Changes[i]) })
	w.close()
}

func (w *historyWriter) change(c *Change) {
	w.open()
	w.text("type", c.Kind.String())
	w.text("id", c.ID())
	if c.PreviousTable != "" {
		w.text("previousId", TableName{c.PreviousDatabase, c.PreviousTable}.quoted('"'))
	}
	if def := c.Definition; def != nil {
		w.name("table")
		w.open()
		w.optional("defaultCharsetName", def.DefaultCharset)
		w.name("primaryKeyColumnNames")
		w.texts(def.Key)
		w.name("columns")
		w.list(len(def.Columns), func(i int) { w.column(&def.Columns[i], i+1) })
		w.name("attributes")
		w.texts(nil)
		w.close()
		w.comment(def.Comment, def.BlankComment)
	}
	w.close()
}

func (w *historyWriter) column(c *ColumnDef, position int) {
	w.open()
	w.text("name", c.Name)
	w.number("jdbcType", c.JDBCType)
	w.text("typeName", c.Type)
	w.text("typeExpression", c.TypeExpression())
	w.optional("charsetName", c.Charset)
	if c.Length >= 0 {
		w.number("length", c.Length)
	}
	if c.Scale >= 0 {
		w.number("scale", c.Scale)
	}
	w.number("position", position)
	w.flag("optional", c.Nullable)
	w.flag("autoIncremented", c.AutoInc)
	w.flag("generated", c.Generated)
	w.comment(c.Comment, c.BlankComment)
	w.flag("hasDefaultValue", c.HasDefault)
	if c.Default != nil {
		w.text("defaultValueExpression", *c.Default)
	}
	w.name("enumValues")
	w.texts(c.EnumValues())
	w.close()
}

func (w *historyWriter) open() {
	w.out = append(w.out, '{')
	w.depth++
	w.more = false
}

func (w *historyWriter) close() {
	w.depth--
	if w.more {
		w.line()
	} else if w.pretty {
		w.out = append(w.out, ' ')
	}
	w.out = append(w.out, '}')
	w.more = true
}

func (w *historyWriter) line() {
	if !w.pretty {
		return
	}
	w.out = append(w.out, '\n')
	for range w.depth {
		w.out = append(w.out, "  "...)
	}
}

func (w *historyWriter) name(name string) {
	if w.more {
		w.out = append(w.out, ',')
	}
	w.more = true
	w.line()
	w.out = appendJacksonString(w.out, name)
	if w.pretty {
		w.out = append(w.out, " : "...)
	} else {
		w.out = append(w.out, ':')
	}
}

// list prints an array; its elements stand in one line with the brackets.
func (w *historyWriter) list(n int, element func(i int)) {
	w.out = append(w.out, '[')
	for i := range n {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if w.pretty {
			w.out = append(w.out, ' ')
		}
		element(i)
	}
	if w.pretty {
		w.out = append(w.out, ' ')
	}
	w.out = append(w.out, ']')
	w.more = true
}

func (w *historyWriter) texts(texts []string) {
	w.list(len(texts), func(i int) { w.out = appendJacksonString(w.out, texts[i]) })
}

func (w *historyWriter) text(name, text string) {
	w.name(name)
	w.out = appendJacksonString(w.out, text)
}

func (w *historyWriter) comment(text string, blank bool) {
	if blank {
		w.text("comment", "")
	} else {
		w.optional("comment", text)
	}
}

// optional prints null for an empty text.
func (w *historyWriter) optional(name, text string) {
	w.name(name)
	if text == "" {
		w.out = append(w.out, "null"...)
	} else {
		w.out = appendJacksonString(w.out, text)
	}
}

func (w *historyWriter) number(name string, n int) {
	w.name(name)
	w.out = strconv.AppendInt(w.out, int64(n), 10)
}

func (w *historyWriter) flag(name string, flag bool) {
	w.name(name)
	w.out = strconv.AppendBool(w.out, flag)
}

// appendJacksonString appends a JSON string as Jackson writes it: nothing but quotes, backslashes and control characters
// is escaped, these with capital digits.
func appendJacksonString(dst []byte, text string) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	for _, r := range text {
		switch {
		case r == '"', r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r == '\b':
			dst = append(dst, `\b`...)
		case r == '\f':
			dst = append(dst, `\f`...)
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
