package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadHistory(t *testing.T) {
	const bare = `{
  "source" : { "server" : "s" },
  "position" : { "ts_sec" : 1, "file" : "bin.000002", "pos" : 4294967300, "server_id" : 1, "event" : 2 },
  "ts_ms" : 1, "databaseName" : "d", "ddl" : "RENAME TABLE …",
  "tableChanges" : [ { "type" : "ALTER", "id" : "\"d\".\"n\"\"ew\"", "previousId" : "\"e\".\"old.x\"",
    "table" : { "defaultCharsetName" : "utf8mb4", "primaryKeyColumnNames" : [ ], "columns" : [ {
      "name" : "c", "jdbcType" : 1, "typeName" : "ENUM", "typeExpression" : "ENUM", "charsetName" : null, "length" : 1,
      "position" : 1, "optional" : true, "autoIncremented" : false, "generated" : false, "comment" : null,
      "hasDefaultValue" : true, "defaultValueExpression" : "a", "enumValues" : [ "'a'", "\"it''s\"" ] } ] } },
    { "type" : "DROP", "id" : "\"d\".\"gone\"" } ]
}`
	const wrapped = `{"topic":"h","value":"{\"position\":{\"file\":\"bin.000001\",\"pos\":4,\"gtids\":\"u:1-3\",\"snapshot\":\"INITIAL\"},\"databaseName\":\"\",\"ddl\":\"SET x\",\"tableChanges\":[]}"}`
	a := "a"
	got, err := ReadHistory(strings.NewReader(wrapped + "\n" + bare + "\n" + `{"key":null,"value":null}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []HistoryEntry{
		{File: "bin.000001", Pos: 4, GTIDs: "u:1-3", Snapshot: true, DDL: "SET x", Position: []Member{
			{"file", `"bin.000001"`}, {"pos", "4"}, {"gtids", `"u:1-3"`}, {"snapshot", `"INITIAL"`},
		}},
		{File: "bin.000002", Pos: 4294967300, Event: 2, Database: "d", DDL: "RENAME TABLE …", Server: "s", Time: 1, Position: []Member{
			{"ts_sec", "1"}, {"file", `"bin.000002"`}, {"pos", "4294967300"}, {"server_id", "1"}, {"event", "2"},
		}, Changes: []Change{
			{
				Kind: AlterTable, Database: "d", Table: `n"ew`, PreviousDatabase: "e", PreviousTable: "old.x",
				Definition: &Definition{Database: "d", Name: `n"ew`, Columns: []ColumnDef{{
					Name: "c", Type: "ENUM", Length: 1, Scale: -1, Nullable: true, HasDefault: true, Default: &a,
					Labels: []string{"a", "it''s"}, Quoted: []string{"'a'", `"it''s"`}, JDBCType: 1,
				}}, DefaultCharset: "utf8mb4"},
			},
			{Kind: DropTable, Database: "d", Table: "gone"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReadHistoryRefuses(t *testing.T) {
	for _, text := range []string{
		"{", "5", `{"value":"x"}`, `{"value":5}`, `{"a":1}`,
		`{"position":{},"tableChanges":[{"type":"MOVE","id":"\"d\".\"t\""}]}`,
		`{"position":{},"tableChanges":[{"type":"CREATE","id":"\"d\".\"t\""}]}`,
		`{"position":{},"tableChanges":[{"type":"DROP","id":"d.t"}]}`,
		`{"position":{},"tableChanges":[{"type":"DROP","id":"\"d\".\"t"}]}`,
		`{"position":{},"tableChanges":[{"type":"DROP","id":"\"d\""}]}`,
	} {
		if got, err := ReadHistory(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "record 1") {
			t.Errorf("%s: %+v, %v, want an error", text, got, err)
		}
	}
}

func FuzzReadHistory(f *testing.F) {
	f.Add(`{"position":{"file":"b","pos":4},"tableChanges":[{"type":"CREATE","id":"\"d\".\"t\"","table":{"columns":[{"name":"c"}]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = ReadHistory(strings.NewReader(text))
	})
}
