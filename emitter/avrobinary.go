package emitter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Avro's binary encoding, as Java's BinaryEncoder writes it: integers zigzag in groups of seven bits, text and bytes
// behind their length, floating-point numbers little-endian, the members of a record one behind the other. What may be
// null is a union of two branches, whose number stands before the value: null is the first, but the second where there
// is a default (io.confluent.connect.avro.AvroData).

const (
	firstBranch  = 0 // the number 0 …
	secondBranch = 2 // … and 1, zigzag
)

// zigzag puts the sign of v into its lowest bit.
func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// longestVarint is how many bytes an integer may have.
const longestVarint = 10

// appendLong appends an int or long.
func appendLong(dst []byte, v int64) []byte {
	if cap(dst)-len(dst) < longestVarint {
		dst = slices.Grow(dst, longestVarint)
	}
	return putVarint(dst, zigzag(v))
}

// putVarint appends u to dst, which has room for the longest varint.
func putVarint(dst []byte, u uint64) []byte {
	n := len(dst)
	return dst[:n+int(putGroups((*[longestVarint]byte)(dst[n:n+longestVarint]), u))]
}

// putGroups writes u in groups of seven bits, all but the last with the bit that says that more follow, and returns how
// many there are.
func putGroups(to *[longestVarint]byte, u uint64) uint64 {
	if u < 1<<7 {
		to[0] = byte(u)
		return 1
	}
	if u < 1<<14 {
		binary.LittleEndian.PutUint16(to[:], uint16(u&0x7f|0x80|u>>7<<8))
		return 2
	}
	return putManyGroups(to, u)
}

// putManyGroups is putGroups for three groups and more.
func putManyGroups(to *[longestVarint]byte, u uint64) uint64 {
	size := manyGroups(u)
	if size > 8 {
		size = 9
		if to[8] = byte(u >> 56); to[8] >= 1<<7 {
			to[9] = 1
			size = 10
		}
	}
	binary.LittleEndian.PutUint64(to[:8], spread(u)|highs&(1<<(8*(size-1))-1))
	return size
}

// manyGroups is how many groups of seven bits a number of three or more has; 9 is 10, too. It comes from comparisons, so that
// the processor, which guesses it right more often than not, need not wait for the groups to go on.
func manyGroups(u uint64) uint64 {
	switch {
	case u < 1<<21:
		return 3
	case u < 1<<28:
		return 4
	case u < 1<<35:
		return 5
	case u < 1<<42:
		return 6
	case u < 1<<49:
		return 7
	case u < 1<<56:
		return 8
	}
	return 9
}

// spread puts the eight low groups of seven bits of u into the bytes of a word.
func spread(u uint64) uint64 {
	w := u&(1<<28-1) | u>>28<<32
	w = w&0x0000_3fff_0000_3fff | w&0x0fff_c000_0fff_c000<<2
	return w&0x007f_007f_007f_007f | w&0x3f80_3f80_3f80_3f80<<1
}

// appendBinary appends text or bytes.
func appendBinary(dst, b []byte) []byte { return append(appendLong(dst, int64(len(b))), b...) }

func appendBinaryFloat(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v)))
}

func appendBinaryDouble(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

// appendBinaryValue appends a value that is not Null, without the branch of a union.
func appendBinaryValue(dst []byte, v *schema.Value) ([]byte, error) {
	switch v.Kind {
	case schema.Bool:
		return append(dst, byte(v.Int)&1), nil
	case schema.Int:
		return appendLong(dst, v.Int), nil
	case schema.Float:
		return appendBinaryFloat(dst, v.Float), nil
	case schema.Double:
		return appendBinaryDouble(dst, v.Float), nil
	case schema.String, schema.Bytes:
		return appendBinary(dst, v.Bytes), nil
	case schema.Point:
		x, y, err := pointXY(v.Bytes)
		if err != nil {
			return dst, err
		}
		dst = appendBinaryDouble(appendBinaryDouble(dst, x), y)
		dst = appendBinary(append(dst, secondBranch), v.Bytes)
		return appendBinarySRID(dst, v.Int), nil
	case schema.Geometry:
		return appendBinarySRID(appendBinary(dst, v.Bytes), v.Int), nil
	case schema.Vector:
		if len(v.Bytes)%4 != 0 {
			return dst, errors.New("a vector whose length is not a multiple of 4 bytes")
		}
		if len(v.Bytes) > 0 { // one block of items
			dst = append(appendLong(dst, int64(len(v.Bytes)/4)), v.Bytes...)
		}
		return append(dst, 0), nil
	}
	return dst, errors.New("no value of a known kind")
}

func appendBinarySRID(dst []byte, srid int64) []byte {
	if srid == schema.NoSRID {
		return append(dst, firstBranch)
	}
	return appendLong(append(dst, secondBranch), javaSRID(srid))
}

// hasDefault says whether a type has a default.
func hasDefault(t *schema.Type) bool { return t.Default != nil && t.Default.Kind != schema.Null }

// branches are the numbers of a union's branches; ok is false for a type that is none.
func branches(t *schema.Type) (value, null byte, ok bool) {
	if hasDefault(t) && t.Type != "struct" {
		return firstBranch, secondBranch, t.Optional
	}
	return secondBranch, firstBranch, t.Optional
}

// appendBinaryMember appends a value that is not Null, with the branch of a union.
func appendBinaryMember(dst []byte, t *schema.Type, v *schema.Value) ([]byte, error) {
	if value, _, ok := branches(t); ok {
		dst = append(dst, value)
	}
	return appendBinaryValue(dst, v)
}

// errNull is for a NULL where the schema allows none.
var errNull = errors.New("there is no value where the schema asks for one: it is neither optional nor has it a default")

// appendBinaryNull appends what a NULL in a column or member of type t is written as.
func (d *dialect) appendBinaryNull(dst []byte, t *schema.Type) ([]byte, error) {
	if d.defaults && hasDefault(t) {
		return appendBinaryMember(dst, t, t.Default)
	}
	_, null, ok := branches(t)
	if !ok {
		return dst, errNull
	}
	return append(dst, null), nil
}

// appendBinaryConstant appends a value, which may be Null, with the branch of a union.
func (d *dialect) appendBinaryConstant(dst []byte, t *schema.Type, v *schema.Value) ([]byte, error) {
	if v.Kind == schema.Null {
		return d.appendBinaryNull(dst, t)
	}
	return appendBinaryMember(dst, t, v)
}

// appendBinaryTree appends a tree of type t that has members.
func (d *dialect) appendBinaryTree(dst []byte, t *schema.Type, v *tree) ([]byte, error) {
	if value, _, ok := branches(t); ok {
		dst = append(dst, value)
	}
	var err error
	if t.Type == "array" {
		if len(v.members) > 0 {
			dst = appendLong(dst, int64(len(v.members)))
		}
		for i := range v.members {
			if dst, err = d.appendTree(dst, t.Items, &v.members[i]); err != nil {
				return dst, err
			}
		}
		return append(dst, 0), nil
	}
	for i := range v.members {
		if dst, err = d.appendTree(dst, t.Fields[i].Type, &v.members[i]); err != nil {
			return dst, fmt.Errorf("%s: %w", t.Fields[i].Name, err)
		}
	}
	return dst, nil
}

// appendBinaryField appends a field of the event or the clock, which may be of an optional type.
func appendBinaryField(dst []byte, f field, optional bool, n *now) []byte {
	switch f {
	case sourceGTID, sourceFile, sourceQuery, sourceDatabase, sourceTable:
		s := n.texts[f]
		if optional {
			if len(s) == 0 && f.nullable() {
				return append(dst, firstBranch)
			}
			dst = append(dst, secondBranch)
		}
		return append(appendLong(dst, int64(len(s))), s...)
	case sourceThread:
		if n.info.Thread < 0 {
			return append(dst, firstBranch)
		}
	}
	if optional {
		dst = append(dst, secondBranch)
	}
	return appendLong(dst, n.number(f))
}
