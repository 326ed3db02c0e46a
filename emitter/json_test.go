package emitter

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-cdc/tidemark/schema"
)

func TestQuoted(t *testing.T) {
	for s, want := range map[string]string{
		"":                         `""`,
		"plain":                    `"plain"`,
		"exactly8":                 `"exactly8"`,
		"a\"b\\c/d":                `"a\"b\\c/d"`,
		"\b\t\n\f\r":               `"\b\t\n\f\r"`,
		"\x00\x1f\x7f":             `"\u0000\u001F` + "\x7f" + `"`,
		"Ωé中 \u2028":               "\"Ωé中 \u2028\"",
		"😀":                        `"\uD83D\uDE00"`,
		"eight ch😀eight ch\"eight": `"eight ch\uD83D\uDE00eight ch\"eight"`,
		"\U0010ffff\uffff":         `"\uDBFF\uDFFF` + "\uffff" + `"`,
		"\xf5\xf0":                 "\"��\"",
	} {
		if got := string(appendQuoted(nil, []byte(s))); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
		checkPlain(t, s)
	}
}

// checkPlain compares appendPlain with appendQuoted.
func checkPlain(t *testing.T, s string) {
	t.Helper()
	plain := true
	for _, c := range []byte(s) {
		plain = plain && c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\'
	}
	want := "x"
	if plain {
		want += `"` + s + `"`
	}
	if got, ok := appendPlain([]byte("x"), []byte(s)); ok != plain || string(got) != want {
		t.Errorf("%q: got %s and %v, want %s", s, got, ok, want)
	}
}

// TestPlain puts every byte at every place of words and what is left of them.
func TestPlain(t *testing.T) {
	for n := 1; n < 20; n++ {
		for i := range n {
			for c := range 256 {
				s := []byte(strings.Repeat("!", n))
				s[i] = byte(c)
				checkPlain(t, string(s))
			}
		}
	}
}

func FuzzQuoted(f *testing.F) {
	f.Add("\x1f\"\\/😀é 12345678")
	f.Add("ï¿½0000000\xf0")
	f.Fuzz(func(t *testing.T, s string) {
		checkPlain(t, s)
		got := appendQuoted([]byte("x"), []byte(s))[1:]
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q: %s: %v", s, got, err)
		}
		if utf8.ValidString(s) && back != s {
			t.Errorf("%q came back as %q", s, back)
		}
	})
}

func TestBase64(t *testing.T) {
	b := []byte("\x00\xff\xfe~?>")
	for n := range len(b) + 1 {
		want := `"` + base64.StdEncoding.EncodeToString(b[:n]) + `"`
		if got := string(appendBase64(nil, b[:n])); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// twos is Java's BigInteger.toByteArray.
func TestBase64Int(t *testing.T) {
	for shift := range 64 {
		for _, v := range []int64{1<<shift - 1, 1 << shift, 1<<shift + 1, -1 << shift, -1<<shift - 1} {
			got, want := appendBase64Int([]byte("x"), v), appendBase64([]byte("x"), twos(big.NewInt(v)))
			if string(got) != string(want) {
				t.Errorf("%d: got %s, want %s", v, got, want)
			}
		}
	}
}

func twos(v *big.Int) []byte {
	n := v.BitLen()/8 + 1
	if v.Sign() < 0 {
		n = new(big.Int).Not(v).BitLen()/8 + 1
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return v.FillBytes(make([]byte, n))
}

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		unscaled string
		scale    int
		want     string
	}{
		{"0", 0, "0"},
		{"0", 2, "0.00"},
		{"0", 6, "0.000000"},
		{"0", 7, "0E-7"},
		{"0", 30, "0E-30"},
		{"150", 2, "1.50"},
		{"-150", 2, "-1.50"},
		{"1", 2, "0.01"},
		{"-1", 5, "-0.00001"},
		{"1", 7, "1E-7"},
		{"12", 8, "1.2E-7"},
		{"-1", 30, "-1E-30"},
		{"123", 7, "0.0000123"},
		{"-128", 0, "-128"},
		{"-129", 0, "-129"},
		{"9223372036854775808", 0, "9223372036854775808"},
		{"-9223372036854775808", 0, "-9223372036854775808"},
		{"18446744073709551615", 0, "18446744073709551615"},
		{"10000000000000000000", 0, "10000000000000000000"},
		{"-100000000000000000000000000000000000000", 1, "-10000000000000000000000000000000000000.0"},
		{strings.Repeat("9", 65), 30, strings.Repeat("9", 35) + "." + strings.Repeat("9", 30)},
		{"-" + strings.Repeat("9", 65), 0, "-" + strings.Repeat("9", 65)},
		{strings.Repeat("7", 120), 0, strings.Repeat("7", 120)},
	} {
		v, _ := new(big.Int).SetString(c.unscaled, 10)
		if got := string(appendDecimal(nil, twos(v), c.scale)); got != c.want {
			t.Errorf("%s, scale %d: got %s, want %s", c.unscaled, c.scale, got, c.want)
		}
	}
}

func FuzzDecimal(f *testing.F) {
	f.Add([]byte{0x80})
	f.Add(bytes.Repeat([]byte{0xff}, 27))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || len(b) > 40 {
			return
		}
		v := new(big.Int).SetBytes(b)
		if b[0]&0x80 != 0 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		if got := string(appendDecimal(nil, b, 0)); got != v.String() {
			t.Errorf("%x: got %s, want %s", b, got, v)
		}
	})
}

// TestValues has a value of every kind as the two textual formats write it.
func TestValues(t *testing.T) {
	le := binary.LittleEndian
	point := []byte{1, 1, 0, 0, 0}
	point = le.AppendUint64(point, math.Float64bits(1.5))
	point = le.AppendUint64(point, math.Float64bits(-2.5))
	bigEndian := []byte{0, 0, 0, 0, 1}
	bigEndian = binary.BigEndian.AppendUint64(bigEndian, math.Float64bits(20))
	bigEndian = binary.BigEndian.AppendUint64(bigEndian, math.Float64bits(1e300))
	vector := le.AppendUint32(le.AppendUint32(nil, math.Float32bits(0.1)), math.Float32bits(-3e10))
	for _, c := range []struct {
		v            schema.Value
		json, header string
	}{
		{schema.Value{Kind: schema.Bool, Int: 1}, "true", "true"},
		{schema.Value{Kind: schema.Bool}, "false", "false"},
		{schema.Value{Kind: schema.Int, Int: math.MinInt64}, "-9223372036854775808", "-9223372036854775808"},
		{schema.Value{Kind: schema.Float, Float: float64(float32(0.1))}, "0.1", "0.1"},
		{schema.Value{Kind: schema.Double, Float: 0.1}, "0.1", "0.1"},
		{schema.Value{Kind: schema.Double, Float: math.NaN()}, `"NaN"`, "NaN"},
		{schema.Value{Kind: schema.Float, Float: math.Inf(-1)}, `"-Infinity"`, "-Infinity"},
		{schema.Value{Kind: schema.String, Bytes: []byte("a\"\\\n😀")}, `"a\"\\\n\uD83D\uDE00"`, "\"a\\\"\\\\\n😀\""},
		{schema.Value{Kind: schema.Bytes, Bytes: []byte("ab")}, `"YWI="`, `"YWI="`},
		{schema.Value{Kind: schema.Bytes, Bytes: []byte{}}, `""`, `""`},
		{
			schema.Value{Kind: schema.Point, Bytes: point, Int: schema.NoSRID},
			`{"x":1.5,"y":-2.5,"wkb":"AQEAAAAAAAAAAAD4PwAAAAAAAATA","srid":null}`,
			`{"x":1.5,"y":-2.5,"wkb":"AQEAAAAAAAAAAAD4PwAAAAAAAATA","srid":null}`,
		},
		{
			schema.Value{Kind: schema.Point, Bytes: bigEndian, Int: 4326},
			`{"x":20.0,"y":1.0E300,"wkb":"AAAAAAFANAAAAAAAAH435DyIAHWc","srid":4326}`,
			`{"x":20.0,"y":1.0E300,"wkb":"AAAAAAFANAAAAAAAAH435DyIAHWc","srid":4326}`,
		},
		{
			schema.Value{Kind: schema.Geometry, Bytes: []byte{1, 7, 0, 0, 0, 0, 0, 0, 0}, Int: schema.NoSRID},
			`{"wkb":"AQcAAAAAAAAA","srid":null}`, `{"wkb":"AQcAAAAAAAAA","srid":null}`,
		},
		{schema.Value{Kind: schema.Vector, Bytes: vector}, "[0.1,-3.0000001E10]", "[0.1,-3.0000001E10]"},
	} {
		got, err := appendJSON(nil, &c.v, -1)
		if err != nil || string(got) != c.json {
			t.Errorf("got %s, %v, want %s", got, err, c.json)
		}
		if got, err = appendSimple(nil, &schema.Type{}, &c.v, -1); err != nil || string(got) != c.header {
			t.Errorf("header: got %s, %v, want %s", got, err, c.header)
		}
	}
	for _, v := range []schema.Value{
		{Kind: schema.Point, Bytes: point[:20]}, {Kind: schema.Vector, Bytes: vector[:7]}, {Kind: 99},
	} {
		if got, err := appendJSON(nil, &v, -1); err == nil {
			t.Errorf("got %s and no error", got)
		}
	}
}
