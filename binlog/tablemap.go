package binlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Fields of TABLE_MAP's optional metadata (binlog_row_metadata).
const (
	metaSignedness     = 1
	metaDefaultCharset = 2
	metaColumnCharset  = 3
	metaColumnName     = 4
	metaSetLabels      = 5
	metaEnumLabels     = 6
	metaGeometryType   = 7
	metaSimpleKey      = 8
	metaPrefixKey      = 9
	metaEnumSetDefault = 10
	metaEnumSetCharset = 11
	metaVisibility     = 12
)

// errTableMap is the cause of everything in a TABLE_MAP that runs over its end or contradicts itself.
var errTableMap = errors.New("the TABLE_MAP event is damaged")

// errMetadata is a TABLE_MAP without column names.
var errMetadata = errors.New("the binlog has no column names, as binlog_row_metadata was MINIMAL when this was written: " +
	"SET PERSIST binlog_row_metadata=FULL, and start behind what was written without it " + howToStart)

// version is one version of a table as TABLE_MAPs describe it, compiled.
type version struct {
	raw      []byte // the TABLE_MAP's body behind table id and flags; equal bytes mean the same version
	database string
	name     string
	captured bool
	def      *schema.Definition // what table was attached to
	table    *schema.Table      // nil when not captured
	cells    []cell
	err      error // why rows of it cannot be read; reported when there are any
}

// tables keeps the newest version of every table, and the table ids of the open statement.
type tables struct {
	captured func(database, table string) bool
	defs     Definitions
	log      *zap.Logger

	newest map[string]*version // by the bytes `length db 0 length table 0` of the TABLE_MAP
	open   []openTable         // ids mapped since the last end of a statement: few, so a list
}

type openTable struct {
	id uint64
	v  *version
}

// forget drops the ids of the open statement.
func (t *tables) forget() { t.open = t.open[:0] }

// lookup finds the version that a table id stands for in the open statement.
func (t *tables) lookup(id uint64) *version {
	for i := len(t.open) - 1; i >= 0; i-- {
		if t.open[i].id == id {
			return t.open[i].v
		}
	}
	return nil
}

// add takes in the TABLE_MAP at a position: its table id, and the body behind id and flags. It asks Definitions when the version is
// new, and errs only when that does or when the table cannot even be named.
func (t *tables) add(ctx context.Context, id uint64, body []byte, file string, pos int64) error {
	names, err := namesLength(body)
	if err != nil {
		return err
	}
	prev := t.newest[string(body[:names])]
	if prev != nil && bytes.Equal(prev.raw, body) && !t.redefined(prev) {
		t.open = append(t.open, openTable{id, prev})
		return nil
	}
	v, err := t.version(ctx, bytes.Clone(body), prev, at(file, pos))
	if err != nil {
		return err
	}
	if t.newest == nil {
		t.newest = make(map[string]*version)
	}
	t.newest[string(body[:names])] = v
	t.open = append(t.open, openTable{id, v})
	return nil
}

// redefined says that the definitions follow the stream and have come to another one since v was made.
func (t *tables) redefined(v *version) bool {
	if !v.captured {
		return false
	}
	_, follows := t.defs.(follower)
	return follows && t.defs.Definition(v.database, v.name) != v.def
}

// anyOf says whether a captured table of a database is known: one that has come by, or that has a definition.
func (t *tables) anyOf(database string) bool {
	for _, v := range t.newest {
		if v.captured && strings.EqualFold(v.database, database) {
			return true
		}
	}
	if _, none := t.defs.(noDefinitions); none {
		return false
	}
	known, ok := t.defs.(lister)
	if !ok {
		return true // nobody says that there is none
	}
	for _, name := range known.Tables(database) {
		if t.captured(database, name) {
			return true
		}
	}
	return false
}

// version makes a new version of a table.
func (t *tables) version(ctx context.Context, raw []byte, prev *version, where string) (*version, error) {
	v := &version{raw: raw}
	database, name, rest, err := splitNames(raw)
	if err != nil {
		return nil, err
	}
	v.database, v.name = string(database), string(name)
	if prev != nil {
		v.captured = prev.captured
	} else {
		v.captured = t.captured(v.database, v.name)
	}
	if !v.captured {
		return v, nil
	}
	if v.table, v.err = parseTableMap(v.database, v.name, rest); v.err != nil {
		return v, nil
	}
	if v.cells, v.err = compileCells(v.table); v.err != nil {
		return v, nil
	}
	if _, none := t.defs.(noDefinitions); none {
		schema.Attach(v.table, nil, nil) // what it warns of is no surprise
		return v, nil
	}
	var before *schema.Table
	if prev != nil {
		before = prev.table
	}
	v.def = t.defs.Definition(v.database, v.name)
	if v.def == nil || !sameNames(v.table, v.def) || before != nil && !bytes.Equal(prev.raw, raw) {
		if v.def, err = t.defs.Refresh(ctx, v.database, v.name); err != nil {
			return nil, fmt.Errorf("table %s.%s: its definition could not be read: %w", v.database, v.name, err)
		}
	}
	for _, w := range schema.Attach(v.table, v.def, before) {
		t.log.Warn("table definition", zap.String("table", v.database+"."+v.name), zap.String("at", where), zap.String("what", w))
	}
	return v, nil
}

// sameNames says whether the definition has the table's columns in their order.
func sameNames(t *schema.Table, def *schema.Definition) bool {
	if len(def.Columns) != len(t.Columns) {
		return false
	}
	for i := range def.Columns {
		if def.Columns[i].Name != t.Columns[i].Name {
			return false
		}
	}
	return true
}

// namesLength is the length of `length db 0 length table 0` at the beginning of body.
func namesLength(body []byte) (int, error) {
	if len(body) < 1 {
		return 0, errTableMap
	}
	n := 1 + int(body[0]) + 1
	if len(body) < n+1 {
		return 0, errTableMap
	}
	n += 1 + int(body[n]) + 1
	if len(body) < n {
		return 0, errTableMap
	}
	return n, nil
}

func splitNames(body []byte) (database, table, rest []byte, err error) {
	n, err := namesLength(body)
	if err != nil {
		return nil, nil, nil, err
	}
	d := int(body[0])
	return body[1 : 1+d], body[1+d+2 : n-1], body[n:], nil
}

// parseTableMap reads what follows the names in a TABLE_MAP.
func parseTableMap(database, name string, b []byte) (*schema.Table, error) {
	t := &schema.Table{Database: database, Name: name}
	n, b, ok := lenenc(b)
	if !ok || n == 0 || n > uint64(len(b)) {
		return nil, errTableMap
	}
	types, b := b[:n], b[n:]
	t.Columns = make([]schema.Column, n)
	metaLen, b, ok := lenenc(b)
	if !ok || metaLen > uint64(len(b)) {
		return nil, errTableMap
	}
	meta, b := b[:metaLen], b[metaLen:]
	for i, typ := range types {
		c := &t.Columns[i]
		c.Type = typ
		size := metaSize(typ)
		if len(meta) < size {
			return nil, errTableMap
		}
		switch {
		case size == 1:
			c.Meta = uint16(meta[0])
		case size == 2 && (typ == typeString || typ == typeNewDecimal || typ == typeEnum || typ == typeSet):
			c.Meta = binary.BigEndian.Uint16(meta)
			if real := meta[0]; typ == typeString && (real == typeEnum || real == typeSet) {
				c.Type = real
			}
		case size == 2:
			c.Meta = binary.LittleEndian.Uint16(meta)
		}
		meta = meta[size:]
	}
	nulls := (len(types) + 7) / 8
	if len(b) < nulls {
		return nil, errTableMap
	}
	for i := range t.Columns {
		t.Columns[i].Nullable = b[i>>3]&(1<<(i&7)) != 0
	}
	return t, parseMetadata(t, b[nulls:])
}

// metaSize is how many bytes of metadata a column type has in TABLE_MAP.
func metaSize(typ uint8) int {
	switch typ {
	case typeFloat, typeDouble, typeTinyBlob, typeMediumBlob, typeLongBlob, typeBlob, typeGeometry, typeJSON, typeVector,
		typeTime2, typeDatetime2, typeTimestamp2:
		return 1
	case typeVarchar, typeBit, typeNewDecimal, typeEnum, typeSet, typeVarString, typeString:
		return 2
	}
	return 0
}

// parseMetadata reads the optional metadata: fields of type, length, value.
func parseMetadata(t *schema.Table, b []byte) error {
	var labels [2][][][]byte // of SET and ENUM columns
	named := false
	for len(b) > 0 {
		field := b[0]
		n, rest, ok := lenenc(b[1:])
		if !ok || n > uint64(len(rest)) {
			return errTableMap
		}
		v := rest[:n]
		b = rest[n:]
		switch field {
		case metaSignedness:
			ok = eachBit(t, v, isNumeric, func(c *schema.Column, set bool) { c.Unsigned = set })
		case metaDefaultCharset:
			ok = defaultCharset(t, v, isCharacter)
		case metaColumnCharset:
			ok = columnCharset(t, v, isCharacter)
		case metaEnumSetDefault:
			ok = defaultCharset(t, v, isEnumOrSet)
		case metaEnumSetCharset:
			ok = columnCharset(t, v, isEnumOrSet)
		case metaColumnName:
			named, ok = true, columnNames(t, v)
		case metaSetLabels:
			labels[0], ok = labelLists(v)
		case metaEnumLabels:
			labels[1], ok = labelLists(v)
		case metaGeometryType:
			ok = eachInt(t, v, isGeometry, func(c *schema.Column, n uint64) { c.Geometry = uint8(n) })
		case metaSimpleKey:
			t.Key, ok = keyColumns(t, v, false)
		case metaPrefixKey:
			t.Key, ok = keyColumns(t, v, true)
		case metaVisibility:
			ok = eachBit(t, v, func(*schema.Column) bool { return true }, func(c *schema.Column, set bool) { c.Invisible = !set })
		}
		if !ok {
			return errTableMap
		}
	}
	if !named {
		return errMetadata
	}
	return decodeLabels(t, labels)
}

// decodeLabels hands the lists out to the SET and ENUM columns in order; their charsets are known only now.
func decodeLabels(t *schema.Table, lists [2][][][]byte) error {
	for i := range t.Columns {
		c := &t.Columns[i]
		if !isEnumOrSet(c) {
			continue
		}
		kind := 0
		if c.Type == typeEnum {
			kind = 1
		}
		if len(lists[kind]) == 0 {
			return fmt.Errorf("column %s: %w: it has no labels", c.Name, errTableMap)
		}
		c.Labels = make([]string, 0, len(lists[kind][0]))
		for _, l := range lists[kind][0] {
			text, err := schema.DecodeText(c.Collation, l)
			if err != nil {
				return fmt.Errorf("column %s: label: %w", c.Name, err)
			}
			c.Labels = append(c.Labels, text)
		}
		lists[kind] = lists[kind][1:]
	}
	return nil
}

func isNumeric(c *schema.Column) bool {
	switch c.Type {
	case 0, typeTiny, typeShort, typeInt24, typeLong, typeLongLong, typeFloat, typeDouble, typeNewDecimal, typeYear:
		return true
	}
	return false
}

// isCharacter says which columns the lists of character sets count: VECTOR is a BLOB to the server.
func isCharacter(c *schema.Column) bool {
	switch c.Type {
	case typeString, typeVarString, typeVarchar, typeBlob, typeVector:
		return true
	}
	return false
}

func isEnumOrSet(c *schema.Column) bool { return c.Type == typeEnum || c.Type == typeSet }

func isGeometry(c *schema.Column) bool { return c.Type == typeGeometry }

// eachBit hands out the bits of v, the highest of each byte first, to the columns of a kind.
func eachBit(t *schema.Table, v []byte, of func(*schema.Column) bool, set func(*schema.Column, bool)) bool {
	n := 0
	for i := range t.Columns {
		c := &t.Columns[i]
		if !of(c) {
			continue
		}
		if n>>3 >= len(v) {
			return false
		}
		set(c, v[n>>3]&(0x80>>(n&7)) != 0)
		n++
	}
	return true
}

// eachInt hands out a list of numbers to the columns of a kind.
func eachInt(t *schema.Table, v []byte, of func(*schema.Column) bool, set func(*schema.Column, uint64)) bool {
	for i := range t.Columns {
		c := &t.Columns[i]
		if !of(c) {
			continue
		}
		n, rest, ok := lenenc(v)
		if !ok {
			return false
		}
		v = rest
		set(c, n)
	}
	return len(v) == 0
}

func columnCharset(t *schema.Table, v []byte, of func(*schema.Column) bool) bool {
	return eachInt(t, v, of, func(c *schema.Column, n uint64) { c.Collation = uint32(n) })
}

// defaultCharset reads a default collation, and pairs of a column's number within its kind and its collation.
func defaultCharset(t *schema.Table, v []byte, of func(*schema.Column) bool) bool {
	def, v, ok := lenenc(v)
	if !ok {
		return false
	}
	others := make(map[uint64]uint64)
	for len(v) > 0 {
		var i, n uint64
		if i, v, ok = lenenc(v); !ok {
			return false
		}
		if n, v, ok = lenenc(v); !ok {
			return false
		}
		others[i] = n
	}
	k := uint64(0)
	for i := range t.Columns {
		c := &t.Columns[i]
		if !of(c) {
			continue
		}
		c.Collation = uint32(def)
		if n, ok := others[k]; ok {
			c.Collation = uint32(n)
		}
		k++
	}
	return true
}

func columnNames(t *schema.Table, v []byte) bool {
	for i := range t.Columns {
		name, rest, ok := lenencBytes(v)
		if !ok {
			return false
		}
		t.Columns[i].Name = string(name)
		v = rest
	}
	return len(v) == 0
}

// labelLists reads the labels of all columns of a kind.
func labelLists(v []byte) ([][][]byte, bool) {
	var lists [][][]byte
	for len(v) > 0 {
		n, rest, ok := lenenc(v)
		if !ok || n > uint64(len(rest)) {
			return nil, false
		}
		v = rest
		list := make([][]byte, n)
		for i := range list {
			if list[i], v, ok = lenencBytes(v); !ok {
				return nil, false
			}
		}
		lists = append(lists, list)
	}
	return lists, true
}

func keyColumns(t *schema.Table, v []byte, prefixes bool) ([]int, bool) {
	var key []int
	for len(v) > 0 {
		i, rest, ok := lenenc(v)
		if ok && prefixes { // the record key has whole columns, so the length of the prefix does not count
			_, rest, ok = lenenc(rest)
		}
		if !ok || i >= uint64(len(t.Columns)) {
			return nil, false
		}
		key = append(key, int(i))
		v = rest
	}
	return key, true
}

// lenenc reads a length-encoded integer and returns what follows it.
func lenenc(b []byte) (n uint64, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	size := 0
	switch b[0] {
	case 0xfb, 0xff:
		return 0, nil, false
	case 0xfc:
		size = 2
	case 0xfd:
		size = 3
	case 0xfe:
		size = 8
	default:
		return uint64(b[0]), b[1:], true
	}
	if len(b) < 1+size {
		return 0, nil, false
	}
	return fixedInt(b[1 : 1+size]), b[1+size:], true
}

// lenencBytes reads a length-encoded string and returns what follows it.
func lenencBytes(b []byte) (s, rest []byte, ok bool) {
	n, b, ok := lenenc(b)
	if !ok || n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// fixedInt reads up to eight bytes, little-endian.
func fixedInt(b []byte) uint64 {
	var n uint64
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n
}
