package schema

import (
	"encoding/hex"
	"strings"
	"testing"
)

// Cells of a MariaDB 11.8 and the texts that it gives for them. The binlog lacks the zeros at the end.
func TestMariaDBTypes(t *testing.T) {
	fixed := func(typ string, size uint16) Column {
		return Column{Type: typeString, Meta: typeString<<8 | size, Collation: 63, Def: &ColumnDef{Type: typ, Length: -1, Scale: -1}}
	}
	uuid, inet6, inet4 := fixed("uuid", 16), fixed("INET6", 16), fixed("INET4", 4)
	for _, tt := range []struct {
		c    Column
		cell string // in hexadecimal
		want string
	}{
		{uuid, "123e4567e89b12d3a456426655440000", "123e4567-e89b-12d3-a456-426655440000"},
		{uuid, "123e4567e89b12d3a45642665544", "123e4567-e89b-12d3-a456-426655440000"},
		{uuid, "b4453336ec5711f192a60242ac110003", "b4453336-ec57-11f1-92a6-0242ac110003"},
		{uuid, "018f234567897abc8def0123456789ab", "018f2345-6789-7abc-8def-0123456789ab"},
		{uuid, "", "00000000-0000-0000-0000-000000000000"},
		{inet6, "", "::"},
		{inet6, "00000000000000000000000001020304", "::1.2.3.4"},
		{inet6, "00000000000000000000ffff01020304", "::ffff:1.2.3.4"},
		{inet6, "00000000000000000000ffff", "::ffff:0.0.0.0"},
		{inet6, "20010db8000000000000ff0000428329", "2001:db8::ff00:42:8329"},
		{inet6, "00000000000000000000000000000001", "::1"},
		{inet6, "0000000000000000000000000001", "::0.1.0.0"},
		{inet6, "00010000000000020000000000000003", "1:0:0:2::3"},
		{inet6, "00010000000200030004000500060007", "1::2:3:4:5:6:7"},
		{inet6, "0001000200030004000500060007", "1:2:3:4:5:6:7::"},
		{inet6, "00000000000000000000000100020003", "::1:2:3"},
		{inet6, "000000000001", "0:0:1::"},
		{inet4, "0a", "10.0.0.0"},
		{inet4, "", "0.0.0.0"},
		{inet4, "ffffffff", "255.255.255.255"},
		{Column{Type: typeBlob, Meta: 4, Collation: 46, Def: &ColumnDef{Type: "JSON"}}, hex.EncodeToString([]byte(`{"a": 1}`)), `{"a": 1}`},
	} {
		cell, err := hex.DecodeString(tt.cell)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeCell(t, tt.c, cell)
		if err != nil || got.Kind != String || string(got.Bytes) != tt.want {
			t.Errorf("%s %s is %s, %v, want %s", tt.c.Def.Type, tt.cell, got.Bytes, err, tt.want)
		}
	}

	vector := Column{Type: typeVarchar, Meta: 8, Collation: 63, Def: &ColumnDef{Type: "VECTOR", Length: 2}}
	if got, err := decodeCell(t, vector, []byte{0, 0, 0x80, 0x3f, 0, 0, 0x20, 0x40}); err != nil || string(valueJSON(got)) != "[1e+00,2.5e+00]" {
		t.Errorf("VECTOR is %s, %v", valueJSON(got), err)
	}
	if _, err := decodeCell(t, inet4, []byte("12345")); err == nil {
		t.Error("an INET4 of five bytes is no error")
	}
}

// UUID has a name of its own in Debezium's schemas, JSON only in the text of a statement; a default of a UUID there is
// none.
func TestMariaDBSchemas(t *testing.T) {
	dflt := "123e4567-e89b-12d3-a456-426655440000"
	for _, tt := range []struct {
		c    Column
		want string
	}{
		{
			Column{Type: typeString, Meta: typeString<<8 | 16, Collation: 63, Def: &ColumnDef{Type: "UUID", Default: &dflt}},
			`{"type":"string","optional":false,"name":"io.debezium.data.Uuid","version":1,"field":"c"}`,
		},
		{
			Column{Type: typeString, Meta: typeString<<8 | 16, Collation: 63, Def: &ColumnDef{Type: "INET6"}},
			`{"type":"string","optional":false,"field":"c"}`,
		},
		{
			Column{Type: typeBlob, Meta: 4, Collation: 46, Def: &ColumnDef{Type: "JSON"}},
			`{"type":"string","optional":false,"name":"io.debezium.data.Json","version":1,"field":"c"}`,
		},
		{
			Column{Type: typeBlob, Meta: 4, Collation: 46, Def: &ColumnDef{Type: "LONGTEXT"}},
			`{"type":"string","optional":false,"field":"c"}`,
		},
		{
			Column{Type: typeVarchar, Meta: 8, Collation: 63, Def: &ColumnDef{Type: "VECTOR", Length: 2}},
			`{"type":"array","items":{"type":"float","optional":false},"optional":false,"name":"io.debezium.data.FloatVector","version":1,"field":"c"}`,
		},
		{ // without a definition it is what the binlog calls it
			Column{Type: typeString, Meta: typeString<<8 | 16, Collation: 63},
			`{"type":"bytes","optional":false,"field":"c"}`,
		},
	} {
		typ, _, err := Modes{}.Column(&Table{Columns: []Column{tt.c}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := schemaJSON(typ, "c", false); got != tt.want {
			t.Errorf("got %s\nwant %s", got, tt.want)
		}
	}
}

// MariaDB's own collations.
func TestMariaDBCollations(t *testing.T) {
	for id, want := range map[uint32]string{
		576: "utf8mb3", 608: "utf8mb4", 611: "utf8mb4", 640: "ucs2", 674: "utf16", 738: "utf32",
		1025: "big5", 1032: "latin1", 1069: "utf8mb4", 1107: "utf8mb3", 1216: "utf8mb3", 1248: "utf8mb4", 1184: "utf32",
		2048: "utf8mb3", 2303: "utf8mb3", 2304: "utf8mb4", 2560: "ucs2", 2816: "utf16", 3072: "utf32",
		704: "", 1024: "", 3328: "",
	} {
		if got := charsetName(id); got != want {
			t.Errorf("collation %d has %q, want %q", id, got, want)
		}
	}
	if got, err := DecodeText(2304, []byte("é")); err != nil || !strings.HasPrefix(got, "é") {
		t.Errorf("é is %q, %v", got, err)
	}
}
