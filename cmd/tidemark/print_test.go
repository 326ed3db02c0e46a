package main

import (
	"bufio"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

func TestPrint(t *testing.T) {
	o := offset.Offset{File: "mysql-bin.000001", Pos: 4, Row: 1}
	value := emitter.Record{
		Topic: "p.db.t", Key: []byte(`{"id":1}`), Value: []byte(`{"s":"<&>  \\"}`),
		Headers: []emitter.Header{{Name: "h", Value: []byte("v")}}, Offset: o,
	}
	tombstone := emitter.Record{Topic: "p.db.t", Offset: o}
	binary := emitter.Record{Topic: "p.db.t", Key: []byte{0, 0xff}, Value: []byte{0xfe}, Offset: o}
	const off = `"offset":"{\"file\":\"mysql-bin.000001\",\"pos\":4,\"row\":1}"}` + "\n"
	for _, c := range []struct {
		name string
		form printForm
		r    *emitter.Record
		want string
	}{
		{"values", printValues, &value, `{"s":"<&>  \\"}` + "\n"},
		{"values, tombstone", printValues, &tombstone, "null\n"},
		{"records", printRecords, &value, `{"topic":"p.db.t","key":"{\"id\":1}","value":"{\"s\":\"<&>  \\\\\"}","headers":[["h","v"]],` + off},
		{"records, tombstone", printRecords, &tombstone, `{"topic":"p.db.t","key":null,"value":null,"headers":[],` + off},
		{"records, not UTF-8", printRecords, &binary, `{"topic":"p.db.t","key_b64":"AP8=","value_b64":"/g==","headers":[],` + off},
		{"pretty", printPretty, &value, "p.db.t {\"id\":1}\n{\n  \"s\": \"<&>  \\\\\"\n}\n\n"},
		{"pretty, tombstone", printPretty, &tombstone, "p.db.t null\nnull (tombstone)\n\n"},
	} {
		var out strings.Builder
		w := bufio.NewWriter(&out)
		if err := (&printer{form: c.form}).print(w, c.r); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		w.Flush()
		if out.String() != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, out.String(), c.want)
		}
	}
}
