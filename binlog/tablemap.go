package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"

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

// parseTableMap reads what follows the names in a TABLE_MAP. It returns the table, which fields of optional metadata there
// are, and how many bytes come before them.
func parseTableMap(database, name string, b []byte) (t *schema.Table, has metadata, shape int, err error) {
	size := len(b)
	t = &schema.Table{Database: database, Name: name}
	n, b, ok := lenenc(b)
	if !ok || n == 0 || n > uint64(len(b)) {
		return nil, 0, 0, errTableMap
	}
	types, b := b[:n], b[n:]
	t.Columns = make([]schema.Column, n)
	metaLen, b, ok := lenenc(b)
	if !ok || metaLen > uint64(len(b)) {
		return nil, 0, 0, errTableMap
	}
	meta, b := b[:metaLen], b[metaLen:]
	for i, typ := range types {
		c := &t.Columns[i]
		c.Type = typ
		width := metaSize(typ)
		if len(meta) < width {
			return nil, 0, 0, errTableMap
		}
		switch {
		case width == 1:
			c.Meta = uint16(meta[0])
		case width == 2 && (typ == typeString || typ == typeNewDecimal || typ == typeEnum || typ == typeSet):
			c.Meta = binary.BigEndian.Uint16(meta)
			if real := meta[0]; typ == typeString && (real == typeEnum || real == typeSet) {
				c.Type = real
			}
		case width == 2:
			c.Meta = binary.LittleEndian.Uint16(meta)
		}
		meta = meta[width:]
	}
	nulls := (len(types) + 7) / 8
	if len(b) < nulls {
		return nil, 0, 0, errTableMap
	}
	for i := range t.Columns {
		t.Columns[i].Nullable = b[i>>3]&(1<<(i&7)) != 0
	}
	has, err = parseMetadata(t, b[nulls:])
	return t, has, size - len(b) + nulls, err
}

// metaSize is how many bytes of metadata a column type has in TABLE_MAP.
func metaSize(typ uint8) int {
	switch typ {
	case typeFloat, typeDouble, typeTinyBlob, typeMediumBlob, typeLongBlob, typeBlob, typeBlobPacked, typeGeometry, typeJSON,
		typeVector, typeTime2, typeDatetime2, typeTimestamp2:
		return 1
	case typeVarchar, typeCharPacked, typeBit, typeNewDecimal, typeEnum, typeSet, typeVarString, typeString:
		return 2
	}
	return 0
}

// parseMetadata reads the optional metadata: fields of type, length, value. It returns which there are.
func parseMetadata(t *schema.Table, b []byte) (metadata, error) {
	var labels [2][][][]byte // of SET and ENUM columns
	var has metadata
	for len(b) > 0 {
		field := b[0]
		n, rest, ok := lenenc(b[1:])
		if !ok || n > uint64(len(rest)) {
			return has, errTableMap
		}
		v := rest[:n]
		b = rest[n:]
		if field <= metaVisibility {
			has |= 1 << field
		}
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
			ok = columnNames(t, v)
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
			return has, errTableMap
		}
	}
	if !has.has(metaColumnName) {
		return has, nil
	}
	return has, decodeLabels(t, labels)
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
	case typeString, typeVarString, typeVarchar, typeBlob, typeVector, typeBlobPacked, typeCharPacked:
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
