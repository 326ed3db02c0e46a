package schema

import "testing"

func TestDecodeText(t *testing.T) {
	for _, tt := range []struct {
		collation uint32
		text      string
		want      string
	}{
		{255, "héllo😀", "héllo😀"},
		{33, "é", "é"},
		{63, "é", "é"},
		{8, "\x80\x9f\xe9", "€Ÿé"},
		{8, "\x81\x8d\x8f\x90\x9d", "\ufffd\ufffd\ufffd\ufffd\ufffd"},
		{11, "a\xff", "a\ufffd"},
		{2, "\x80\xae", "\u0080Ž"}, // latin2 keeps the control characters
		{22, "\xae\xb7", "╝Ї"},     // koi8u
		{1, "\xa4\xa4\xa4\xe5", "中文"},
		{28, "\xd6\xd0\xce\xc4", "中文"},
		{248, "\xd6\xd0\x90\x30\x81\x30", "中\U00010000"},
		{13, "\x93\xfa\x96\x7b", "日本"},
		{12, "\xc6\xfc\xcb\xdc", "日本"},
		{19, "\xc7\xd1\xb1\xb9", "한국"},
		{35, "\x00a\x4e\x2d", "a中"},
		{54, "\x00a\xd8\x3d\xde\x00", "a😀"},
		{54, "\xd8\x3d\x00a\x00", "\ufffda\ufffd"}, // half a pair, half a unit
		{56, "a\x00\x3d\xd8\x00\xde", "a😀"},
		{60, "\x00\x01\xf6\x00\x00\x00\x00a", "😀a"},
		{60, "\xff\xff\xff\xff\x00", "\ufffd\ufffd"},
		{10, "[\\]", "ÄÖÅ"}, // swe7
		{6, "\xc5", "é"},    // hp8
		{37, "\x80", "Č"},   // keybcs2
		{32, "\xb2\xb3", "Աա"},
		{28, "a\xff", "a\ufffd"},
	} {
		got, err := DecodeText(tt.collation, []byte(tt.text))
		if err != nil || got != tt.want {
			t.Errorf("collation %d of %x: %q, %v, want %q", tt.collation, tt.text, got, err, tt.want)
		}
	}
	if got, err := DecodeText(4000, nil); err == nil {
		t.Errorf("collation 4000: %q, want an error", got)
	}
}

// Malformed UTF-8 is replaced as Java's new String(bytes, UTF_8) does it.
func TestMalformedUTF8(t *testing.T) {
	for text, want := range map[string]string{
		"\x80a":                   "\ufffda",
		"\xc0\x80":                "\ufffd\ufffd",
		"\xe2\x82":                "\ufffd",
		"\xe2\x82a":               "\ufffda",
		"\xe2a":                   "\ufffda",
		"\xe0\x80\x80":            "\ufffd\ufffd\ufffd",
		"\xed\xa0\x80":            "\ufffd", // a surrogate
		"\xf0\x9f\x98":            "\ufffd",
		"\xf0\x9fa":               "\ufffda",
		"\xf0\x8f\xbf\xbf":        "\ufffd\ufffd\ufffd\ufffd",
		"\xf4\x90\x80\x80":        "\ufffd\ufffd\ufffd\ufffd",
		"\xf5\x80":                "\ufffd\ufffd",
		"ok \xff\xf0\x9f\x98\x80": "ok \ufffd😀",
	} {
		var scratch Scratch
		if got := string(decodeUTF8([]byte(text), &scratch)); got != want {
			t.Errorf("%x: %q, want %q", text, got, want)
		}
	}
}
