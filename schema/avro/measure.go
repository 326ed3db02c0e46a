package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// maxDepth is how deep values may be in each other. Connect's schemas are trees, some five deep; one that contains
// itself could go on for ever.
const maxDepth = 1000

var errShort = errors.New("the bytes end too early")

// measure finds where a value of the type ends, and that it is one, so that what decodes it need not fear counts and
// lengths that are not true. It returns the bytes behind it.
func measure(n *node, data []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values are more than %d deep in each other", maxDepth)
	}
	size := int64(0)
	switch n.kind {
	case kindNull:
	case kindBoolean:
		if len(data) > 0 && data[0] > 1 {
			return nil, fmt.Errorf("a boolean is %d", data[0])
		}
		size = 1
	case kindInt, kindLong, kindEnum:
		v, rest, err := number(data)
		switch {
		case err != nil:
			return nil, err
		case n.kind == kindInt && (v < math.MinInt32 || v > math.MaxInt32):
			return nil, fmt.Errorf("an int is %d", v)
		case n.kind == kindEnum && (v < 0 || v >= int64(len(n.symbols))):
			return nil, fmt.Errorf("an enum of %d symbols has symbol %d", len(n.symbols), v)
		}
		return rest, nil
	case kindFloat:
		size = 4
	case kindDouble:
		size = 8
	case kindFixed:
		size = n.size
	case kindBytes, kindString:
		var err error
		if size, data, err = number(data); err != nil {
			return nil, err
		}
		if size < 0 {
			return nil, fmt.Errorf("%s of length %d", n.kind, size)
		}
	case kindUnion:
		i, rest, err := number(data)
		if err != nil {
			return nil, err
		}
		if i < 0 || i >= int64(len(n.branches)) {
			return nil, fmt.Errorf("a union of %d branches has branch %d", len(n.branches), i)
		}
		return measure(n.branches[i], rest, depth+1)
	case kindRecord:
		for i := range n.fields {
			var err error
			if data, err = measure(n.fields[i].typ, data, depth+1); err != nil {
				return nil, fmt.Errorf("%s: %w", n.fields[i].name, err)
			}
		}
	case kindArray, kindMap:
		return measureBlocks(n, data, depth)
	}
	if size > int64(len(data)) {
		return nil, errShort
	}
	return data[size:], nil
}

// measureBlocks is measure for arrays and maps.
func measureBlocks(n *node, data []byte, depth int) ([]byte, error) {
	key := node{kind: kindString}
	for {
		count, rest, err := number(data)
		if err != nil {
			return nil, err
		}
		data = rest
		if count == 0 {
			return data, nil
		}
		if count < 0 { // the size of the block is behind it
			if _, data, err = number(data); err != nil {
				return nil, err
			}
			count = -count
		}
		// Items without bytes are none that anybody has, and could be as many as there is no memory for.
		if count < 0 || count > int64(len(data)) {
			return nil, fmt.Errorf("%d items in %d bytes", uint64(count), len(data))
		}
		for range count {
			if n.kind == kindMap {
				if data, err = measure(&key, data, depth+1); err != nil {
					return nil, err
				}
			}
			if data, err = measure(n.items, data, depth+1); err != nil {
				return nil, err
			}
		}
	}
}

// number reads a long.
func number(data []byte) (int64, []byte, error) {
	v, n := binary.Varint(data)
	switch {
	case n == 0:
		return 0, nil, errShort
	case n < 0:
		return 0, nil, errors.New("a number of more than 64 bits")
	}
	return v, data[n:], nil
}
