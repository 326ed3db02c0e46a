package emitter

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/avro"
)

// columnKind is a type of column with cells of it.
type columnKind struct {
	column   schema.Column
	defName  string
	defaults []string
	cell     *rapid.Generator[[]byte]
}

func sized(n int) *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		b := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes")
		if n > 1 && rapid.Bool().Draw(t, "small") { // little-endian: a number near zero
			fill := byte(rapid.SampledFrom([]int{0, 0xff}).Draw(t, "sign"))
			for i := 1 + n/3; i < n; i++ {
				b[i] = fill
			}
		}
		return b
	})
}

func anyBytes(longest int) *rapid.Generator[[]byte] { return rapid.SliceOfN(rapid.Byte(), 0, longest) }

// texts are plain and not, of all lengths around those where the length of a text takes another byte or word.
var texts = rapid.OneOf(
	rapid.SampledFrom([]string{
		"", "a", "plain", "exactly8", "a plain text", strings.Repeat("0123456789", 6) + "abc", strings.Repeat("0123456789", 6) + "abcd",
		strings.Repeat("x", 8191), strings.Repeat("y", 8192), strings.Repeat("z", 70_000), "two\nlines", "é", "grüße aus Köln", "\x00", "\x7f",
		"a \"quoted\" \\ text", "😀 beyond the basic plane", "a bad \xff byte in a longer text", "\xed\xa0\x80",
	}),
	rapid.String(), rapid.StringMatching(`[ -~]{0,130}`),
)

var textCells = rapid.Map(texts, func(s string) []byte { return []byte(s) })

// decimalCells are the groups of a DECIMAL, positive and negative; now and then one has too many digits.
func decimalCells(precision, scale int) *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		var b []byte
		group := func(digits int) {
			if digits == 0 {
				return
			}
			size := [...]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}[digits]
			n := rapid.OneOf(rapid.Just(uint32(0)), rapid.Uint32Range(0, uint32(math.Pow10(digits))-1)).Draw(t, "group")
			if rapid.IntRange(0, 199).Draw(t, "damaged") == 199 {
				n = 1<<(8*size-1) - 1
			}
			b = append(b, binary.BigEndian.AppendUint32(nil, n)[4-size:]...)
		}
		whole := precision - scale
		group(whole % 9)
		for range whole / 9 {
			group(9)
		}
		for range scale / 9 {
			group(9)
		}
		group(scale % 9)
		b[0] ^= 0x80
		if rapid.Bool().Draw(t, "negative") {
			for i := range b {
				b[i] = ^b[i]
			}
		}
		return b
	})
}

// packedCells are five bytes of a DATETIME, with a fraction; days and hours may not exist.
func packedCells(digits int) *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		year := rapid.OneOf(rapid.Just(2026), rapid.IntRange(0, 9999)).Draw(t, "year")
		month := rapid.IntRange(0, 12).Draw(t, "month")
		packed := uint64(year*13+month)<<22 | uint64(rapid.IntRange(0, 31).Draw(t, "day"))<<17 |
			uint64(rapid.IntRange(0, 23).Draw(t, "hour"))<<12 | uint64(rapid.IntRange(0, 59).Draw(t, "minute"))<<6 |
			uint64(rapid.IntRange(0, 60).Draw(t, "second")) | 1<<39
		return append(binary.BigEndian.AppendUint64(nil, packed<<24)[:5], fractionCell(t, digits)...)
	})
}

// fractionCell is a fraction of a second in units of an even number of digits.
func fractionCell(t *rapid.T, digits int) []byte {
	size := (digits + 1) / 2
	n := rapid.Uint32Range(0, uint32(math.Pow10(2*size))-1).Draw(t, "fraction")
	return binary.BigEndian.AppendUint32(nil, n)[4-size:]
}

func timestampCells(digits int) *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		second := rapid.OneOf(rapid.Uint32Range(0, 1), rapid.Uint32Range(1_795_979_000, 1_795_979_100), rapid.Uint32()).Draw(t, "second")
		return append(binary.BigEndian.AppendUint32(nil, second), fractionCell(t, digits)...)
	})
}

func timeCells(digits int) *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		hms := rapid.OneOf(rapid.IntRange(0, 30), rapid.IntRange(0, 838)).Draw(t, "hour")<<12 | rapid.IntRange(0, 59).Draw(t, "minute")<<6 |
			rapid.IntRange(0, 59).Draw(t, "second")
		cell := append([]byte{0x80 | byte(hms>>16), byte(hms >> 8), byte(hms)}, fractionCell(t, digits)...)
		if rapid.IntRange(0, 4).Draw(t, "negative") == 0 { // two's complement of all but the first bit
			n := int64(0)
			for _, b := range cell {
				n = n<<8 | int64(b)
			}
			n = int64(1)<<(8*len(cell)) - n
			for i := range cell {
				cell[i] = byte(n >> (8 * (len(cell) - 1 - i)))
			}
		}
		return cell
	})
}

// jsonCells are documents: texts, numbers, and objects of members whose values are texts or small numbers.
var jsonCells = rapid.Custom(func(t *rapid.T) []byte {
	text := func(what string) []byte {
		s := texts.Draw(t, what)
		b := []byte{}
		n := len(s)
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		return append(append(b, byte(n)), s...)
	}
	switch rapid.IntRange(0, 5).Draw(t, "document") {
	case 0:
		return append([]byte{0x0c}, text("text")...)
	case 1:
		return append([]byte{0x09}, sized(8).Draw(t, "number")...)
	case 2:
		return anyBytes(20).Draw(t, "damaged")
	}
	members := rapid.IntRange(0, 5).Draw(t, "members")
	var keys, values []byte
	le := binary.LittleEndian
	head := 4 + 7*members
	entries := make([]byte, 0, head)
	keyBytes := 4 * members // "k0", "k1" and so on, filled up
	for i := range members {
		keys = fmt.Appendf(keys, "k%03d", i)
		entries = le.AppendUint16(entries, uint16(head+4*i))
		entries = le.AppendUint16(entries, 4)
	}
	for range members {
		s := text("member")
		if head+keyBytes+len(values)+len(s) > 60_000 || rapid.Bool().Draw(t, "is a number") {
			entries = append(entries, 0x05)
			entries = le.AppendUint16(entries, uint16(rapid.Uint16().Draw(t, "number")))
			continue
		}
		entries = append(entries, 0x0c)
		entries = le.AppendUint16(entries, uint16(head+keyBytes+len(values)))
		values = append(values, s...)
	}
	doc := le.AppendUint16([]byte{0}, uint16(members))
	doc = le.AppendUint16(doc, uint16(head+len(keys)+len(values)))
	return append(append(append(doc, entries...), keys...), values...)
})

var pointCells = rapid.Map(sized(20), func(b []byte) []byte {
	return append(append(b[:4:4], 1, 1, 0, 0, 0), b[4:]...)[:4+21]
})

var columnKinds = func() []columnKind {
	labels := []string{"a", "b c", "é😀", "x,y"}
	all := []columnKind{
		{schema.Column{Type: 1}, "TINYINT", []string{"-5"}, sized(1)},
		{schema.Column{Type: 1}, "BOOL", []string{"1"}, sized(1)},
		{schema.Column{Type: 1, Unsigned: true}, "TINYINT UNSIGNED", []string{"200"}, sized(1)},
		{schema.Column{Type: 2}, "SMALLINT", []string{"7"}, sized(2)},
		{schema.Column{Type: 2, Unsigned: true}, "SMALLINT UNSIGNED", []string{"7"}, sized(2)},
		{schema.Column{Type: 9}, "MEDIUMINT", []string{"7"}, sized(3)},
		{schema.Column{Type: 9, Unsigned: true}, "MEDIUMINT UNSIGNED", nil, sized(3)},
		{schema.Column{Type: 3}, "INT", []string{"-2147483648"}, sized(4)},
		{schema.Column{Type: 3, Unsigned: true}, "INT UNSIGNED", []string{"4294967295"}, sized(4)},
		{schema.Column{Type: 8}, "BIGINT", []string{"9223372036854775807"}, sized(8)},
		{schema.Column{Type: 8, Unsigned: true}, "BIGINT UNSIGNED", []string{"18446744073709551615"}, sized(8)},
		{schema.Column{Type: 4, Meta: 4}, "FLOAT", []string{"0.1"}, rapid.Map(rapid.Float32(), func(f float32) []byte {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(f))
		})},
		{schema.Column{Type: 5, Meta: 8}, "DOUBLE", []string{"1e10"}, rapid.Map(rapid.Float64(), func(f float64) []byte {
			return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
		})},
		{schema.Column{Type: 16, Meta: 1}, "BIT", []string{"1"}, rapid.Map(rapid.Bool(), func(b bool) []byte {
			if b {
				return []byte{1}
			}
			return []byte{0}
		})},
		{schema.Column{Type: 16, Meta: 2<<8 | 3}, "BIT", nil, sized(3)},
		{schema.Column{Type: 13}, "YEAR", []string{"2001"}, sized(1)},
		{schema.Column{Type: 10}, "DATE", []string{"2020-02-29"}, sized(3)},
		{schema.Column{Type: 247, Meta: 247<<8 | 1, Collation: 255, Labels: labels}, "ENUM", []string{"a"}, rapid.Map(rapid.IntRange(0, 5), func(n int) []byte { return []byte{byte(n)} })},
		{schema.Column{Type: 248, Meta: 248<<8 | 1, Collation: 255, Labels: labels}, "SET", []string{"a"}, rapid.Map(rapid.IntRange(0, 16), func(n int) []byte { return []byte{byte(n)} })},
		{schema.Column{Type: 245, Meta: 4}, "JSON", nil, jsonCells},
		{schema.Column{Type: 255, Meta: 4}, "GEOMETRY", nil, anyBytes(40)},
		{schema.Column{Type: 255, Meta: 4, Geometry: 1}, "POINT", nil, pointCells},
		{schema.Column{Type: 242, Meta: 4}, "VECTOR", nil, rapid.OneOf(sized(0), sized(4), sized(280))},
		{schema.Column{Type: 15, Meta: 400, Collation: 255}, "VARCHAR", []string{"", "d \"1\" é"}, textCells},
		{schema.Column{Type: 15, Meta: 400, Collation: 8}, "VARCHAR", []string{"d"}, textCells},
		{schema.Column{Type: 15, Meta: 400, Collation: 54}, "VARCHAR", nil, textCells},
		{schema.Column{Type: 254, Meta: 254<<8 | 40, Collation: 45}, "CHAR", []string{"c"}, textCells},
		{schema.Column{Type: 252, Meta: 3, Collation: 255}, "MEDIUMTEXT", nil, textCells},
		{schema.Column{Type: 15, Meta: 400, Collation: 63}, "VARBINARY", []string{"\u00ff\u0000"}, anyBytes(100)},
		{schema.Column{Type: 254, Meta: 254<<8 | 16, Collation: 63}, "BINARY", []string{"ab"}, anyBytes(16)},
		{schema.Column{Type: 252, Meta: 4, Collation: 63}, "LONGBLOB", nil, anyBytes(9000)},
		{schema.Column{Type: 254, Meta: 254<<8 | 16, Collation: 63}, "UUID", nil, sized(16)},
	}
	for _, d := range [][2]int{{1, 0}, {4, 4}, {5, 2}, {10, 0}, {18, 9}, {19, 0}, {20, 2}, {38, 10}, {65, 30}} {
		all = append(all, columnKind{
			schema.Column{Type: 246, Meta: uint16(d[0]<<8 | d[1])}, "DECIMAL", []string{"0.1"}, decimalCells(d[0], d[1]),
		})
	}
	for digits := range 7 {
		all = append(all,
			columnKind{schema.Column{Type: 18, Meta: uint16(digits)}, "DATETIME", []string{"2026-11-29 12:34:56.789"}, packedCells(digits)},
			columnKind{schema.Column{Type: 17, Meta: uint16(digits)}, "TIMESTAMP", []string{"2026-11-29 12:34:56"}, timestampCells(digits)},
			columnKind{schema.Column{Type: 19, Meta: uint16(digits)}, "TIME", []string{"12:34:56"}, timeCells(digits)},
		)
	}
	return all
}()

// TestAvroNulls has a NULL in every kind of column, with and without a default, also where there may be none: what stands
// in for it is the same in both formats.
func TestAvroNulls(t *testing.T) {
	for _, k := range columnKinds {
		defaults := []*string{nil}
		for i := range k.defaults {
			defaults = append(defaults, &k.defaults[i])
		}
		for i, def := range defaults {
			for choice := range 4 {
				c := k.column
				c.Name, c.Nullable = "c", choice&1 != 0
				c.Def = &schema.ColumnDef{
					Name: "c", Type: k.defName, Length: -1, Scale: -1, Nullable: c.Nullable, Labels: c.Labels, HasDefault: i > 0, Default: def,
				}
				table := &schema.Table{Database: "db", Name: "t", Key: []int{0}, Columns: []schema.Column{c}}
				ev := &binlog.Rows{Op: binlog.Create, Table: table, After: [][]byte{nil}}
				ids := new(testIDs)
				var records [2]Record
				var typ *schema.Type
				for j, converter := range []Converter{{}, {Avro: avroConverter(ids)}} {
					converter.ReplaceNullWithDefault = choice&2 != 0
					em := avroEmitter(t, ids, func(cfg *Config) { cfg.Key, cfg.Value = converter, converter })
					var b Batch
					feed(t, em, &b, ev)
					records[j], typ = b.Records[0], em.plan.envelope(&em.cfg, created).typ
				}
				compareFormats(t, ids, &schema.Type{Type: "struct", Fields: typ.Fields[1].Type.Fields}, records[0].Key, records[1].Key)
				compareFormats(t, ids, typ, records[0].Value, records[1].Value)
			}
		}
	}
}

// randomColumn is one of the kinds, with a name, or not, a default, or NULL.
func randomColumn(t *rapid.T, i int) (schema.Column, *rapid.Generator[[]byte]) {
	k := rapid.SampledFrom(columnKinds).Draw(t, "kind")
	c := k.column
	c.Name, c.Nullable = fmt.Sprintf("c%d", i), rapid.Bool().Draw(t, "nullable")
	if rapid.Bool().Draw(t, "defined") {
		c.Def = &schema.ColumnDef{Name: c.Name, Type: k.defName, Length: -1, Scale: -1, Nullable: c.Nullable, Labels: c.Labels}
		if c.Type == 246 {
			c.Def.Length, c.Def.Scale = int(c.Meta>>8), int(c.Meta&0xff)
		}
		if len(k.defaults) > 0 && rapid.Bool().Draw(t, "with a default") {
			d := rapid.SampledFrom(k.defaults).Draw(t, "default")
			c.Def.HasDefault, c.Def.Default = true, &d
		}
	}
	return c, k.cell
}

func randomModes(t *rapid.T) schema.Modes {
	m := schema.Modes{
		Decimal:        schema.DecimalMode(rapid.IntRange(0, 2).Draw(t, "decimal mode")),
		Time:           schema.TimeMode(rapid.IntRange(0, 4).Draw(t, "time mode")),
		UnsignedBigint: schema.UnsignedMode(rapid.IntRange(0, 1).Draw(t, "unsigned mode")),
		Binary:         schema.BinaryMode(rapid.IntRange(0, 3).Draw(t, "binary mode")),
		Failure:        schema.FailureMode(rapid.IntRange(0, 2).Draw(t, "failure mode")),
		NoTimeAdjuster: rapid.Bool().Draw(t, "no time adjuster"),
	}
	for _, number := range []string{"0", "1", "2"} {
		if rapid.IntRange(0, 3).Draw(t, "mask") == 0 {
			m.Masks = append(m.Masks, schema.Mask{
				Match: func(_, _, column string) bool { return column == "c"+number },
				Kind:  schema.MaskKind(rapid.IntRange(1, 3).Draw(t, "mask kind")), Length: rapid.IntRange(0, 70).Draw(t, "mask length"),
				Algorithm: "SHA-256", Salt: "s", V2: rapid.Bool().Draw(t, "hash v2"),
			})
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "converter") == 0 {
		m.Converters = []schema.Converter{{Kind: schema.TinyIntOneToBoolean}}
	}
	return m
}

// TestAvroIsJSON writes random rows of random tables in both formats and compares the values, as goavro reads them, with
// those of JSON. What the one cannot write the other cannot either.
func TestAvroIsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := &schema.Table{Database: "db", Name: "t"}
		var generators []*rapid.Generator[[]byte]
		for i := range rapid.IntRange(1, 6).Draw(t, "columns") {
			c, cell := randomColumn(t, i)
			table.Columns = append(table.Columns, c)
			generators = append(generators, cell)
			if rapid.Bool().Draw(t, "in the key") {
				table.Key = append(table.Key, i)
			}
		}
		incomplete := rapid.IntRange(0, 4).Draw(t, "incomplete") == 0
		image := func() [][]byte {
			cells := make([][]byte, len(generators))
			for i, g := range generators {
				if rapid.IntRange(0, 4).Draw(t, "NULL") > 0 {
					cells[i] = g.Draw(t, "cell")
				}
				if incomplete && rapid.IntRange(0, 3).Draw(t, "unknown") == 0 {
					cells[i] = binlog.Unavailable
				}
			}
			return cells
		}
		cfg := Config{Prefix: "p", Tombstones: true, Modes: randomModes(t)}
		cfg.Clock = func() time.Time { return time.Unix(1795979007, 735048990) }
		defaults := rapid.Bool().Draw(t, "NULL becomes the default")
		cfg.Key.ReplaceNullWithDefault, cfg.Value.ReplaceNullWithDefault = defaults, defaults
		ids := new(testIDs)
		binaryCfg := cfg
		binaryCfg.Key.Avro, binaryCfg.Value.Avro = avroConverter(ids), avroConverter(ids)
		texts, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		binaries, err := New(binaryCfg)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := newPlan(&texts.cfg, table)
		if err != nil {
			return // a default that cannot be converted
		}
		key, value := keyShape("k", plan.key, after, nil), plan.envelope(&texts.cfg, created)
		for range rapid.IntRange(1, 4).Draw(t, "rows") {
			ev := &binlog.Rows{
				Op: rapid.SampledFrom([]binlog.Op{binlog.Create, binlog.Update, binlog.Delete}).Draw(t, "op"), Table: table,
				Info:       binlog.Info{TsMicros: 1795979007728187, ServerID: 223344, File: "f", Pos: 4, Thread: rapid.Int64Range(-1, 70).Draw(t, "thread")},
				Row:        rapid.IntRange(0, 300).Draw(t, "row"),
				Base:       offset.Offset{File: "f", Pos: 4},
				Incomplete: incomplete,
			}
			ev.Info.GTID = rapid.SampledFrom([]offset.GTID{{}, gtid("8469a685-ec27-11f1-a4cd-0242ac110007:43")}).Draw(t, "gtid")
			if ev.Op != binlog.Create {
				ev.Before = image()
			}
			if ev.Op != binlog.Delete {
				ev.After = image()
			}
			var a, b Batch
			if err := texts.Begin(ev); err != nil {
				t.Fatal(err)
			}
			if err := binaries.Begin(ev); err != nil {
				t.Fatal(err)
			}
			errA, errB := texts.Row(&a, ev), binaries.Row(&b, ev)
			if (errA == nil) != (errB == nil) || errA != nil && errA.Error() != errB.Error() || len(a.Records) != len(b.Records) {
				t.Fatalf("in JSON %d records and error %v, in Avro %d and %v", len(a.Records), errA, len(b.Records), errB)
			}
			if errB != nil && len(b.mem) > 0 {
				t.Fatal("an error left bytes behind")
			}
			for i := range a.Records {
				compareFormats(t, ids, key.typ, a.Records[i].Key, b.Records[i].Key)
				compareFormats(t, ids, value.typ, a.Records[i].Value, b.Records[i].Value)
			}
		}
	})
}

func compareFormats(t rapid.TB, ids *testIDs, typ *schema.Type, text, binaryText []byte) {
	if text == nil || binaryText == nil {
		if text != nil || binaryText != nil {
			t.Fatalf("got %x for %s", binaryText, text)
		}
		return
	}
	codec, err := avro.NewCodec(ids.texts[binary.BigEndian.Uint32(binaryText[1:])-1])
	if err != nil {
		t.Fatal(err)
	}
	got, err := codec.Native(binaryText[5:])
	if err != nil {
		t.Fatalf("%x: %v", binaryText, err)
	}
	var want any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if where := differs(typ, want, got); where != "" {
		t.Fatalf("%s: %s\n%x", where, text, binaryText)
	}
}

// differs says where a value in JSON is not that in Avro; "" if it is.
func differs(typ *schema.Type, want, got any) string {
	if typ.Optional && got != nil {
		union, ok := got.(map[string]any)
		if !ok || len(union) != 1 {
			return fmt.Sprintf("%v is no union", got)
		}
		for _, v := range union {
			got = v
		}
	}
	same := false
	switch w := want.(type) {
	case nil:
		same = got == nil
	case bool:
		same = got == w
	case json.Number:
		switch g := got.(type) {
		case int32:
			same = w.String() == strconv.Itoa(int(g))
		case int64:
			same = w.String() == strconv.FormatInt(g, 10)
		case float32:
			f, err := strconv.ParseFloat(w.String(), 32)
			same = err == nil && math.Float32bits(float32(f)) == math.Float32bits(g)
		case float64:
			f, err := strconv.ParseFloat(w.String(), 64)
			same = err == nil && math.Float64bits(f) == math.Float64bits(g)
		}
	case string:
		switch g := got.(type) {
		case string:
			same = g == w
		case []byte:
			same = base64.StdEncoding.EncodeToString(g) == w
		case float32:
			same = string(schema.AppendDouble(nil, float64(g))) == w
		case float64:
			same = string(schema.AppendDouble(nil, g)) == w
		}
	case []any:
		g, ok := got.([]any)
		same = ok && len(g) == len(w)
		for i := range w {
			if !same {
				break
			}
			if where := differs(typ.Items, w[i], g[i]); where != "" {
				return fmt.Sprintf("%d.%s", i, where)
			}
		}
	case map[string]any:
		g, ok := got.(map[string]any)
		same = ok && len(g) == len(w) && len(typ.Fields) == len(w)
		for _, f := range typ.Fields {
			if !same {
				break
			}
			if where := differs(f.Type, w[f.Name], g[f.Name]); where != "" {
				return f.Name + "." + where
			}
		}
	}
	if !same {
		return fmt.Sprintf(" %v, want %v", got, want)
	}
	return ""
}
