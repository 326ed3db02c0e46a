package schema

import "encoding/binary"

// LastKeys remembers the keys of the objects in the cells of one JSON column, with what is written for them: most rows of a
// column have the same ones, and to compare them all at once costs less than to look at each. It is for [AppendJSON] or
// [AppendQuotedJSON], not for both. Not safe for concurrent use. The zero value is ready.
type LastKeys struct {
	met     []byte // the keys' entries of the object before, if its keys are not known
	entries []byte // the keys' entries of the objects whose keys are known …
	texts   []byte // … and the keys, which stand one behind the other …
	head    int    // … from here …
	end     int    // … up to here
	known   []jsonKey
}

// jsonKey is a key of a small object.
type jsonKey struct {
	text [32]byte // it in quotes, with the colon
	size uint64   // of text that is in use
	paid int      // bytes of the key itself
}

const (
	maxKnownKeys = 16 // in an object
	maxKnownKey  = 26 // bytes, with two escaped quotes and the colon as many as a jsonKey has room for
)

// of are the keys of a small object of so many members, whose entries it has: all of them, or nil if they are not known.
func (l *LastKeys) of(data []byte, count int, quoted bool) []jsonKey {
	if len(l.known) == count && l.end <= len(data) &&
		string(data[4:4+4*count]) == string(l.entries) && string(data[l.head:l.end]) == string(l.texts) {
		l.met = l.met[:0]
		return l.known
	}
	l.meet(data, count, quoted)
	return nil
}

// meet gets to know the keys of an object: those of the second of two running that have the same entries, so that a column
// whose objects have all kinds of keys pays little.
func (l *LastKeys) meet(data []byte, count int, quoted bool) {
	if count > maxKnownKeys {
		return
	}
	entries := data[4 : 4+4*count]
	if string(entries) != string(l.met) {
		l.met = append(l.met[:0], entries...)
		return
	}
	head := 4 + 7*count
	at := head
	for i := 0; i < len(entries); i += 4 {
		start, n := int(binary.LittleEndian.Uint16(entries[i:])), int(binary.LittleEndian.Uint16(entries[i+2:]))
		if start != at || n > maxKnownKey || at+n > len(data) || !plainJSON(data[at:at+n]) {
			return
		}
		at += n
	}
	quote := `"`
	if quoted {
		quote = `\"`
	}
	l.entries, l.texts, l.known = append(l.entries[:0], entries...), append(l.texts[:0], data[head:at]...), l.known[:0]
	l.head, l.end = head, at
	for i := 0; i < len(entries); i += 4 {
		start, n := binary.LittleEndian.Uint16(entries[i:]), binary.LittleEndian.Uint16(entries[i+2:])
		k := jsonKey{paid: int(n)}
		text := append(append(append(append(k.text[:0], quote...), data[start:start+n]...), quote...), ':')
		k.size = uint64(len(text))
		l.known = append(l.known, k)
	}
}
