package schema

import (
	"strings"
	"testing"
)

func everyColumn(_, _, _ string) bool { return true }

// Hashes of "abc" with the salt "CzQMA0cB5K" as Java's MessageDigest gives them, of the serialised String and of its
// bytes.
func TestHashes(t *testing.T) {
	for _, tt := range []struct{ algorithm, v1, v2 string }{
		{"MD5", "0c75294bde39f63553fd74d9acdc678e", "adfe0a4dd31c479493cd39bf0d9aa9c8"},
		{"SHA-1", "d73a9f4bb7ecc37fbb0ba840fee6a7d1a0158c9f", "740d72e08f2c02203e12f81b9bb2cd52738249f0"},
		{"sha", "d73a9f4bb7ecc37fbb0ba840fee6a7d1a0158c9f", "740d72e08f2c02203e12f81b9bb2cd52738249f0"},
		{"SHA-224", "4f325286ac82fa5b5bb6a61eb8fa091cf09ce1ff5ece7e85f4a98996", "6989606012fe0a16b20b82d81efdf4c2daa27bda4953fa2fa9bb31ec"},
		{
			"SHA-256", "23982a5060e938a6303e33d56b2bdfb80e4cae9c5166f47237648e55911b835e",
			"4255bb5ea51a54b309aed2ddfe79083bcd1e000f6fa43833aa5ac1d6c0659399",
		},
		{
			"SHA-384", "02d116147ad40fc82e974781a47e580154486dfbf45adb9effff2909d106e265669b08c040767c836b65301febda18c5",
			"ec0613e709e7ef79bd261c76bae687f6dbdc942d306a735d3c4c8ecb32c70e6e5a579d40be8f61592926fc0870f156ea",
		},
		{
			"SHA-512",
			"c089e9ab21a3b46ca01f44d420cc27041caad697bf3eee1c003d0fc4596af0814ab5f650eb462a5e6d093e96a5c49e3dd25bedb004ccaf234d495f06aa4247ab",
			"859a9d4d3e114190ca6babba1883d8964dfb7234b710898f808236d7be65c76ec88227dbce87bc5f5c3da22d0404e15e8902a4635e36d837a4508f79dfd9dbba",
		},
		{"SHA-512/224", "6b9bea16cd6de97454fa59b52882fc609b23c3a6c9700dbe78f108cf", "086503eb9b4f1defbe1f55e922d31aa3aa6a94376d3f9d5547b637cb"},
		{
			"SHA-512/256", "c8005d0554c2c5208d0c7a5d4d284bb9701f4960dd048433a3e9bfc7d8975aba",
			"acaf9d491e12984ed81d6c036eefa4e4478c12082d947062308c38547c7937ef",
		},
		{"SHA3-224", "9513aa1f6a9b8f091098eeb780e716963b9b3a81bb196c16c2fed060", "c3b553dda7adef2a085ca3ceae3731afeebd7528f4ec0e24bc8aea5b"},
		{
			"SHA3-256", "c5d0a9019a01df64b24e8b9ea3592eaf888ef86185864001d2378f7edf38880e",
			"7ea2ba9366c258589e432c5900b07bd651758d0efa5caa8533131b4658364695",
		},
		{
			"SHA3-384", "40830e1f6b5f9d7b6459ff7574fae9931156b5786bccc3173d7ee4dfa71b8030ad240d8607af43ae2c16b407f799c0c0",
			"1f3b43149270570336044a5a7f2a726082ca428bf0c1a6e6f9a322ff71d4559c6ec7f69a4b18c90d4e09ff1d960eae52",
		},
		{
			"SHA3-512",
			"bfbe79fcea399bd8e9eedb4f32c3e16876eb77c06d1b85bb4cded57f8ef530d2d497c3bc2f0632a4a53ebfa402457e5d2d1574b10ce72b47b3bcc468435fde76",
			"8b52d4415bf4274fab7c9552efb93e1dc79625c3b93fa21a243d08bca394372de0f03d30f24dbea5524b4f6a5acc2da00827d511f88220d5bbe6bfc6882d4dbb",
		},
	} {
		for _, v2 := range []bool{false, true} {
			want := tt.v1
			if v2 {
				want = tt.v2
			}
			m := Modes{Masks: []Mask{{Match: everyColumn, Kind: MaskHash, Algorithm: tt.algorithm, Salt: "CzQMA0cB5K", V2: v2}}}
			text := Column{Type: typeBlob, Meta: 2, Collation: 255}
			if _, v, err := decodeMode(t, m, text, []byte("abc")); err != nil || v.Kind != String || string(v.Bytes) != want {
				t.Errorf("%s, v2 %v: %s, %v, want %s", tt.algorithm, v2, v.Bytes, err, want)
			}
		}
		if err := CheckHash(tt.algorithm); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"MD2", "CRC32", ""} {
		if err := CheckHash(name); err == nil || !strings.Contains(err.Error(), "SHA3-512") {
			t.Errorf("%q: %v", name, err)
		}
		m := Modes{Masks: []Mask{{Match: everyColumn, Kind: MaskHash, Algorithm: name}}}
		if _, _, err := m.Column(&Table{Columns: []Column{{Type: typeBlob, Meta: 2, Collation: 255}}}, 0); err == nil {
			t.Errorf("a mask by %q is no error", name)
		}
	}
}

// Java serialises a String in modified UTF-8, and one of 65,536 bytes or more in another form. The hashes are Java's.
func TestHashOfJavaStrings(t *testing.T) {
	latin1 := Column{Type: typeBlob, Meta: 4, Collation: 8}
	utf8mb4 := Column{Type: typeBlob, Meta: 4, Collation: 255}
	for _, tt := range []struct {
		name   string
		c      Column
		text   string
		v1, v2 string
	}{
		{
			"empty", utf8mb4, "", "3877df044f4ad9798f597a33fd5294490fc6cbc48bcc3b349fb71cb9399f97a8",
			"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89",
		},
		{
			"NUL and a character of two surrogates", utf8mb4, "é日本😀\x00x", "a50fc7dc505f2f833258abdc818fa091f92bf50da7ff35242573943367f85a5b",
			"ccb5822f3b1ba2bace4bf52adf2b1a9277ce9bea6693de915e754e2555b2f0fc",
		},
		{
			"65,535 bytes", utf8mb4, strings.Repeat("x", 65535), "80b26722ce5b48749657735e18bbce6c2629eb519286857a1628f2abec993f90",
			"3cc3574cb23c5a9aba071a8e52f160ebc593c3bb31640e682ab0d4acc95597a4",
		},
		{
			"65,536 bytes of UTF-8 from another set", latin1, strings.Repeat("\xe9", 32768), "9f803f7ac8e08cf16ad212bb06049ee4f5aecec89ec21a18638b7db4bec226fd",
			"aa7acd2ec713d218c6b309c634eca38c2b47c2e1ac580588119cd1e51653116f",
		},
	} {
		for v2, want := range map[bool]string{false: tt.v1, true: tt.v2} {
			m := Modes{Masks: []Mask{{Match: everyColumn, Kind: MaskHash, Algorithm: "SHA-256", Salt: "s", V2: v2}}}
			if _, v, err := decodeMode(t, m, tt.c, []byte(tt.text)); err != nil || string(v.Bytes) != want {
				t.Errorf("%s, v2 %v: %s, %v, want %s", tt.name, v2, v.Bytes, err, want)
			}
		}
	}
}

func TestMasks(t *testing.T) {
	varchar := func(length int) Column {
		return Column{Type: typeVarchar, Meta: 400, Collation: 255, Nullable: true, Def: &ColumnDef{Type: "VARCHAR", Length: length, Scale: -1}}
	}
	text := Column{Type: typeBlob, Meta: 2, Collation: 255, Nullable: true, Def: &ColumnDef{Type: "TEXT", Length: -1, Scale: -1}}
	enum := Column{Type: typeEnum, Labels: []string{"new", "paid"}, Def: &ColumnDef{Type: "ENUM", Length: 1, Scale: -1}}
	set := Column{Type: typeSet, Labels: []string{"r", "w"}, Def: &ColumnDef{Type: "SET", Length: 3, Scale: -1}}
	json := Column{Type: typeJSON, Meta: 4, Def: &ColumnDef{Type: "JSON", Length: -1, Scale: -1}}
	varbinary := Column{Type: typeVarchar, Meta: 40, Collation: 63, Def: &ColumnDef{Type: "VARBINARY", Length: 40, Scale: -1}}
	charBinary := Column{Type: typeString, Meta: typeString<<8 | 5, Collation: 63, Def: &ColumnDef{Type: "CHAR", Length: 5, Scale: -1}}
	integer := Column{Type: typeLong, Def: &ColumnDef{Type: "INT", Length: -1, Scale: -1}}
	decimal := Column{Type: typeNewDecimal, Meta: 10<<8 | 2, Def: &ColumnDef{Type: "DECIMAL", Length: 10, Scale: 2}}
	timestamp := Column{Type: typeTimestamp2, Def: &ColumnDef{Type: "TIMESTAMP", Length: -1, Scale: -1}}
	fixed := func(n int) Mask { return Mask{Match: everyColumn, Kind: MaskFixed, Length: n} }
	truncate := func(n int) Mask { return Mask{Match: everyColumn, Kind: MaskTruncate, Length: n} }
	hash := Mask{Match: everyColumn, Kind: MaskHash, Algorithm: "SHA-256", Salt: "CzQMA0cB5K", V2: true}
	for _, tt := range []struct {
		name       string
		mask       Mask
		c          Column
		cell       []byte
		want       string
		parameters string
	}{
		{"asterisks", fixed(3), varchar(40), []byte("secret"), `"***"`, "masked=true"},
		{"none", fixed(0), varchar(40), []byte("secret"), `""`, "masked=true"},
		{"of NULL", fixed(3), varchar(40), nil, `"***"`, "masked=true"},
		{"of ENUM", fixed(3), enum, []byte{1}, `"***"`, "allowed=new,paid masked=true"},
		{"not of JSON", fixed(3), json, []byte{jsonbLiteral, 1}, `"true"`, "masked=true"},
		{"not of VARBINARY", fixed(3), varbinary, []byte("a"), `"YQ=="`, "masked=true"},
		{"not of INT", fixed(3), integer, le(5, 4), "5", "masked=true"},
		{"of CHAR CHARACTER SET binary in a statement", fixed(3), charBinary, []byte("a"), `"Kioq"`, "masked=true"},
		{"hash", hash, text, []byte("abc"), `"4255bb5ea51a54b309aed2ddfe79083bcd1e000f6fa43833aa5ac1d6c0659399"`, "masked=true"},
		{"hash cut at the length", hash, varchar(20), []byte("abc"), `"4255bb5ea51a54b309ae"`, "masked=true"},
		{"hash of NULL", hash, varchar(20), nil, "null", "masked=true"},
		{"hash of ENUM has one digit", hash, enum, []byte{2}, `"b"`, "allowed=new,paid masked=true"},
		{"hash of SET", hash, set, []byte{3}, `"c6f"`, "allowed=r,w masked=true"},
		{"truncated", truncate(3), varchar(40), []byte("héllo"), `"hél"`, "truncateLength=3"},
		{"short already", truncate(3), varchar(40), []byte("hé"), `"hé"`, "truncateLength=3"},
		{"nothing left", truncate(0), varchar(40), []byte("hé"), `""`, "truncateLength=0"},
		{"NULL", truncate(3), varchar(40), nil, "null", "truncateLength=3"},
		{"never too long", truncate(40), varchar(40), []byte("hé"), `"hé"`, ""},
		{"no length", truncate(1000), text, []byte("hé"), `"hé"`, "truncateLength=1000"},
		{"two units", truncate(4), text, []byte("ab😀c"), `"ab😀"`, "truncateLength=4"},
		{"half a character", truncate(3), text, []byte("ab😀c"), `"ab"`, "truncateLength=3"},
		{"bytes", truncate(2), varbinary, []byte("abc"), `"YWI="`, "truncateLength=2"},
		{"a decimal is not cut", truncate(1), decimal, decimalCell("0000012345", 2, false), `"MDk="`, "scale=2 connect.decimal.precision=10 truncateLength=1"},
		{"JSON is", truncate(3), json, append([]byte{jsonbString, 4}, "abcd"...), `"\"ab"`, "truncateLength=3"},
		{"a TIMESTAMP, too", truncate(4), timestamp, []byte{0, 0, 0, 1}, `"1970"`, "truncateLength=4"},
		{"ENUM has the length 1", truncate(1), enum, []byte{1}, `"new"`, "allowed=new,paid"},
	} {
		m := Modes{Masks: []Mask{tt.mask}}
		typ, v, err := decodeMode(t, m, tt.c, tt.cell)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := string(valueJSON(v)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if got := parameters(typ); got != tt.parameters {
			t.Errorf("%s: parameters %q, want %q", tt.name, got, tt.parameters)
		}
		if got, _, err := m.Key().Column(&Table{Columns: []Column{tt.c}}, 0); err != nil || strings.Contains(parameters(got), "masked") ||
			strings.Contains(parameters(got), "truncate") {
			t.Errorf("%s: in the record key the parameters are %s, %v", tt.name, parameters(got), err)
		}
	}
}

func parameters(typ *Type) string {
	var all []string
	for _, p := range typ.Parameters {
		all = append(all, p.Name+"="+p.Value)
	}
	return strings.Join(all, " ")
}

// Record keys are not masked, as in Debezium.
func TestKeysAreNotMasked(t *testing.T) {
	for _, kind := range []MaskKind{MaskFixed, MaskTruncate, MaskHash} {
		m := Modes{Masks: []Mask{{Match: everyColumn, Kind: kind, Algorithm: "MD5"}}}
		if _, v, err := decodeMode(t, m.Key(), Column{Type: typeVarchar, Meta: 40, Collation: 255}, []byte("abc")); err != nil || string(v.Bytes) != "abc" {
			t.Errorf("kind %d: %s, %v", kind, v.Bytes, err)
		}
	}
}

// The hashes that the connector of the capture topics-masks wrote are in TestGoldenColumns. Here: of several rules for
// one column one counts, and a hash is not left out because the source type is shown.
func TestOneMaskCounts(t *testing.T) {
	c := Column{Type: typeVarchar, Meta: 160, Collation: 255, Def: &ColumnDef{Type: "VARCHAR", Length: 40, Scale: -1}}
	other := Mask{Match: func(_, _, _ string) bool { return false }, Kind: MaskTruncate, Length: 1}
	fixed := Mask{Match: everyColumn, Kind: MaskFixed, Length: 2}
	truncate := Mask{Match: everyColumn, Kind: MaskTruncate, Length: 4}
	hash := Mask{Match: everyColumn, Kind: MaskHash, Algorithm: "MD5", V2: true}
	source := "__debezium.source.column.type=VARCHAR __debezium.source.column.length=40 __debezium.source.column.name=c"
	for _, tt := range []struct {
		name             string
		m                Modes
		want, parameters string
	}{
		{"truncation before asterisks", Modes{Masks: []Mask{other, hash, fixed, truncate}}, "secr", "truncateLength=4"},
		{"asterisks before hashes", Modes{Masks: []Mask{hash, fixed}}, "**", "masked=true"},
		{"asterisks before the source type", Modes{Masks: []Mask{fixed}, SourceColumn: everyColumn}, "**", "masked=true"},
		{"truncation before the source type", Modes{Masks: []Mask{truncate}, SourceColumn: everyColumn}, "secr", "truncateLength=4"},
		{"the source type before a hash", Modes{Masks: []Mask{hash}, SourceColumn: everyColumn}, "5ebe2294ecd0e0f08eab7690d2a6ee69", source},
		{"the source type alone", Modes{SourceColumn: everyColumn}, "secret", source},
	} {
		typ, v, err := decodeMode(t, tt.m, c, []byte("secret"))
		if err != nil || string(v.Bytes) != tt.want || parameters(typ) != tt.parameters {
			t.Errorf("%s: %s, %s, %v, want %s, %s", tt.name, v.Bytes, parameters(typ), err, tt.want, tt.parameters)
		}
	}
}

// Masks and hashes allocate nothing a row either.
func TestMasksDoNotAllocate(t *testing.T) {
	c := Column{Type: typeVarchar, Meta: 160, Collation: 255}
	for _, mask := range []Mask{
		{Match: everyColumn, Kind: MaskFixed, Length: 9},
		{Match: everyColumn, Kind: MaskTruncate, Length: 3},
		{Match: everyColumn, Kind: MaskHash, Algorithm: "MD5"},
		{Match: everyColumn, Kind: MaskHash, Algorithm: "SHA-1"},
		{Match: everyColumn, Kind: MaskHash, Algorithm: "SHA-256", Salt: "salt"},
		{Match: everyColumn, Kind: MaskHash, Algorithm: "SHA-512", V2: true},
		{Match: everyColumn, Kind: MaskHash, Algorithm: "SHA3-256", V2: true},
	} {
		noAllocations(t, Modes{Masks: []Mask{mask}}, c, []byte("some text"))
	}
}

func noAllocations(t *testing.T, m Modes, c Column, cell []byte) {
	t.Helper()
	_, decode, err := m.Column(&Table{Columns: []Column{c}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var scratch Scratch
	v := new(Value)
	if err := decode(cell, &scratch, v); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		scratch.Reset()
		if err := decode(cell, &scratch, v); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%+v of %+v: %v allocations", m, c, n)
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("ab😀c", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		text = strings.ToValidUTF8(text, "\ufffd")
		if n < 0 || n > 1<<20 {
			return
		}
		got := string(firstUnits([]byte(text), n))
		units := 0
		for _, r := range got {
			if units++; r > 0xffff {
				units++
			}
		}
		if !strings.HasPrefix(text, got) || units > n || got != strings.ToValidUTF8(got, "?") {
			t.Fatalf("%q up to %d is %q", text, n, got)
		}
		if rest := []rune(text[len(got):]); len(rest) > 0 && (units < n-1 || units == n-1 && rest[0] <= 0xffff) {
			t.Fatalf("%q up to %d is only %q", text, n, got)
		}
	})
}
