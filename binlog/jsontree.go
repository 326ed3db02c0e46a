package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The types of values in MySQL's binary JSON (sql-common/json_binary.h of MySQL's sources).
const (
	jsonSmallObject = 0
	jsonLargeObject = 1
	jsonSmallArray  = 2
	jsonLargeArray  = 3
	jsonLiteral     = 4
	jsonInt16       = 5
	jsonUint16      = 6
	jsonInt32       = 7
	jsonUint32      = 8
	jsonInt64       = 9
	jsonUint64      = 10
	jsonDouble      = 11
	jsonString      = 12
	jsonOpaque      = 15
)

// maxJSONDepth is the server's own limit.
const maxJSONDepth = 100

var errJSON = errors.New("the JSON document is damaged")

// jsonNode is a value of a binary JSON document. Containers are opened when a path leads into them; what stays shut is
// copied as it is, since the offsets in a container count from its own beginning.
type jsonNode struct {
	kind    byte
	raw     []byte // the value without its type; of a container that is open: nothing
	open    bool
	members []jsonMember
	size    int // of an open one, by measure
}

type jsonMember struct {
	key   string // of objects
	value *jsonNode
}

func (n *jsonNode) isObject() bool { return n.kind == jsonSmallObject || n.kind == jsonLargeObject }
func (n *jsonNode) isArray() bool  { return n.kind == jsonSmallArray || n.kind == jsonLargeArray }

// parseJSON reads a document: a type and its value.
func parseJSON(doc []byte) (*jsonNode, error) {
	if len(doc) == 0 {
		return nil, errJSON
	}
	return jsonValue(doc[0], doc[1:])
}

// jsonValue is the value of a type that begins with data.
func jsonValue(kind byte, data []byte) (*jsonNode, error) {
	size := 0
	switch kind {
	case jsonSmallObject, jsonSmallArray, jsonLargeObject, jsonLargeArray:
		width := jsonWidth(kind)
		if len(data) < 2*width {
			return nil, errJSON
		}
		if size = int(fixedInt(data[width : 2*width])); size < 2*width {
			return nil, errJSON
		}
	case jsonLiteral:
		size = 1
	case jsonInt16, jsonUint16:
		size = 2
	case jsonInt32, jsonUint32:
		size = 4
	case jsonInt64, jsonUint64, jsonDouble:
		size = 8
	case jsonString, jsonOpaque:
		head := 0
		if kind == jsonOpaque { // MySQL's type of it
			head = 1
		}
		if len(data) < head {
			return nil, errJSON
		}
		n, used := jsonLength(data[head:])
		if used == 0 {
			return nil, errJSON
		}
		size = head + used + n
	default:
		return nil, fmt.Errorf("%w: there is no type %d", errJSON, kind)
	}
	if size > len(data) {
		return nil, errJSON
	}
	return &jsonNode{kind: kind, raw: data[:size:size]}, nil
}

// jsonWidth is the size of offsets and counts in a container.
func jsonWidth(kind byte) int {
	if kind == jsonLargeObject || kind == jsonLargeArray {
		return 4
	}
	return 2
}

// jsonLength reads a length of seven bits a byte and says how many bytes it has; 0: it is not whole.
func jsonLength(b []byte) (n, used int) {
	for i := 0; i < 5 && i < len(b); i++ {
		n |= int(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			return n, i + 1
		}
	}
	return 0, 0
}

// jsonInline says whether a value of a type stands in its entry of the container.
func jsonInline(kind byte, width int) bool {
	switch kind {
	case jsonLiteral, jsonInt16, jsonUint16:
		return true
	case jsonInt32, jsonUint32:
		return width == 4
	}
	return false
}

// unfold reads a container's members.
func (n *jsonNode) unfold() error {
	if n.open || !n.isObject() && !n.isArray() {
		return nil
	}
	width, object := jsonWidth(n.kind), n.isObject()
	data := n.raw
	count := int(fixedInt(data[:width]))
	values := 2 * width
	if object {
		values += count * (width + 2)
	}
	head := values + count*(1+width)
	if head > len(data) {
		return errJSON
	}
	// What MySQL writes has each byte once. Without the limit a damaged document could have the same bytes again and again,
	// and grow without end.
	budget := len(data) - head
	n.members = make([]jsonMember, count)
	for i := range n.members {
		if object {
			entry := data[2*width+i*(width+2):]
			at, size := int(fixedInt(entry[:width])), int(binary.LittleEndian.Uint16(entry[width:]))
			if at > len(data) || size > len(data)-at {
				return errJSON
			}
			n.members[i].key = string(data[at : at+size])
			budget -= size
		}
		entry := data[values+i*(1+width):][:1+width]
		kind, value := entry[0], entry[1:]
		if !jsonInline(kind, width) {
			at := int(fixedInt(value))
			if at < head || at > len(data) {
				return errJSON
			}
			value = data[at:]
		}
		v, err := jsonValue(kind, value)
		if err != nil {
			return err
		}
		if !jsonInline(kind, width) {
			budget -= len(v.raw)
		}
		if budget < 0 {
			return errJSON
		}
		n.members[i].value = v
	}
	n.open, n.raw = true, nil
	return nil
}

// find opens a container and looks for the member that a leg names; -1: there is none.
func (n *jsonNode) find(leg jsonLeg) (int, error) {
	if err := n.unfold(); err != nil {
		return -1, err
	}
	switch {
	case leg.array && n.isArray():
		return leg.index(len(n.members), false), nil
	case !leg.array && n.isObject():
		for i := range n.members {
			if n.members[i].key == leg.name {
				return i, nil
			}
		}
	}
	return -1, nil
}

// place is where a new key belongs: keys are in the order of their lengths, those of one length in that of their bytes.
func (n *jsonNode) place(key string) int {
	for i := range n.members {
		if k := n.members[i].key; len(k) > len(key) || len(k) == len(key) && k > key {
			return i
		}
	}
	return len(n.members)
}

func (n *jsonNode) insert(at int, m jsonMember) {
	n.members = append(n.members, jsonMember{})
	copy(n.members[at+1:], n.members[at:])
	n.members[at] = m
}

// appendDocument writes the value as a document of its own.
func (n *jsonNode) appendDocument(dst []byte) ([]byte, error) {
	if err := n.measure(); err != nil {
		return dst, err
	}
	return n.append(append(dst, n.kind)), nil
}

// measure finds the size of a container that is open, and whether it has the small form.
func (n *jsonNode) measure() error {
	if !n.open {
		n.size = len(n.raw)
		return nil
	}
	const mostSmall, mostLarge = 0xffff, 0xffff_ffff
	keys := 0
	for i := range n.members {
		m := &n.members[i]
		if err := m.value.measure(); err != nil {
			return err
		}
		if len(m.key) > mostSmall {
			return errJSONDiff
		}
		keys += len(m.key)
	}
	object := n.isObject()
	for _, kind := range [2]byte{jsonSmallArray, jsonLargeArray} {
		width, most := jsonWidth(kind), mostLarge
		if width == 2 {
			most = mostSmall
		}
		size := 2*width + keys + len(n.members)*(1+width)
		if object {
			size += len(n.members) * (width + 2)
			kind -= jsonSmallArray - jsonSmallObject
		}
		for _, m := range n.members {
			if !jsonInline(m.value.kind, width) {
				size += m.value.size
			}
		}
		if n.kind, n.size = kind, size; size <= most {
			return nil
		}
	}
	return errJSONDiff
}

// append writes the value behind its type. measure has been called.
func (n *jsonNode) append(dst []byte) []byte {
	if !n.open {
		return append(dst, n.raw...)
	}
	width := jsonWidth(n.kind)
	number := func(v int) {
		for range width {
			dst = append(dst, byte(v))
			v >>= 8
		}
	}
	number(len(n.members))
	number(n.size)
	at := 2*width + len(n.members)*(1+width)
	if n.isObject() {
		at += len(n.members) * (width + 2)
		for _, m := range n.members {
			number(at)
			dst = binary.LittleEndian.AppendUint16(dst, uint16(len(m.key)))
			at += len(m.key)
		}
	}
	for _, m := range n.members {
		v := m.value
		dst = append(dst, v.kind)
		if !jsonInline(v.kind, width) {
			number(at)
			at += v.size
			continue
		}
		// Narrower numbers are widened with their sign.
		n := int64(fixedInt(v.raw))
		if v.kind == jsonInt16 {
			n = int64(int16(n))
		}
		number(int(n))
	}
	for _, m := range n.members {
		dst = append(dst, m.key...)
	}
	for _, m := range n.members {
		if !jsonInline(m.value.kind, width) {
			dst = m.value.append(dst)
		}
	}
	return dst
}
