package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// HistoryEntry is one record of a Debezium schema history: a statement, where it stands in the binlog and what it did
// to tables. A DROP DATABASE has no changes of its own; [Catalog.Replay] reads its text.
type HistoryEntry struct {
	File     string // binlog file of the position; "" when the record has none
	Pos      int64
	Event    int64  // events to skip after Pos; nearly always 0
	GTIDs    string // "" without GTIDs
	Snapshot bool   // written by a snapshot, that is: holds at its position
	Database string
	DDL      string
	Changes  []Change // in order

	Server   string   // of the record's source: topic.prefix
	Time     int64    // ts_ms
	Position []Member // all of the position, in the order of the text
}

// Member is a member of a JSON object: its name, and its value as JSON text.
type Member struct{ Name, Value string }

// ChangeKind says what a [Change] did.
type ChangeKind uint8

// The kinds of changes to tables.
const (
	CreateTable ChangeKind = iota + 1
	AlterTable
	DropTable
)

// Change is what one statement did to one table.
type Change struct {
	Kind             ChangeKind
	Database, Table  string
	PreviousDatabase string      // the name before a RENAME; "" for none
	PreviousTable    string      // the same
	Definition       *Definition // the table afterwards; nil for DropTable
}

// ID is the name of the changed table as Debezium writes it: "database"."table" in double quotes.
func (c *Change) ID() string { return TableName{c.Database, c.Table}.quoted('"') }

// String is the kind in Debezium's words: CREATE, ALTER or DROP.
func (k ChangeKind) String() string {
	switch k {
	case CreateTable:
		return "CREATE"
	case AlterTable:
		return "ALTER"
	case DropTable:
		return "DROP"
	}
	return fmt.Sprintf("ChangeKind(%d)", uint8(k))
}

// The JSON of a history record, as far as it is used.
type historyRecord struct {
	Source struct {
		Server string `json:"server"`
	} `json:"source"`
	Position     json.RawMessage `json:"position"`
	Time         int64           `json:"ts_ms"`
	Database     string          `json:"databaseName"`
	DDL          string          `json:"ddl"`
	TableChanges []historyChange `json:"tableChanges"`
}

type historyPosition struct {
	File     string `json:"file"`
	Pos      int64  `json:"pos"`
	Event    int64  `json:"event"`
	GTIDs    string `json:"gtids"`
	Snapshot any    `json:"snapshot"` // true or a word; left out in the stream
}

type historyChange struct {
	Type       string        `json:"type"`
	ID         string        `json:"id"`
	PreviousID string        `json:"previousId"`
	Table      *historyTable `json:"table"`
	Comment    *string       `json:"comment"`
}

type historyTable struct {
	Charset string          `json:"defaultCharsetName"`
	Key     []string        `json:"primaryKeyColumnNames"`
	Columns []historyColumn `json:"columns"`
}

type historyColumn struct {
	Name       string   `json:"name"`
	JDBC       int      `json:"jdbcType"`
	Type       string   `json:"typeName"`
	Expression string   `json:"typeExpression"`
	Charset    string   `json:"charsetName"`
	Length     *int     `json:"length"`
	Scale      *int     `json:"scale"`
	Optional   bool     `json:"optional"`
	AutoInc    bool     `json:"autoIncremented"`
	Generated  bool     `json:"generated"`
	Comment    *string  `json:"comment"`
	HasDefault bool     `json:"hasDefaultValue"`
	Default    *string  `json:"defaultValueExpression"`
	Labels     []string `json:"enumValues"`
}

// ReadHistory reads a Debezium schema history: JSON values one after the other, each a record of its history topic or
// file, or an object whose "value" is the text of one. It reads to the end of r; a record that it does not understand
// is an error with its number.
func ReadHistory(r io.Reader) ([]HistoryEntry, error) {
	var entries []HistoryEntry
	var shares shares
	decoder := json.NewDecoder(r)
	for n := 1; ; n++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err == nil {
			var entry *HistoryEntry
			if entry, err = parseHistoryRecord(raw); err == nil && entry != nil {
				for i := range entry.Changes {
					shares.add(entry.Changes[i].Definition)
				}
				entries = append(entries, *entry)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("schema history, record %d: %w", n, err)
		}
	}
}

// parseHistoryRecord returns nil for a record without content.
func parseHistoryRecord(raw json.RawMessage) (*HistoryEntry, error) {
	var wrapper struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(raw, &wrapper); err != nil {
		return nil, err
	}
	switch {
	case string(wrapper.Value) == "null":
		return nil, nil
	case len(wrapper.Value) > 0 && wrapper.Value[0] == '"':
		var text string
		if err := json.Unmarshal(wrapper.Value, &text); err != nil {
			return nil, err
		}
		raw = json.RawMessage(text)
	case len(wrapper.Value) > 0:
		raw = wrapper.Value
	}
	var record historyRecord
	if err := json.Unmarshal(raw, &record); err != nil {
		return nil, err
	}
	if len(record.Position) == 0 || string(record.Position) == "null" {
		return nil, errors.New("it has no position, so it is not a record of a schema history")
	}
	var at historyPosition
	if err := json.Unmarshal(record.Position, &at); err != nil {
		return nil, err
	}
	entry := &HistoryEntry{
		File: at.File, Pos: at.Pos, Event: at.Event, GTIDs: at.GTIDs,
		Snapshot: at.Snapshot != nil && at.Snapshot != false && at.Snapshot != "false",
		Database: record.Database, DDL: record.DDL, Server: record.Source.Server, Time: record.Time,
	}
	var err error
	if entry.Position, err = members(record.Position); err != nil {
		return nil, err
	}
	for _, c := range record.TableChanges {
		change, err := c.change()
		if err != nil {
			return nil, err
		}
		entry.Changes = append(entry.Changes, change)
	}
	return entry, nil
}

// members reads a flat JSON object in the order of its text.
func members(object json.RawMessage) ([]Member, error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	var all []Member
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		text, ok := name.(string)
		if !ok {
			return nil, fmt.Errorf("position %s is no object", excerpt(string(object), 80))
		}
		all = append(all, Member{text, string(value)})
	}
	return all, nil
}

func (c historyChange) change() (Change, error) {
	var change Change
	switch c.Type {
	case "CREATE":
		change.Kind = CreateTable
	case "ALTER":
		change.Kind = AlterTable
	case "DROP":
		change.Kind = DropTable
	default:
		return change, fmt.Errorf("change of type %q", c.Type)
	}
	var err error
	if change.Database, change.Table, err = splitTableID(c.ID); err != nil {
		return change, err
	}
	if c.PreviousID != "" {
		if change.PreviousDatabase, change.PreviousTable, err = splitTableID(c.PreviousID); err != nil {
			return change, err
		}
	}
	if change.Kind == DropTable {
		return change, nil
	}
	if c.Table == nil {
		return change, fmt.Errorf("%s of %s without the table", c.Type, c.ID)
	}
	def := &Definition{
		Database: change.Database, Name: change.Table, Key: c.Table.Key, KeyKind: KeyChosen,
		DefaultCharset: c.Table.Charset,
	}
	if c.Comment != nil {
		def.setComment(*c.Comment)
	}
	if len(def.Key) == 0 {
		def.Key = nil
	}
	for _, column := range c.Table.Columns {
		def.Columns = append(def.Columns, column.columnDef())
	}
	change.Definition = def
	return change, nil
}

func (c historyColumn) columnDef() ColumnDef {
	def := ColumnDef{
		Name: c.Name, Type: c.Type, Length: -1, Scale: -1, Charset: c.Charset, Nullable: c.Optional,
		AutoInc: c.AutoInc, Generated: c.Generated, HasDefault: c.HasDefault, Default: c.Default, JDBCType: c.JDBC,
	}
	if c.Comment != nil {
		def.Comment, def.BlankComment = *c.Comment, *c.Comment == ""
	}
	if c.Expression != c.Type {
		def.Expression = c.Expression
	}
	if c.Length != nil {
		def.Length = *c.Length
	}
	if c.Scale != nil {
		def.Scale = *c.Scale
	}
	def.setLabels(c.Labels)
	return def
}

// setLabels takes the labels as Debezium has them: with their quotes. A type that is neither ENUM nor SET may have kept
// those of a column that was one.
func (c *ColumnDef) setLabels(quoted []string) {
	plain := c.Type == "ENUM" || c.Type == "SET"
	if !plain {
		c.Quoted = quoted
		if len(quoted) == 0 {
			c.Quoted = nil
		}
		return
	}
	for _, label := range quoted {
		c.Labels = append(c.Labels, withoutQuotes(label))
		plain = plain && len(label) >= 2 && label[0] == '\'' && label[len(label)-1] == '\''
	}
	if !plain {
		c.Quoted = quoted
	}
}

// EnumValues are the labels as Debezium has them (enumValues): with their quotes, none for other types. It is not to be
// changed.
func (c *ColumnDef) EnumValues() []string {
	if c.Quoted != nil {
		return c.Quoted
	}
	if c.Type != "ENUM" && c.Type != "SET" { // ENUM … BINARY is another type to Debezium
		return nil
	}
	quoted := make([]string, len(c.Labels))
	for i, label := range c.Labels {
		quoted[i] = "'" + label + "'"
	}
	return quoted
}

// splitTableID takes "db"."table" apart; quotes inside a name are doubled.
func splitTableID(id string) (database, table string, err error) {
	var names []string
	for rest := id; rest != ""; {
		if rest[0] != '"' {
			return "", "", fmt.Errorf("table id %s is not of the form \"database\".\"table\"", id)
		}
		end := 1
		for end < len(rest) && (rest[end] != '"' || end+1 < len(rest) && rest[end+1] == '"') {
			if rest[end] == '"' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			break
		}
		names = append(names, strings.ReplaceAll(rest[1:end], `""`, `"`))
		rest = strings.TrimPrefix(rest[end+1:], ".")
	}
	if len(names) < 2 {
		return "", "", fmt.Errorf("table id %s is not of the form \"database\".\"table\"", id)
	}
	return names[len(names)-2], names[len(names)-1], nil
}

// TypeExpression is Debezium's typeExpression.
func (c *ColumnDef) TypeExpression() string {
	if c.Expression != "" {
		return c.Expression
	}
	return c.Type
}
