package avro

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/schema"
)

// wideTable is the schema of a table of a hundred columns.
func wideTable(b *testing.B) *schema.Type {
	b.Helper()
	for _, s := range subjects(b, "avro-basics") {
		if strings.HasSuffix(s.Subject, "-value") && strings.Contains(s.Schema, "Envelope") {
			typ := connectType(b, s.Schema)
			row := typ.Fields[0].Type
			for len(row.Fields) < 100 {
				row.Fields = append(row.Fields, schema.Field{Name: "c" + strings.Repeat("x", len(row.Fields)), Type: colEnum})
			}
			typ.Fields[1].Type = row
			return typ
		}
	}
	b.Fatal("no envelope")
	return nil
}

func BenchmarkAppendSchema(b *testing.B) {
	typ := wideTable(b)
	var dst []byte
	for b.Loop() {
		var err error
		if dst, err = (Options{}).AppendSchema(dst[:0], typ); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkCheck(b *testing.B) {
	text, err := Options{}.AppendSchema(nil, wideTable(b))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Check(string(text)); err != nil {
			b.Fatal(err)
		}
	}
}
