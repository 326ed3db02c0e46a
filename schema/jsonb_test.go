package schema

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func smallContainer(kind byte, body ...byte) []byte { return append([]byte{kind}, body...) }

func TestJSONScalars(t *testing.T) {
	double := func(f float64) []byte {
		return binary.LittleEndian.AppendUint64([]byte{jsonbDouble}, math.Float64bits(f))
	}
	opaque := func(kind byte, data []byte) []byte {
		return append([]byte{jsonbOpaque, kind, byte(len(data))}, data...)
	}
	packed := func(n int64) []byte { return le(n, 8) }
	hms := func(h, m, s, micros int64) int64 { return (h<<12|m<<6|s)<<24 | micros }
	date := func(y, m, d int64) int64 { return ((y*13+m)<<5 | d) << 17 << 24 }
	for _, tt := range []struct {
		doc  []byte
		want string
	}{
		{[]byte{jsonbLiteral, 0}, "null"},
		{[]byte{jsonbLiteral, 1}, "true"},
		{[]byte{jsonbLiteral, 2}, "false"},
		{[]byte{jsonbInt16, 0xff, 0xff}, "-1"},
		{[]byte{jsonbUint16, 0xff, 0xff}, "65535"},
		{[]byte{jsonbInt32, 0, 0, 0, 0x80}, "-2147483648"},
		{[]byte{jsonbUint32, 0xff, 0xff, 0xff, 0xff}, "4294967295"},
		{append([]byte{jsonbUint64}, le(-1, 8)...), "18446744073709551615"},
		{double(0), "0.0"},
		{double(math.Copysign(0, -1)), "-0.0"},
		{double(0.001), "0.001"},
		{double(0.0009765625), "0.0009765625"}, // 2^-10, all of its digits
		{double(9999999.999), "9999999.999"},
		{double(1e7), "10000000"},
		{double(12345678.9), "12345678.9000000003725290298461914062500"[:len("12345678.90000000037252902984619140625")]},
		{double(1e23), "99999999999999991611392"},
		{append([]byte{jsonbString, 4}, "a\x01\"\\"...), `"a\u0001\"\\"`},
		{append([]byte{jsonbString, 2}, 'x', 0xff), "\"x\ufffd\""},
		{opaque(typeTime, packed(hms(12, 34, 56, 789000))), `"12:34:56.789"`},
		{opaque(typeTime, packed(-hms(100, 0, 1, 0))), `"-100:00:01"`},
		{opaque(typeTime, packed(-hms(0, 0, 0, 1))), `"-00:00:00.000001"`},
		{opaque(typeDate, packed(date(2026, 1, 2))), `"2026-01-02"`},
		{opaque(typeDatetime, packed(date(2026, 1, 2)+hms(3, 4, 5, 6))), `"2026-01-02 03:04:05.000006"`},
		{opaque(typeDatetime, packed(0)), `"0000-00-00 00:00:00"`},
		{opaque(typeNewDecimal, append([]byte{10, 2}, decimalCell("0000000150", 2, true)...)), "-1.50"},
		{opaque(typeVarString, []byte{0xde, 0xad}), `"3q0="`},
	} {
		got, err := appendJSON(nil, tt.doc)
		if err != nil || string(got) != tt.want {
			t.Errorf("%x: %s, %v, want %s", tt.doc, got, err, tt.want)
		}
	}
}

// nested is an array in an array, so many levels deep.
func nested(depth int) []byte {
	doc := []byte{0, 0, 4, 0} // count 0, size 4
	for range depth - 1 {
		doc = append([]byte{1, 0, byte(len(doc) + 7), byte((len(doc) + 7) >> 8), jsonbSmallArray, 7, 0}, doc...)
	}
	return append([]byte{jsonbSmallArray}, doc...)
}

func TestJSONDepth(t *testing.T) {
	got, err := appendJSON(nil, nested(maxJSONDepth))
	if want := strings.Repeat("[", maxJSONDepth) + strings.Repeat("]", maxJSONDepth); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := appendJSON(nil, nested(maxJSONDepth+1)); err == nil {
		t.Errorf("%s, want an error", got)
	}
}

func TestJSONRejectsCorruptDocuments(t *testing.T) {
	for name, doc := range map[string][]byte{
		"empty":                {},
		"type":                 {14},
		"literal":              {jsonbLiteral, 3},
		"short integer":        {jsonbInt64, 1},
		"short string":         {jsonbString, 5, 'a'},
		"endless length":       {jsonbString, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
		"size beyond the end":  smallContainer(jsonbSmallArray, 0, 0, 9, 0),
		"count beyond the end": smallContainer(jsonbSmallArray, 9, 0, 4, 0),
		"offset beyond it":     smallContainer(jsonbSmallArray, 1, 0, 7, 0, jsonbString, 9, 0),
		"key beyond it":        smallContainer(jsonbSmallObject, 1, 0, 11, 0, 99, 0, 1, 0, jsonbLiteral, 0, 0),
		"itself":               smallContainer(jsonbSmallArray, 1, 0, 7, 0, jsonbSmallArray, 0, 0),
		"not a number":         append([]byte{jsonbDouble}, le(0x7ff8<<48, 8)...),
		"decimal":              {jsonbOpaque, typeNewDecimal, 2, 99, 99},
		"time":                 {jsonbOpaque, typeTime, 1, 0},
		"opaque":               {jsonbOpaque},
	} {
		if got, err := appendJSON(nil, doc); err == nil {
			t.Errorf("%s: %s, want an error", name, got)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(nested(5))
	f.Add(smallContainer(jsonbSmallObject, 1, 0, 12, 0, 11, 0, 1, 0, jsonbInt16, 5, 0, 'k'))
	f.Add([]byte{jsonbOpaque, typeNewDecimal, 4, 3, 1, 0x80, 0x01})
	f.Fuzz(func(t *testing.T, doc []byte) {
		out, err := appendJSON(nil, doc)
		if len(out) > 400*len(doc)+16 {
			t.Fatalf("%d bytes gave %d", len(doc), len(out))
		}
		if err == nil && !json.Valid(out) {
			t.Fatalf("%x gave %s", doc, out)
		}
		checkQuoted(t, doc, string(out), err)
		checkPlain(t, doc, string(out), err)
	})
}

// checkPlain compares the text that AppendJSON makes of a document with the one that the decoder makes, with room and without.
func checkPlain(t *testing.T, doc []byte, text string, err error) {
	t.Helper()
	const before = "before"
	for _, room := range []int{0, 50, 1000} {
		got, ok := AppendJSON(append(make([]byte, 0, len(before)+room), before...), doc, nil)
		want := before
		if ok {
			want += text
		}
		if ok != (err == nil) || string(got) != want {
			t.Fatalf("%x: got %s, %v, want %s, error %v", doc, got, ok, want, err)
		}
	}
}

// TestSmallObjects has objects whose members are of the usual kinds and others, in any order.
func TestSmallObjects(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	lengths := []int{0, 1, 2, 7, 8, 9, 30}
	for range 3000 {
		count := random.IntN(7)
		head := 4 + 7*count
		doc := make([]byte, 1+head)
		add := func(s string) int {
			doc = append(doc, s...)
			return len(doc) - 1 - len(s)
		}
		name := func() string {
			s := bytes.Repeat([]byte("k"), lengths[random.IntN(len(lengths))])
			if len(s) > 0 && random.IntN(9) == 0 {
				s[random.IntN(len(s))] = "\"\\\n\x7f\xff"[random.IntN(5)]
			}
			return string(s)
		}
		for i := range count {
			s := name()
			at := add(s)
			binary.LittleEndian.PutUint16(doc[5+4*i:], uint16(at))
			binary.LittleEndian.PutUint16(doc[7+4*i:], uint16(len(s)))
		}
		for i := range count {
			entry := doc[5+4*count+3*i:]
			value := random.IntN(1<<16) >> random.IntN(16)
			switch random.IntN(6) {
			case 0:
				entry[0], value = jsonbLiteral, random.IntN(40)/13
			case 1:
				entry[0] = jsonbUint16
			case 2:
				entry[0] = jsonbInt16
			case 3:
				entry[0], value = jsonbInt16, 1<<16-1-value
			case 4:
				s := name()
				entry[0], value = jsonbString, add(string(rune(len(s)))+s)
			default:
				entry[0], value = jsonbDouble, add("\x00\x00\x00\x00\x00\x00\xf0\x3f")
			}
			binary.LittleEndian.PutUint16(doc[5+4*count+3*i+1:], uint16(value))
		}
		binary.LittleEndian.PutUint16(doc[1:], uint16(count))
		binary.LittleEndian.PutUint16(doc[3:], uint16(len(doc)-1))
		text, err := appendJSON(nil, doc)
		checkQuoted(t, doc, string(text), err)
		checkPlain(t, doc, string(text), err)
	}
}

// checkQuoted compares the text that AppendQuotedJSON makes of a document with the one that the decoder makes.
func checkQuoted(t *testing.T, doc []byte, text string, err error) bool {
	t.Helper()
	const before = "before"
	got, ok := AppendQuotedJSON([]byte(before), doc, nil)
	if !ok {
		if string(got) != before {
			t.Fatalf("%x left %s", doc, got)
		}
		return false
	}
	if want := before + `"` + strings.ReplaceAll(text, `"`, `\"`) + `"`; err != nil || string(got) != want {
		t.Fatalf("%x: got %s, want %s, error %v", doc, got, want, err)
	}
	return true
}

func TestQuotedJSON(t *testing.T) {
	text := func(s string) []byte { return append([]byte{jsonbString, byte(len(s))}, s...) }
	key := func(s string) []byte {
		n := byte(len(s))
		return append(smallContainer(jsonbSmallObject, 1, 0, 11+n, 0, 11, 0, n, 0, jsonbLiteral, 1, 0), s...)
	}
	for _, tt := range []struct {
		doc  []byte
		want bool
	}{
		{text(""), true},
		{text("seven ."), true},
		{text("eight ch"), true},
		{text("more than eight"), true},
		{text("Ωé中 \x7f"), true},
		{text("😀"), false}, // two escapes in the string around
		{text(`a"b`), false},
		{text(`long enough \ for words`), false},
		{text("\n"), false},
		{text("\xff"), false},
		{key(""), true},
		{key("k"), true},
		{key("exactly8"), true},
		{key("not so short"), true},
		{key("é"), true},
		{key(`"`), false},
		{smallContainer(jsonbSmallArray, 2, 0, 10, 0, jsonbInt16, 0xff, 0xff, jsonbLiteral, 0, 0), true},
		{[]byte{jsonbOpaque, typeBlob, 1, 'x'}, true},
		{append([]byte{jsonbOpaque, typeTime, 8}, le(1<<12<<24, 8)...), true},
		{append([]byte{jsonbDouble}, le(0x3fb999999999999a, 8)...), true},
		{nil, false},
		{[]byte{jsonbLiteral, 9}, false},
	} {
		want, err := appendJSON(nil, tt.doc)
		if got := checkQuoted(t, tt.doc, string(want), err); got != tt.want {
			t.Errorf("%s: done %v, want %v", want, got, tt.want)
		}
	}
}
