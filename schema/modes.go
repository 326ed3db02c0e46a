package schema

import "sync/atomic"

// Modes are the connector's handling modes; the zero value is Debezium's defaults. They are not changed once a column was
// mapped with them. Columns of record keys are mapped with [Modes.Key].
type Modes struct {
	Decimal        DecimalMode  // decimal.handling.mode
	Time           TimeMode     // time.precision.mode
	UnsignedBigint UnsignedMode // bigint.unsigned.handling.mode
	Binary         BinaryMode   // binary.handling.mode
	Failure        FailureMode  // event.converting.failure.handling.mode

	NoTimeAdjuster bool // enable.time.adjuster=false
	Comments       bool // include.schema.comments

	// SourceColumn and SourceType say which columns carry their source type as parameters: by
	// column.propagate.source.type and by datatype.propagate.source.type. Nil: none.
	SourceColumn func(database, table, column string) bool
	SourceType   func(database, table, column, typeName string) bool

	// Masks are column.mask.* and column.truncate.*. Of those that match a column one counts, as in Debezium: truncation
	// before asterisks before hashes, and of one kind the first.
	Masks      []Mask
	Converters []Converter // converters: the first that takes a column maps it

	// Invalid is told of a value that MySQL holds and the type cannot, such as 2021-02-31, or of a default that cannot be
	// converted: once for each mapped column and table ([Scratch.Of]). It may be called by whoever calls a decoder. Nil: nobody is told.
	Invalid func(database, table, column, what string)
	// InvalidValues counts all such values. Nil: they are not counted.
	InvalidValues *atomic.Int64
}

// Key gives the modes for the columns of a record key, which Debezium neither masks nor cuts, and to which it adds no
// source types.
func (m Modes) Key() Modes {
	m.Masks, m.SourceColumn, m.SourceType = nil, nil, nil
	return m
}

// AppendChoices appends what the functions in m say of the columns of a table. Two tables whose columns are equal are mapped
// alike if it is the same for both.
func (m *Modes) AppendChoices(dst []byte, t *Table) []byte {
	if m.SourceColumn == nil && m.SourceType == nil && len(m.Masks) == 0 && len(m.Converters) == 0 {
		return dst
	}
	for i := range t.Columns {
		c, _ := plainColumn(&t.Columns[i])
		choose := func(match func(database, table, column string) bool) {
			choice := byte('-')
			if match != nil && match(t.Database, t.Name, c.Name) {
				choice = '+'
			}
			dst = append(dst, choice)
		}
		choose(m.SourceColumn)
		if m.SourceType != nil {
			name, _, _ := c.source()
			choose(func(database, table, column string) bool { return m.SourceType(database, table, column, name) })
		}
		for k := range m.Masks {
			choose(m.Masks[k].Match)
		}
		for k := range m.Converters {
			converter := &m.Converters[k]
			choose(converter.Match)
			choose(converter.Boolean)
			choose(converter.Real)
			choose(converter.String)
		}
	}
	return dst
}

// DecimalMode is decimal.handling.mode.
type DecimalMode uint8

// The modes of decimals.
const (
	DecimalPrecise DecimalMode = iota // bytes with the logical type Decimal
	DecimalDouble
	DecimalString
)

// TimeMode is time.precision.mode.
type TimeMode uint8

// The modes of dates and times.
const (
	TimeAdaptive TimeMode = iota // adaptive_time_microseconds
	TimeConnect
	TimeISOString
	TimeMicroseconds
	TimeNanoseconds
)

// UnsignedMode is bigint.unsigned.handling.mode.
type UnsignedMode uint8

// The modes of BIGINT UNSIGNED.
const (
	UnsignedLong    UnsignedMode = iota // int64: values from 2^63 on are negative
	UnsignedPrecise                     // bytes with the logical type Decimal
)

// BinaryMode is binary.handling.mode.
type BinaryMode uint8

// The modes of binary strings.
const (
	BinaryBytes BinaryMode = iota
	BinaryBase64
	BinaryBase64URL
	BinaryHex
)

// FailureMode is event.converting.failure.handling.mode: what happens to a value that cannot be converted.
type FailureMode uint8

// The modes of failed conversions.
const (
	FailureWarn FailureMode = iota // null and a warning
	FailureSkip                    // null
	FailureFail                    // the stream stops
)

// Mask hides or cuts the values of columns.
type Mask struct {
	Match func(database, table, column string) bool
	Kind  MaskKind
	// Length is the number of asterisks of MaskFixed, and of characters that MaskTruncate leaves.
	Length    int
	Algorithm string // of MaskHash, in Java's spelling: "SHA-256"
	Salt      string // of MaskHash
	V2        bool   // of MaskHash: hash.v2
}

// matches says whether the mask is for a column.
func (k *Mask) matches(database, table, column string) bool {
	return k.Match != nil && k.Match(database, table, column)
}

// MaskKind says what a [Mask] does.
type MaskKind uint8

// The kinds of masks.
const (
	MaskFixed MaskKind = iota + 1
	MaskHash
	MaskTruncate
)

// Converter is one of the converters that come with Debezium's connector.
type Converter struct {
	Kind ConverterKind

	// Of TinyIntOneToBooleanConverter: its selector (nil: every column) and length.checker (Debezium's default is true;
	// false: TINYINT of any length).
	Match  func(database, table, column string) bool
	Length bool

	// Of JdbcSinkDataTypesConverter: selector.boolean, selector.real and selector.string (nil: no column), of which the
	// first counts that matches, and treat.real.as.double=false.
	Boolean, Real, String func(database, table, column string) bool
	RealAsFloat           bool
}

// ConverterKind names a [Converter].
type ConverterKind uint8

// The converters.
const (
	TinyIntOneToBoolean ConverterKind = iota + 1
	JDBCSinkDataTypes
)
