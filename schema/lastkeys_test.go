package schema

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// smallObjectOf is a small object with these keys. Each value is a number, an array, or a string of its own.
func smallObjectOf(keys []string, value func(i int) any) []byte {
	count := len(keys)
	doc := append([]byte{jsonbSmallObject, byte(count), 0, 0, 0}, make([]byte, 7*count)...)
	for i, k := range keys {
		binary.LittleEndian.PutUint16(doc[5+4*i:], uint16(len(doc)-1))
		binary.LittleEndian.PutUint16(doc[7+4*i:], uint16(len(k)))
		doc = append(doc, k...)
	}
	for i := range keys {
		entry := doc[5+4*count+3*i:]
		at := uint16(len(doc) - 1)
		switch v := value(i).(type) {
		case int:
			entry[0], at = jsonbInt16, uint16(v)
		case string:
			entry[0] = jsonbString
			doc = append(append(doc, byte(len(v))), v...)
		default:
			entry[0] = jsonbSmallArray
			doc = append(doc, 0, 0, 4, 0)
		}
		binary.LittleEndian.PutUint16(doc[5+4*count+3*i+1:], at)
	}
	binary.LittleEndian.PutUint16(doc[3:], uint16(len(doc)-1))
	return doc
}

// TestLastKeys compares what is written with keys remembered with what the decoder gives: for objects with the same keys,
// with others of the same lengths and number, with other numbers of them, and damaged ones, in any order.
func TestLastKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	sets := [][]string{
		{},
		{"id"},
		{"no"},
		{"id", "ok", "tag"},
		{"id", "ok", "tab"},
		{"ia", "ok", "tag"},
		{"id", "ok"},
		{"", "a", "longer than a word"},
		{strings.Repeat("k", maxKnownKey)},
		{strings.Repeat("k", maxKnownKey+1)},
		{`q"`, "b"},
		{"q\\", "b"},
		{"é", "b"},
		{"\n"},
		{"\x7f"},
	}
	var many []string
	for i := range maxKnownKeys + 1 {
		many = append(many, fmt.Sprintf("key%02d", i))
	}
	sets = append(sets, many, many[1:])
	values := []any{7, -31000, 12345, "", "short", "longer than one word", `a"b`, nil}
	known, quotedKnown := 0, 0
	for range 300 {
		var last, lastQuoted LastKeys
		few := [][]string{sets[random.IntN(len(sets))], sets[random.IntN(len(sets))], sets[random.IntN(len(sets))]}
		for range 20 {
			doc := smallObjectOf(few[max(random.IntN(6)-3, 0)], func(int) any { return values[random.IntN(len(values))] })
			if random.IntN(8) == 0 {
				doc[1+random.IntN(len(doc)-1)] ^= byte(1 << random.IntN(8))
			}
			if random.IntN(8) == 0 { // the object says that it ends in its keys
				binary.LittleEndian.PutUint16(doc[3:], uint16(min(4+7*int(doc[1])+random.IntN(3), len(doc)-1)))
			}
			if random.IntN(8) == 0 {
				doc = doc[:1+random.IntN(len(doc))]
			}
			known, quotedKnown = known+len(last.known), quotedKnown+len(lastQuoted.known)
			text, err := appendJSON(nil, doc)
			for _, room := range []int{0, 50, 2000} {
				dst := append(make([]byte, 0, 1+room), 'x')
				if got, ok := AppendJSON(dst, doc, &last); ok != (err == nil) || ok && string(got) != "x"+string(text) || !ok && string(got) != "x" {
					t.Fatalf("%x: got %s, %v, want %s, error %v", doc, got, ok, text, err)
				}
				want, wantOK := AppendQuotedJSON(dst, doc, nil)
				want = bytes.Clone(want)
				if got, ok := AppendQuotedJSON(dst, doc, &lastQuoted); ok != wantOK || string(got) != string(want) {
					t.Fatalf("%x in a string: got %s, %v, want %s, %v", doc, got, ok, want, wantOK)
				}
			}
		}
	}
	if known < 1000 || quotedKnown < 1000 {
		t.Errorf("only %d and %d keys were known", known, quotedKnown)
	}
}

// TestLastKeysAreKept says when keys become known, and that an object with others does not push them out.
func TestLastKeysAreKept(t *testing.T) {
	number := func(i int) any { return i }
	a, b := smallObjectOf([]string{"id", "a longer key"}, number)[1:], smallObjectOf([]string{"name"}, number)[1:]
	var last LastKeys
	for i, step := range []struct {
		doc   []byte
		known int
	}{{a, 0}, {a, 0}, {a, 2}, {b, 0}, {a, 2}, {b, 0}, {a, 2}, {b, 0}, {b, 0}, {b, 1}, {a, 0}, {a, 0}, {a, 2}} {
		if got := len(last.of(step.doc, int(step.doc[0]), false)); got != step.known {
			t.Errorf("object %d: %d keys known, want %d", i, got, step.known)
		}
	}
}
