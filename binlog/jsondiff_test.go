package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// object is a JSON object, as a list of keys and values.
type object []any

// jsonDoc is the binary document of a value: nil, a string, an int, a list, an object.
func jsonDoc(t testing.TB, v any) []byte {
	t.Helper()
	doc, err := jsonTree(v).appendDocument(nil)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func jsonTree(v any) *jsonNode {
	switch v := v.(type) {
	case string:
		raw := []byte{}
		n := len(v)
		for ; n > 0x7f; n >>= 7 {
			raw = append(raw, byte(n)|0x80)
		}
		return &jsonNode{kind: jsonString, raw: append(append(raw, byte(n)), v...)}
	case int:
		return &jsonNode{kind: jsonInt32, raw: binary.LittleEndian.AppendUint32(nil, uint32(v))}
	case []any:
		n := &jsonNode{kind: jsonSmallArray, open: true}
		for _, m := range v {
			n.members = append(n.members, jsonMember{value: jsonTree(m)})
		}
		return n
	case object:
		n := &jsonNode{kind: jsonSmallObject, open: true}
		for i := 0; i < len(v); i += 2 {
			key := v[i].(string)
			n.insert(n.place(key), jsonMember{key: key, value: jsonTree(v[i+1])})
		}
		return n
	}
	return &jsonNode{kind: jsonLiteral, raw: []byte{0}}
}

// jsonDiff is one diff as the event has it.
func jsonDiff(op byte, path string, value []byte) []byte {
	field := func(dst, b []byte) []byte {
		if len(b) > 250 {
			dst = append(dst, 0xfd, byte(len(b)), byte(len(b)>>8), byte(len(b)>>16))
		} else {
			dst = append(dst, byte(len(b)))
		}
		return append(dst, b...)
	}
	d := field([]byte{op}, []byte(path))
	if op != jsonRemove {
		d = field(d, value)
	}
	return d
}

// jsonText is a document as the decoder of a JSON column prints it.
func jsonText(t testing.TB, doc []byte) string {
	t.Helper()
	return cellText(t, &schema.Table{Columns: []schema.Column{{Name: "j", Type: typeJSON, Meta: 4, Nullable: true}}}, 0, doc)
}

func TestJSONDiff(t *testing.T) {
	before := jsonDoc(t, object{"a", 1, "bb", []any{1, "two", object{"x", nil}}, "é", "text", "k k", 7, `q"`, 8})
	for _, c := range []struct {
		op    byte
		path  string
		value any
		want  string // ! for a diff that does not fit
	}{
		{jsonReplace, "$.a", "one", `{"a":"one","bb":[1,"two",{"x":null}],"q\"":8,"é":"text","k k":7}`},
		{jsonReplace, "$.bb[1]", 2, `{"a":1,"bb":[1,2,{"x":null}],"q\"":8,"é":"text","k k":7}`},
		{jsonReplace, "$.bb[last]", 2, `{"a":1,"bb":[1,"two",2],"q\"":8,"é":"text","k k":7}`},
		{jsonReplace, "$.bb[last-2]", nil, `{"a":1,"bb":[null,"two",{"x":null}],"q\"":8,"é":"text","k k":7}`},
		{jsonReplace, "$.bb[2].x", object{}, `{"a":1,"bb":[1,"two",{"x":{}}],"q\"":8,"é":"text","k k":7}`},
		{jsonReplace, `$."k k"`, 0, `{"a":1,"bb":[1,"two",{"x":null}],"q\"":8,"é":"text","k k":0}`},
		{jsonReplace, `$."q\""`, 0, `{"a":1,"bb":[1,"two",{"x":null}],"q\"":0,"é":"text","k k":7}`},
		{jsonReplace, "$.é", 0, `{"a":1,"bb":[1,"two",{"x":null}],"q\"":8,"é":0,"k k":7}`},
		{jsonReplace, "$.none", 0, "!"},
		{jsonReplace, "$.bb[3]", 0, "!"},
		{jsonReplace, "$.bb.x", 0, "!"},
		{jsonReplace, "$[0]", 0, "!"},
		{jsonReplace, "$", 0, "!"},
		{jsonInsert, "$.b", 2, `{"a":1,"b":2,"bb":[1,"two",{"x":null}],"q\"":8,"é":"text","k k":7}`},
		{jsonInsert, "$.zzzz", 2, `{"a":1,"bb":[1,"two",{"x":null}],"q\"":8,"é":"text","k k":7,"zzzz":2}`},
		{jsonInsert, "$.bb[0]", 0, `{"a":1,"bb":[0,1,"two",{"x":null}],"q\"":8,"é":"text","k k":7}`},
		{jsonInsert, "$.bb[99]", 0, `{"a":1,"bb":[1,"two",{"x":null},0],"q\"":8,"é":"text","k k":7}`},
		{jsonInsert, "$.bb[2].y", 0, `{"a":1,"bb":[1,"two",{"x":null,"y":0}],"q\"":8,"é":"text","k k":7}`},
		{jsonInsert, "$.a", 2, "!"},
		{jsonInsert, "$.a.b", 2, "!"},
		{jsonInsert, "$.bb.y", 2, "!"},
		{jsonRemove, "$.bb", nil, `{"a":1,"q\"":8,"é":"text","k k":7}`},
		{jsonRemove, "$.bb[0]", nil, `{"a":1,"bb":["two",{"x":null}],"q\"":8,"é":"text","k k":7}`},
		{jsonRemove, "$.bb[2].x", nil, `{"a":1,"bb":[1,"two",{}],"q\"":8,"é":"text","k k":7}`},
		{jsonRemove, "$.c", nil, "!"},
		{jsonRemove, "$.bb[7]", nil, "!"},
		{3, "$.a", 1, "damaged"},
		{jsonRemove, "a", nil, "damaged"},
		{jsonRemove, "$.", nil, "damaged"},
		{jsonRemove, "$[", nil, "damaged"},
		{jsonRemove, "$[x]", nil, "damaged"},
		{jsonRemove, "$[last+1]", nil, "damaged"},
		{jsonRemove, "$[-1]", nil, "damaged"},
		{jsonRemove, `$."a`, nil, "damaged"},
		{jsonRemove, "$" + strings.Repeat("[0]", 101), nil, "damaged"},
	} {
		diff := jsonDiff(c.op, c.path, nil)
		if c.op != jsonRemove {
			diff = jsonDiff(c.op, c.path, jsonDoc(t, c.value))
		}
		got, err := applyJSONDiff([]byte("before"), before, diff)
		switch {
		case c.want == "!":
			if !errors.Is(err, errJSONRejected) {
				t.Errorf("%d %s: %v", c.op, c.path, err)
			}
		case c.want == "damaged":
			if !errors.Is(err, errJSONDiff) {
				t.Errorf("%d %s: %v", c.op, c.path, err)
			}
		case err != nil:
			t.Errorf("%d %s: %v", c.op, c.path, err)
		default:
			rest, ok := strings.CutPrefix(string(got), "before")
			if !ok {
				t.Fatal("what was in dst is gone")
			}
			if diff := cmp.Diff(c.want, jsonText(t, []byte(rest))); diff != "" {
				t.Errorf("%d %s (-want +got):\n%s", c.op, c.path, diff)
			}
		}
	}
}

// TestJSONDiffChangesTheForm: containers beyond 64 KiB have the large form, in which numbers of 32 bits stand in their
// entries, and smaller ones the small form again.
func TestJSONDiffChangesTheForm(t *testing.T) {
	doc := jsonDoc(t, []any{object{"n", -5}, -7})
	if doc[0] != jsonSmallArray {
		t.Fatalf("kind %d", doc[0])
	}
	large, err := applyJSONDiff(nil, doc, append(jsonDiff(jsonInsert, "$[0].s", jsonDoc(t, strings.Repeat("s", 70000))), jsonDiff(jsonInsert, "$[0].m", jsonDoc(t, -6))...))
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"m":-6,"n":-5,"s":"` + strings.Repeat("s", 70000) + `"},-7]`; large[0] != jsonLargeArray || jsonText(t, large) != want {
		t.Errorf("kind %d: %.100s", large[0], jsonText(t, large))
	}
	small, err := applyJSONDiff(nil, large, jsonDiff(jsonRemove, "$[0].s", nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"m":-6,"n":-5},-7]`; small[0] != jsonSmallArray || jsonText(t, small) != want {
		t.Errorf("kind %d: %s", small[0], jsonText(t, small))
	}
}

// TestDamagedJSONDoesNotGrow: a container that points at the same bytes again and again is an error before it is copied.
func TestDamagedJSONDoesNotGrow(t *testing.T) {
	const count = 1000
	head := 4 + 3*count
	doc := []byte{jsonSmallArray}
	doc = binary.LittleEndian.AppendUint16(doc, count)
	doc = binary.LittleEndian.AppendUint16(doc, uint16(head+1+100))
	for range count {
		doc = binary.LittleEndian.AppendUint16(append(doc, jsonString), uint16(head))
	}
	doc = append(append(doc, 100), make([]byte, 100)...)
	if got, err := applyJSONDiff(nil, doc, jsonDiff(jsonRemove, "$[0]", nil)); !errors.Is(err, errJSON) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// partialUpdate is the image part of a PARTIAL_UPDATE_ROWS event of a table of a JSON column: before image, value options,
// after image.
func partialUpdate(before, diffs []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{0}, uint32(len(before)))
	b = append(b, before...)
	b = append(b, 1, 1, 0) // value options, partial bits, null bitmap
	b = binary.LittleEndian.AppendUint32(b, uint32(len(diffs)))
	return append(b, diffs...)
}

// partialRows walks a PARTIAL_UPDATE_ROWS event of a table of a JSON column.
func partialRows(t testing.TB, images []byte) *Rows {
	t.Helper()
	table := &schema.Table{Database: "db", Name: "t", Columns: []schema.Column{{Name: "j", Type: typeJSON, Meta: 4, Nullable: true}}}
	cells, err := compileCells(table)
	if err != nil {
		t.Fatal(err)
	}
	r := &Rows{Info: Info{File: "mysql-bin.000001", Pos: 4711, Thread: 3}, Table: table, Base: offset.Offset{}}
	r.start(Update, cells, images)
	if err := r.setImages(&version{table: table, cells: cells}, &rowsEvent{op: Update, columns: 1, before: []byte{1}, after: []byte{1}}, true); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDamagedPartialUpdate: the error names position, row and column.
func TestDamagedPartialUpdate(t *testing.T) {
	good := partialUpdate(jsonDoc(t, object{"a", 1}), jsonDiff(jsonReplace, "$.a", jsonDoc(t, 2)))
	r := partialRows(t, append(good, good...))
	for n := range 2 {
		if !r.Next() || jsonText(t, r.Before[0]) != `{"a":1}` || jsonText(t, r.After[0]) != `{"a":2}` {
			t.Fatalf("row %d: %v", n, r.Err())
		}
	}
	if r.Next() || r.Err() != nil {
		t.Fatal(r.Err())
	}
	for _, bad := range [][]byte{
		append(good, partialUpdate(jsonDoc(t, object{"a", 1}), jsonDiff(jsonReplace, "$.b", jsonDoc(t, 2)))...),
		append(good, partialUpdate([]byte{jsonSmallObject, 9, 9, 9, 9}, jsonDiff(jsonReplace, "$.b", jsonDoc(t, 2)))...),
		append(good, partialUpdate(jsonDoc(t, object{"a", 1}), []byte{0})...),
		append(good, good[:len(good)-1]...),
	} {
		r := partialRows(t, bad)
		for r.Next() {
		}
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), "mysql-bin.000001:4711: table db.t, row 1, column j") {
			t.Errorf("%v", err)
		}
	}
}

func FuzzJSONDiff(f *testing.F) {
	before := jsonDoc(f, object{"a", 1, "b", []any{1, "two", object{"x", nil}}})
	f.Add(before, jsonDiff(jsonReplace, "$.b[2].x", jsonDoc(f, "s")))
	f.Add(before, jsonDiff(jsonInsert, "$.b[last]", jsonDoc(f, 1)))
	f.Add(before, append(jsonDiff(jsonRemove, `$."a"`, nil), jsonDiff(jsonInsert, "$.a.b", jsonDoc(f, object{}))...))
	f.Fuzz(func(t *testing.T, doc, diffs []byte) {
		got, err := applyJSONDiff(nil, doc, diffs)
		if err != nil {
			return
		}
		if len(got) > 4*(len(doc)+len(diffs))+64 {
			t.Fatalf("%d bytes of %d and %d", len(got), len(doc), len(diffs))
		}
		again, err := applyJSONDiff(nil, got, nil)
		if err != nil || string(again) != string(got) {
			t.Fatalf("the document cannot be read: %v", err)
		}
	})
}

// FuzzRowImages walks images with and without all columns, with and without JSON diffs.
func FuzzRowImages(f *testing.F) {
	table, body := ordersTable(2)
	f.Add(uint8(Create), []byte{0xff, 1}, []byte{0xff, 1}, false, body)
	f.Add(uint8(Update), []byte{1, 0}, []byte{0x84, 0}, false, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 5, 'h', 'e', 'l', 'l', 'o'})
	f.Add(uint8(Update), []byte{0x80, 0}, []byte{0x80, 0}, true, partialUpdate(jsonDoc(f, object{"a", 1}), jsonDiff(jsonReplace, "$.a", jsonDoc(f, 2))))
	nothing := ""
	for i := range table.Columns {
		table.Columns[i].Def = &schema.ColumnDef{Name: table.Columns[i].Name, Nullable: true, HasDefault: true}
		if table.Columns[i].Type == typeVarchar {
			table.Columns[i].Def.Default = &nothing
		}
	}
	table.Key = nil
	cells, err := compileCells(table)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, op uint8, before, after []byte, diffs bool, images []byte) {
		if len(before) != 2 || len(after) != 2 || op < uint8(Create) || op > uint8(Delete) || diffs && Op(op) != Update {
			return
		}
		e := rowsEvent{op: Op(op), columns: len(cells)}
		if e.op != Create {
			e.before = before
		}
		if e.op != Delete {
			e.after = after
		}
		r := &Rows{Table: table}
		r.start(e.op, cells, images)
		if err := r.setImages(&version{table: table, cells: cells}, &e, diffs); err != nil {
			return
		}
		n := 0
		for r.Next() {
			n++
			for _, image := range [][][]byte{r.Before, r.After} {
				for i, cell := range image {
					if IsUnavailable(cell) && !r.Incomplete {
						t.Fatalf("column %d is unavailable in complete rows", i)
					}
				}
			}
		}
		if n > len(images)+1 {
			t.Fatalf("%d rows of %d bytes", n, len(images))
		}
		if err := r.Err(); err != nil && !strings.HasPrefix(err.Error(), fmt.Sprintf("%s: table inventory.orders", at("", 0))) {
			t.Fatalf("an error without position: %v", err)
		}
	})
}
