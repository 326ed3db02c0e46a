package schema

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The JSON of a StoredTable. Members that are empty are left out; the names must not change, since stores outlive
// versions of the program.

type storedTable struct {
	Database string          `json:"database,omitempty"`
	Table    string          `json:"table,omitempty"`
	Versions []storedVersion `json:"versions"`
}

type storedVersion struct {
	File          string            `json:"file,omitempty"`
	Pos           int64             `json:"pos,omitempty"`
	GTIDs         string            `json:"gtids,omitempty"`
	Statement     string            `json:"statement,omitempty"`
	Charset       string            `json:"charset,omitempty"`
	ServerCharset string            `json:"serverCharset,omitempty"`
	Table         *storedDefinition `json:"table,omitempty"`
}

type storedDefinition struct {
	Key           []string       `json:"key,omitempty"`
	KeyKind       string         `json:"keyKind"`
	Unique        [][]string     `json:"unique,omitempty"`
	Charset       string         `json:"charset,omitempty"`
	ServerCharset string         `json:"serverCharset,omitempty"`
	Comment       *string        `json:"comment,omitempty"`
	Columns       []storedColumn `json:"columns"`
}

type storedColumn struct {
	Name       string        `json:"name"`
	Type       string        `json:"type"`
	Expression string        `json:"expression,omitempty"`
	JDBCType   int           `json:"jdbcType,omitempty"`
	Length     *int          `json:"length,omitempty"`
	Scale      *int          `json:"scale,omitempty"`
	Charset    string        `json:"charset,omitempty"`
	Nullable   bool          `json:"nullable,omitempty"`
	AutoInc    bool          `json:"autoIncremented,omitempty"`
	Generated  bool          `json:"generated,omitempty"`
	HasDefault bool          `json:"hasDefault,omitempty"`
	Default    *string       `json:"default,omitempty"`
	Labels     []string      `json:"labels,omitempty"`
	Quoted     []string      `json:"quoted,omitempty"`
	Comment    *string       `json:"comment,omitempty"`
	Server     *storedServer `json:"server,omitempty"`
}

type storedServer struct {
	Charset string   `json:"charset,omitempty"`
	Labels  []string `json:"labels,omitempty"`
	Default string   `json:"default,omitempty"`
}

// String names the kind as stores do: chosen, primary or unique.
func (k KeyKind) String() string {
	switch k {
	case KeyChosen:
		return "chosen"
	case KeyPrimary:
		return "primary"
	case KeyUnique:
		return "unique"
	}
	return fmt.Sprintf("KeyKind(%d)", uint8(k))
}

// Append appends the table as one JSON object without line breaks: what every [Store] keeps. [ParseStoredTable] reads it.
func (t StoredTable) Append(dst []byte) []byte {
	s := storedTable{Database: t.Database, Table: t.Table, Versions: []storedVersion{}}
	for i := range t.Versions {
		s.Versions = append(s.Versions, t.Versions[i].stored())
	}
	text, err := json.Marshal(s)
	if err != nil { // no value of these types can fail
		return dst
	}
	return append(dst, text...)
}

func (v *StoredVersion) stored() storedVersion {
	s := storedVersion{
		File: v.File, Pos: v.Pos, GTIDs: v.GTIDs, Statement: v.Statement, Charset: v.Charset, ServerCharset: v.ServerCharset,
	}
	def := v.Definition
	if def == nil {
		return s
	}
	s.Table = &storedDefinition{
		Key: def.Key, KeyKind: def.KeyKind.String(), Unique: def.Unique, Charset: def.DefaultCharset,
		ServerCharset: def.ServerCharset, Comment: storedComment(def.Comment, def.BlankComment), Columns: []storedColumn{},
	}
	for i := range def.Columns {
		c := &def.Columns[i]
		column := storedColumn{
			Name: c.Name, Type: c.Type, Expression: c.Expression, JDBCType: c.JDBCType, Charset: c.Charset, Nullable: c.Nullable,
			AutoInc: c.AutoInc, Generated: c.Generated, HasDefault: c.HasDefault, Default: c.Default, Labels: c.Labels,
			Quoted: c.Quoted, Comment: storedComment(c.Comment, c.BlankComment),
		}
		if c.Length >= 0 {
			column.Length = &c.Length
		}
		if c.Scale >= 0 {
			column.Scale = &c.Scale
		}
		if c.Server != nil {
			column.Server = &storedServer{c.Server.Charset, c.Server.Labels, c.Server.Default}
		}
		s.Table.Columns = append(s.Table.Columns, column)
	}
	return s
}

// storedComment is nil for a column or table without a comment.
func storedComment(comment string, blank bool) *string {
	if comment == "" && !blank {
		return nil
	}
	return &comment
}

// ParseStoredTable reads what [StoredTable.Append] wrote. Members that it does not know are left out. The result does not
// hold on to data.
func ParseStoredTable(data []byte) (StoredTable, error) {
	var s storedTable
	if err := json.Unmarshal(data, &s); err != nil {
		return StoredTable{}, fmt.Errorf("a table of the schema store cannot be read: %w", err)
	}
	t := StoredTable{Database: s.Database, Table: s.Table}
	for _, v := range s.Versions {
		version := StoredVersion{
			File: v.File, Pos: v.Pos, GTIDs: v.GTIDs, Statement: v.Statement, Charset: v.Charset, ServerCharset: v.ServerCharset,
		}
		if v.Table != nil {
			def, err := v.Table.definition(s.Database, s.Table)
			if err != nil {
				return StoredTable{}, fmt.Errorf("table %s.%s of the schema store cannot be read: %w", s.Database, s.Table, err)
			}
			version.Definition = def
		}
		t.Versions = append(t.Versions, version)
	}
	return t, nil
}

func (s *storedDefinition) definition(database, table string) (*Definition, error) {
	def := &Definition{
		Database: database, Name: table, Key: s.Key, Unique: s.Unique, DefaultCharset: s.Charset,
		ServerCharset: s.ServerCharset,
	}
	if s.Comment != nil {
		def.setComment(*s.Comment)
	}
	known := false
	for _, kind := range []KeyKind{KeyChosen, KeyPrimary, KeyUnique} {
		if kind.String() == s.KeyKind {
			def.KeyKind, known = kind, true
		}
	}
	if !known {
		return nil, fmt.Errorf("its key is of kind %q", s.KeyKind)
	}
	for _, c := range s.Columns {
		if c.Name == "" || c.Type == "" {
			return nil, errors.New("a column has no name or no type")
		}
		column := ColumnDef{
			Name: c.Name, Type: c.Type, Expression: c.Expression, JDBCType: c.JDBCType, Length: -1, Scale: -1, Charset: c.Charset,
			Nullable: c.Nullable, AutoInc: c.AutoInc, Generated: c.Generated, HasDefault: c.HasDefault, Default: c.Default,
			Labels: c.Labels, Quoted: c.Quoted,
		}
		if c.Comment != nil {
			column.Comment, column.BlankComment = *c.Comment, *c.Comment == ""
		}
		if c.Length != nil {
			column.Length = *c.Length
		}
		if c.Scale != nil {
			column.Scale = *c.Scale
		}
		if c.Server != nil {
			column.Server = &ServerColumn{c.Server.Charset, c.Server.Labels, c.Server.Default}
		}
		def.Columns = append(def.Columns, column)
	}
	return def, nil
}
