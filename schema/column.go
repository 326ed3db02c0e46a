package schema

import (
	"fmt"
	"strings"
)

// Column gives the Connect schema and the decoder of the i-th column of t. A column is optional if it can be NULL or if its
// definition says so: of a column that the server makes NOT NULL unasked (AUTO_INCREMENT, TIMESTAMP of old) the text of a
// DDL statement does not tell, and so Debezium does not know. An error means that the column's type or character set is not supported, or that a converter or mask cannot take the
// column; it names table and column. The result is the caller's; compile it once a table version.
func (m Modes) Column(t *Table, i int) (*Type, Decoder, error) {
	mapped, err := m.column(t, i)
	if err != nil {
		return nil, nil, err
	}
	typ := mapped.typ // a copy: the type is kept for long, and the rest of the mapping is not
	return &typ, mapped.decoder(), nil
}

// Layout gives the layout of the i-th column of t.
func (m Modes) Layout(t *Table, i int) Layout {
	m.Invalid, m.InvalidValues, m.Failure = nil, nil, FailureSkip // told by Column
	mapped, err := m.column(t, i)
	if err != nil {
		return Layout{}
	}
	return mapped.layout
}

func (m Modes) column(t *Table, i int) (*mapping, error) {
	c, compressed := plainColumn(&t.Columns[i])
	mapped, err := (&mapper{
		Modes: m, database: t.Database, table: t.Name, c: c,
		optional: c.Nullable || c.Def != nil && c.Def.Nullable,
		invalid:  newInvalid(m, t, c),
	}).column()
	if err != nil {
		return nil, fmt.Errorf("column %s.%s.%s: %w", t.Database, t.Name, c.Name, err)
	}
	if compressed {
		decompressed(mapped)
	}
	return mapped, nil
}

// mapper maps one column.
type mapper struct {
	Modes
	database, table string
	c               *Column
	optional        bool
	invalid         *invalid
}

// mapping is a column's schema and decoder under construction.
type mapping struct {
	typ    Type
	decode func(null Value) Decoder // null is what a NULL gives
	layout Layout
	// fallback is what NULL, a zero date or the like gives in a column that must have a value and has no default.
	fallback Value
	null     Value // what a NULL gives in the end
	// parse reads a default's text as Debezium reads it; nil for types without defaults. Nil means none, an error that
	// the text is no value of the type: Debezium leaves such a default out, too, unless conversions must not fail.
	parse  func(text string) (*Value, error)
	binary bool // BINARY, VARBINARY or BLOB
	wrap   func(Decoder) Decoder
}

func (m *mapping) decoder() Decoder {
	decode := m.decode(m.null)
	if m.wrap != nil {
		decode = m.wrap(decode)
	}
	return decode
}

func (m *mapper) column() (*mapping, error) {
	mapped, err := m.converted()
	if err != nil {
		return nil, err
	}
	if err := m.alter(&mapped); err != nil {
		return nil, err
	}
	mapped.typ.Optional = m.optional || mapped.typ.Name == geometryName // Debezium says so of it whatever the column is
	def := m.c.Def
	if def != nil && m.Comments && (def.Comment != "" || def.BlankComment) {
		mapped.typ.Doc, mapped.typ.BlankDoc = def.Comment, def.BlankComment
	}
	mapped.null = mapped.fallback
	if def != nil && def.Default != nil && mapped.parse != nil {
		v, err := mapped.parse(*def.Default)
		switch {
		case err == nil:
		case m.Failure == FailureFail:
			return nil, fmt.Errorf("its default %q cannot be converted (%w), and event.converting.failure.handling.mode is fail",
				*def.Default, err)
		default:
			m.invalid.isDefault(*def.Default, err)
		}
		if v != nil {
			mapped.typ.Default, mapped.null = v, *v
		}
	}
	if m.optional {
		mapped.null = Value{}
	}
	return &mapped, nil
}

// typ maps the column by its type.
func (m *mapper) typ() (mapping, error) {
	c := m.c
	if mapped, ok, err := m.mariaDB(); ok || err != nil {
		return mapped, err
	}
	switch c.Type {
	case typeTiny:
		if isBool(c.Def) {
			return mapBool(), nil
		}
		return mapInt("int16", 1, c.Unsigned), nil
	case typeShort:
		if c.Unsigned {
			return mapInt("int32", 2, true), nil
		}
		return mapInt("int16", 2, false), nil
	case typeInt24:
		return mapInt("int32", 3, c.Unsigned), nil
	case typeLong:
		if c.Unsigned {
			return mapInt("int64", 4, true), nil
		}
		return mapInt("int32", 4, false), nil
	case typeLonglong:
		if c.Unsigned && m.UnsignedBigint == UnsignedPrecise {
			return mapUnsignedBigint(), nil
		}
		return mapInt("int64", 8, c.Unsigned), nil
	case typeFloat:
		return mapFloat(c.Def), nil
	case typeDouble:
		return mapDouble(), nil
	case typeNewDecimal:
		return mapDecimal(int(c.Meta>>8), int(c.Meta&0xff), m.Decimal)
	case typeBit:
		return mapBit(int(c.Meta>>8)*8 + int(c.Meta&0xff))
	case typeYear:
		return mapYear(), nil
	case typeDate, typeNewDate:
		return m.mapDate(), nil
	case typeTime, typeTime2:
		return m.mapTime()
	case typeDatetime, typeDatetime2:
		return m.mapDatetime()
	case typeTimestamp, typeTimestamp2:
		return m.mapTimestamp()
	case typeVarchar, typeVarString, typeString, typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob:
		return m.mapText()
	case typeEnum:
		return mapEnum(c), nil
	case typeSet:
		return mapSet(c), nil
	case typeJSON:
		return mapJSON(), nil
	case typeGeometry:
		return mapGeometry(c), nil
	case typeVector:
		return mapVector(), nil
	case typeDecimal:
		return mapping{}, fmt.Errorf("DECIMAL of a MySQL before 5.0 is not supported; ALTER TABLE … FORCE rewrites the table")
	}
	return mapping{}, fmt.Errorf("MySQL's type code %d is not supported", c.Type)
}

func isBool(def *ColumnDef) bool {
	return def != nil && (strings.EqualFold(def.Type, "BOOL") || strings.EqualFold(def.Type, "BOOLEAN"))
}

func wrongSize(what string, got, want int) error {
	return fmt.Errorf("%s of %d bytes, want %d", what, got, want)
}

func mapJSON() mapping {
	return mapping{
		typ:      Type{Type: "string", Name: jsonName, Version: 1},
		fallback: Value{Kind: String, Bytes: []byte("{}")},
		layout:   Layout{Kind: LayoutJSON},
		parse:    textDefault,
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				// The server has no bytes for the JSON null that it puts into old rows when a NOT NULL column is added.
				if len(cell) == 0 {
					*out = null
					return nil
				}
				start := len(scratch.buf)
				buf, err := appendJSON(scratch.buf, cell)
				scratch.buf = buf
				if err != nil {
					return err
				}
				*out = Value{Kind: String, Bytes: scratch.since(start)}
				return nil
			}
		},
	}
}
