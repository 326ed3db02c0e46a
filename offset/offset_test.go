package offset

import (
	"bufio"
	"compress/gzip"
	"os"
	"strings"
	"testing"
)

// lines reads a compressed text file of testdata.
func lines(t testing.TB, name string) []string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		out = append(out, s.Text())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Every distinct offset that Debezium stored or attached to a record in the reference captures comes out as it came in.
func TestOffsetsOfDebeziumRoundTrip(t *testing.T) {
	all := lines(t, "offsets.txt.gz")
	if len(all) < 2000 {
		t.Fatalf("only %d offsets", len(all))
	}
	for _, want := range all {
		o, err := Parse([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		if got := o.String(); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		// The general way must agree with the fast one.
		if got := string(o.appendHashed(nil)); got != want {
			t.Fatalf("by hash: got  %s\nwant %s", got, want)
		}
		again, err := Parse(o.Append(nil))
		if err != nil || !again.Equal(o) {
			t.Fatalf("%s: parsed again %v, %v", want, again, err)
		}
	}
}

// The file holds, for names put into a java.util.HashMap in one order, the order in which Java iterates.
func TestMemberOrder(t *testing.T) {
	for _, line := range lines(t, "hashmap.txt.gz") {
		put, want, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("no tab in %q", line)
		}
		names := strings.Split(put, " ")
		var got []string
		for _, i := range hashOrder(names) {
			got = append(got, names[i])
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("put  %s\ngot  %s\nwant %s", put, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	full := Offset{TsSec: 1730000000, File: "mysql-bin.000003", Pos: 479, Row: 1, ServerID: 223344, Event: 2}
	tests := []struct {
		name, text string
		want       Offset
		wantErr    string
	}{
		{name: "nothing", text: ""},
		{name: "null", text: " null\n"},
		{name: "empty object", text: "{}"},
		{name: "spaced", text: ` { "ts_sec" : 1730000000, "file":"mysql-bin.000003","pos":479, "row":1,"server_id":223344,"event":2 } `, want: full},
		{name: "nulls count as not there", text: `{"file":"mysql-bin.000003","pos":479,"gtids":null,"row":null}`, want: Offset{File: "mysql-bin.000003", Pos: 479}},
		{name: "last of repeated members", text: `{"file":"a.1","pos":1,"pos":2}`, want: Offset{File: "a.1", Pos: 2}},
		{name: "empty set is present", text: `{"file":"a.1","pos":4,"gtids":""}`, want: Offset{File: "a.1", Pos: 4, GTIDs: EmptyGTIDSet()}},
		{name: "unknown member", text: `{"file":"a.1","pos":4,"snapshot":true,"x":1.50}`, want: Offset{File: "a.1", Pos: 4, Extra: []Member{{"snapshot", "true"}, {"x", "1.50"}}}},
		{name: "beyond 4 GiB", text: `{"file":"a.1","pos":5000000000}`, want: Offset{File: "a.1", Pos: 5000000000}},
		{name: "other connector", text: `{"position":5}`, wantErr: "no offset of a MySQL connector"},
		{name: "no pos", text: `{"file":"a.1"}`, wantErr: "no offset of a MySQL connector"},
		{name: "decimal", text: `{"file":"a.1","pos":4.0}`, wantErr: `member "pos" is 4.0, not a whole number`},
		{name: "text for number", text: `{"file":"a.1","pos":"4"}`, wantErr: `member "pos" is "4", not a whole number`},
		{name: "negative", text: `{"file":"a.1","pos":-4}`, wantErr: "not a whole number"},
		{name: "too large", text: `{"file":"a.1","pos":9223372036854775808}`, wantErr: "not a whole number"},
		{name: "number for text", text: `{"file":1,"pos":4}`, wantErr: `member "file" is 1, not a string`},
		{name: "bad set", text: `{"file":"a.1","pos":4,"gtids":"x:1"}`, wantErr: "no UUID"},
		{name: "nested", text: `{"file":"a.1","pos":4,"x":{}}`, wantErr: "not a plain value"},
		{name: "array", text: `[1]`, wantErr: "not a JSON object"},
		{name: "cut off", text: `{"file":"a.1","pos":4`, wantErr: "ends too early"},
		{name: "garbage", text: "\x00\x01", wantErr: "not JSON"},
		{name: "more behind", text: `{"file":"a.1","pos":4} {}`, wantErr: "something follows"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.text))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("error %v, want …%s…", err, tt.wantErr)
				}
				return
			}
			if err != nil || !got.Equal(tt.want) {
				t.Fatalf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestAppend(t *testing.T) {
	gtids, err := ParseGTIDSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		o    Offset
		want string
	}{
		{Offset{}, `{}`},
		{Offset{File: "mysql-bin.000003", Pos: 909, ServerID: 223344, TsSec: 5}, `{"ts_sec":5,"file":"mysql-bin.000003","pos":909,"server_id":223344}`},
		{
			Offset{TsSec: 5, File: "mysql-bin.000003", Pos: 479, GTIDs: gtids, Row: 1, ServerID: 223344, Event: 2},
			`{"ts_sec":5,"file":"mysql-bin.000003","pos":479,"gtids":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23","row":1,"server_id":223344,"event":2}`,
		},
		{Offset{File: "a.1", Pos: 4, GTIDs: EmptyGTIDSet()}, `{"file":"a.1","pos":4,"gtids":""}`},
		{Offset{File: "tab\tq\"é😀.1", Pos: 4}, `{"file":"tab\tq\"é\uD83D\uDE00.1","pos":4}`},
		{Offset{File: "a.1", Pos: 4, Event: 3, ServerID: 7, Extra: []Member{{"snapshot", `"BLOCKING"`}}}, `{"file":"a.1","pos":4,"server_id":7,"event":3,"snapshot":"BLOCKING"}`},
	}
	for _, tt := range tests {
		if got := tt.o.String(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestMember(t *testing.T) {
	o, err := Parse([]byte(`{"file":"a.1","pos":4,"snapshot":"INITIAL","done":true,"none":null}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"snapshot": "INITIAL", "done": "true"} {
		if got, ok := o.Member(name); !ok || got != want {
			t.Errorf("Member(%q) = %q, %v", name, got, ok)
		}
	}
	for _, name := range []string{"none", "absent", "file"} {
		if got, ok := o.Member(name); ok {
			t.Errorf("Member(%q) = %q", name, got)
		}
	}
}

func TestBefore(t *testing.T) {
	tests := []struct {
		a, b               Offset
		before, comparable bool
	}{
		{Offset{File: "mysql-bin.999999", Pos: 9}, Offset{File: "mysql-bin.1000000", Pos: 4}, true, true},
		{Offset{File: "mysql-bin.000002", Pos: 4}, Offset{File: "mysql-bin.000002", Pos: 5}, true, true},
		{Offset{File: "mysql-bin.000002", Pos: 4, Event: 2, Row: 7}, Offset{File: "mysql-bin.000002", Pos: 4, Event: 3}, true, true},
		{Offset{File: "mysql-bin.000002", Pos: 4, Event: 2, Row: 1}, Offset{File: "mysql-bin.000002", Pos: 4, Event: 2, Row: 2}, true, true},
		{Offset{File: "mysql-bin.000002", Pos: 4}, Offset{File: "mysql-bin.000002", Pos: 4, ServerID: 1}, false, true},
		{Offset{File: "mysql-bin.000003", Pos: 4}, Offset{File: "mysql-bin.000002", Pos: 400}, false, true},
		{Offset{File: "mysql-bin.000003"}, Offset{File: "binlog.000004"}, false, false},
		{Offset{File: "mysql-bin"}, Offset{File: "mysql-bin"}, false, false},
		{Offset{}, Offset{File: "mysql-bin.000002"}, false, false},
	}
	for _, tt := range tests {
		if before, ok := tt.a.Before(tt.b); before != tt.before || ok != tt.comparable {
			t.Errorf("%s before %s: %v, %v", tt.a, tt.b, before, ok)
		}
	}
}

func TestKey(t *testing.T) {
	var controls strings.Builder
	for c := range rune(128) {
		controls.WriteRune(c)
	}
	// As Connect's JsonConverter writes them.
	tests := []struct {
		key  Key
		want string
	}{
		{Key{"inventory-connector", "dbserver1"}, `["inventory-connector",{"server":"dbserver1"}]`},
		{Key{"é😀表\u2028/", `a"b\c`}, "[\"é\\uD83D\\uDE00表\u2028/\",{\"server\":\"a\\\"b\\\\c\"}]"},
		{Key{controls.String(), "\u007f\u0080\ufeff"}, `["\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000B\f\r\u000E\u000F\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001A\u001B\u001C\u001D\u001E\u001F !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_` + "`" + `abcdefghijklmnopqrstuvwxyz{|}~` + "\x7f" + `",{"server":"` + "\x7f\u0080\ufeff" + `"}]`},
		{Key{"", ""}, `["",{"server":""}]`},
	}
	for _, tt := range tests {
		if got := tt.key.String(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
		if k, ok := ParseKey([]byte(tt.want)); !ok || k != tt.key {
			t.Errorf("ParseKey(%s) = %v, %v", tt.want, k, ok)
		}
	}
	if k, ok := ParseKey([]byte(` [ "a" , { "server" : "b" } ] `)); !ok || k != (Key{"a", "b"}) {
		t.Errorf("other spelling: %v, %v", k, ok)
	}
	for _, other := range []string{
		"", "null", `["a"]`, `["a",null]`, `["a",{}]`, `["a",{"server":1}]`, `[1,{"server":"b"}]`, `["a",{"filename":"b"}]`,
		`["a",{"server":"b","x":"y"}]`, `["a",{"server":"b"},1]`, `["a",{"server":"b"}]x`, `["tidemark:a",{"server":null}]`,
	} {
		if k, ok := ParseKey([]byte(other)); ok {
			t.Errorf("ParseKey(%s) = %v", other, k)
		}
	}
}

func FuzzParse(f *testing.F) {
	for i, line := range lines(f, "offsets.txt.gz") {
		if i%100 == 0 {
			f.Add([]byte(line))
		}
	}
	f.Add([]byte(`{"file":"a.1","pos":4,"x":"\ud83d\u0000","y":1e5,"z":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := Parse(text)
		if err != nil {
			return
		}
		first := o.Append(nil)
		again, err := Parse(first)
		if err != nil {
			t.Fatalf("%s: cannot read what was written: %v", first, err)
		}
		if second := again.Append(nil); string(second) != string(first) {
			t.Fatalf("%s\nbecame %s", first, second)
		}
	})
}

func BenchmarkOffsetAppend(b *testing.B) {
	o, err := Parse([]byte(`{"ts_sec":5,"file":"mysql-bin.000003","pos":479,"gtids":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23","row":1,"server_id":223344,"event":2}`))
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = o.Append(buf[:0])
	}
}
