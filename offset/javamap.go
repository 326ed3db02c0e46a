package offset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Connect's standalone file is one java.util.HashMap<byte[],byte[]> in Java's serialisation:
//
//	aced 0005                                    stream magic, version
//	73 72 0011 "java.util.HashMap" 0507dac1c31660d1
//	   03 0002 46 000a "loadFactor" 49 0009 "threshold" 78 70
//	   3f400000 <int threshold>                  0.75; 3/4 of the capacity, 0 for an empty map
//	   77 08 <int capacity> <int size>           capacity: 16, doubled while 3/4 of it are too few
//	   per entry: key array, value array
//	78
//
//	first array   75 72 0002 "[B" acf317f8060854e0 02 0000 78 70 <int length> <bytes>
//	later arrays  75 71 <int handle of the class, 007e0002> <int length> <bytes>
//	null          70
//	repeated      71 <int handle of the array>
//
// The handles count the class descriptors, the map and the arrays as they come, from 007e0000.

const (
	javaNull      = 0x70
	javaReference = 0x71
	javaArray     = 0x75
	javaBlockData = 0x77
	javaEndBlock  = 0x78

	javaFirstHandle = 0x7e0000
)

const (
	javaMapHead    = "\xac\xed\x00\x05\x73\x72\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\x00\x02F\x00\x0aloadFactorI\x00\x09threshold\x78\x70"
	javaLoadFactor = "\x3f\x40\x00\x00"
	javaBytesClass = "\x72\x00\x02[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\x02\x00\x00\x78\x70"
	javaBytesAgain = "\x71\x00\x7e\x00\x02"
)

// javaEntry is one entry of the map; nil stands for null, an array of no bytes is not nil.
type javaEntry struct{ key, value []byte }

// appendJavaMap appends the stream that Java writes for the entries when it meets them in this order. (Java's own order
// is by identity of the arrays, so arbitrary.)
func appendJavaMap(dst []byte, entries []javaEntry) []byte {
	capacity, threshold := 16, 12
	for len(entries) > threshold {
		capacity, threshold = 2*capacity, 2*threshold
	}
	if len(entries) == 0 {
		threshold = 0
	}
	dst = append(dst, javaMapHead...)
	dst = append(dst, javaLoadFactor...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(threshold))
	dst = append(dst, javaBlockData, 8)
	dst = binary.BigEndian.AppendUint32(dst, uint32(capacity))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(entries)))
	class := javaBytesClass
	array := func(b []byte) {
		if b == nil {
			dst = append(dst, javaNull)
			return
		}
		dst = append(dst, javaArray)
		dst = append(dst, class...)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
		dst = append(dst, b...)
		class = javaBytesAgain
	}
	for _, e := range entries {
		array(e.key)
		array(e.value)
	}
	return append(dst, javaEndBlock)
}

// parseJavaMap reads any stream that Java may write for a HashMap<byte[],byte[]>. The entries alias data. Of two entries
// with equal keys the later one counts, as when Connect loads them.
func parseJavaMap(data []byte) ([]javaEntry, error) {
	r := javaReader{data: data}
	entries, err := r.hashMap()
	if err != nil {
		return nil, fmt.Errorf("byte %d of %d: %w", r.at, len(data), err)
	}
	return entries, nil
}

type javaReader struct {
	data    []byte
	at      int
	class   int // handle of the descriptor of byte[]; 0 before the first array
	handles int // given out so far
	arrays  map[int][]byte
}

var (
	errJavaShort = errors.New("the file ends too early")
	errNotAMap   = errors.New("this is not a java.util.HashMap as Kafka Connect stores it")
)

func (r *javaReader) hashMap() ([]javaEntry, error) {
	if err := r.expect(javaMapHead); err != nil {
		return nil, err
	}
	r.handles = 2 // the class HashMap, the map
	r.arrays = make(map[int][]byte)
	loadFactor, err := r.int()
	if err != nil {
		return nil, err
	}
	if f := math.Float32frombits(loadFactor); !(f > 0) {
		return nil, errNotAMap
	}
	if _, err := r.int(); err != nil { // threshold, which says nothing about the entries
		return nil, err
	}
	if err := r.expect("\x77\x08"); err != nil {
		return nil, err
	}
	if _, err := r.int(); err != nil { // capacity, the same
		return nil, err
	}
	size, err := r.int()
	if err != nil {
		return nil, err
	}
	if int64(size) > int64(len(r.data)-r.at)/2 { // an entry takes 2 bytes at least
		return nil, fmt.Errorf("%d entries are announced, more than the file can hold", size)
	}
	entries := make([]javaEntry, 0, size)
	index := make(map[string]int, size)
	nullKey := -1
	for range size {
		key, err := r.array()
		if err != nil {
			return nil, err
		}
		value, err := r.array()
		if err != nil {
			return nil, err
		}
		at, found := nullKey, nullKey >= 0
		if key != nil {
			at, found = index[string(key)]
		}
		if found {
			entries[at].value = value
			continue
		}
		if key == nil {
			nullKey = len(entries)
		} else {
			index[string(key)] = len(entries)
		}
		entries = append(entries, javaEntry{key, value})
	}
	if err := r.expect("\x78"); err != nil {
		return nil, err
	}
	if r.at != len(r.data) {
		return nil, errors.New("something follows the map")
	}
	return entries, nil
}

// array reads a byte[], a reference to one that came before, or null.
func (r *javaReader) array() ([]byte, error) {
	tag, err := r.byte()
	if err != nil {
		return nil, err
	}
	switch tag {
	case javaNull:
		return nil, nil
	case javaReference:
		handle, err := r.int()
		if err != nil {
			return nil, err
		}
		b, ok := r.arrays[int(handle)]
		if !ok {
			return nil, fmt.Errorf("reference to %#x, which is no array", handle)
		}
		return b, nil
	case javaArray:
	default:
		return nil, fmt.Errorf("tag %#x where an array is expected", tag)
	}
	if err := r.arrayClass(); err != nil {
		return nil, err
	}
	handle := javaFirstHandle + r.handles
	r.handles++
	length, err := r.int()
	if err != nil {
		return nil, err
	}
	if int64(length) > int64(len(r.data)-r.at) {
		return nil, errJavaShort
	}
	b := r.data[r.at : r.at+int(length) : r.at+int(length)]
	r.at += int(length)
	r.arrays[handle] = b
	return b, nil
}

func (r *javaReader) arrayClass() error {
	if r.class == 0 {
		if err := r.expect(javaBytesClass); err != nil {
			return err
		}
		r.class = javaFirstHandle + r.handles
		r.handles++
		return nil
	}
	if err := r.expect("\x71"); err != nil {
		return err
	}
	handle, err := r.int()
	if err == nil && int(handle) != r.class {
		err = fmt.Errorf("class %#x where the array class %#x is expected", handle, r.class)
	}
	return err
}

func (r *javaReader) byte() (byte, error) {
	if r.at >= len(r.data) {
		return 0, errJavaShort
	}
	r.at++
	return r.data[r.at-1], nil
}

func (r *javaReader) int() (uint32, error) {
	if len(r.data)-r.at < 4 {
		return 0, errJavaShort
	}
	r.at += 4
	return binary.BigEndian.Uint32(r.data[r.at-4:]), nil
}

func (r *javaReader) expect(want string) error {
	got := r.data[r.at:min(len(r.data), r.at+len(want))]
	if string(got) == want {
		r.at += len(want)
		return nil
	}
	if len(got) < len(want) && string(got) == want[:len(got)] {
		return errJavaShort
	}
	return errNotAMap
}
