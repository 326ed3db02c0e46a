package offset

import (
	"slices"
	"strings"
	"testing"
)

// Members gives what the text has, in its order: the position of a history record is printed from it.
func TestMembersAreThoseOfTheText(t *testing.T) {
	for _, want := range lines(t, "offsets.txt.gz") {
		o, err := Parse([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for i, m := range o.Members() {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(appendJSONString(nil, m.Name))
			b.WriteByte(':')
			b.WriteString(m.Value)
		}
		if got := "{" + b.String() + "}"; got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
	if got := (Offset{}).Members(); got != nil {
		t.Errorf("of no offset: %v", got)
	}
}

// Debezium puts transaction_id first, then the counters as its own map of tables iterates, then what an incremental
// snapshot has. Built so, every captured offset inside a transaction comes out.
func TestOffsetsOfTransactionsFromTheirParts(t *testing.T) {
	const counter = "transaction_data_collection_order_"
	n := 0
	for _, want := range lines(t, "offsets.txt.gz") {
		o, err := Parse([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		id, ok := o.Member("transaction_id")
		if !ok {
			continue
		}
		n++
		counts := make(map[string]Member)
		var tables []string
		for _, m := range o.Extra {
			if table, ok := strings.CutPrefix(m.Name, counter); ok {
				counts[table] = m
				tables = append(tables, table)
			}
		}
		slices.Sort(tables) // whatever order they came in: no two captured tables share a bucket of the first map
		extra := []Member{TextMember("transaction_id", id)}
		for _, i := range hashOrder(tables) {
			extra = append(extra, counts[tables[i]])
		}
		plain := o.Without(func(name string) bool { return strings.HasPrefix(name, "transaction_") })
		if slices.ContainsFunc(plain.Extra, func(m Member) bool { return strings.HasPrefix(m.Name, "transaction_") }) {
			t.Fatalf("left: %s", plain)
		}
		rest := plain.Extra
		plain.Extra = nil
		if got := plain.With(extra...).With(rest...).String(); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
	if n < 150 {
		t.Fatalf("only %d offsets", n)
	}
}

// From facts of Java's HashMap: with 13 members the table grows and the order is another.
func TestMembersOfAGrownTable(t *testing.T) {
	o := Offset{TsSec: 5, File: "a.1", Pos: 4, GTIDs: EmptyGTIDSet(), Row: 1, ServerID: 7, Event: 2}.With(TextMember("transaction_id", "x:1"))
	for _, table := range []string{"sentinel", "customers", "order_lines", "orders", "nopk"} {
		o = o.With(NumberMember("transaction_data_collection_order_inventory."+table, 1))
	}
	var got []string
	for _, m := range o.Members() {
		got = append(got, strings.TrimPrefix(m.Name, "transaction_data_collection_order_inventory."))
	}
	want := "transaction_id ts_sec customers gtids server_id order_lines file pos orders sentinel row event nopk"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

func TestWithAndWithout(t *testing.T) {
	o := at(4)
	o.Extra = []Member{{"snapshot", `"BLOCKING"`}, {"x", "1"}}
	changed := o.With(NumberMember("x", 2), TextMember("y", "é\"\u0001"))
	if want := []Member{{"snapshot", `"BLOCKING"`}, {"x", "2"}, {"y", `"é\"\u0001"`}}; !slices.Equal(changed.Extra, want) {
		t.Errorf("got %v", changed.Extra)
	}
	if o.Extra[1].Value != "1" || len(o.Extra) != 2 {
		t.Errorf("the one before changed: %v", o.Extra)
	}
	less := changed.Without(func(name string) bool { return name == "x" })
	if want := []Member{{"snapshot", `"BLOCKING"`}, {"y", `"é\"\u0001"`}}; !slices.Equal(less.Extra, want) || len(changed.Extra) != 3 {
		t.Errorf("got %v of %v", less.Extra, changed.Extra)
	}
	if again := o.Without(func(string) bool { return false }); !slices.Equal(again.Extra, o.Extra) {
		t.Errorf("got %v", again.Extra)
	}
}

func TestEqualAndSame(t *testing.T) {
	side := &Side{Server: uuidA}
	o := at(4)
	o.Extra = []Member{{"a", "1"}, {"b", "2"}, {"c", "3"}}
	other := o
	other.Extra = []Member{{"c", "3"}, {"a", "1"}, {"b", "2"}}
	if !o.Equal(other) || !other.Equal(o) {
		t.Error("the order of Extra counts")
	}
	other.Extra = []Member{{"c", "3"}, {"a", "1"}, {"b", "3"}}
	if o.Equal(other) {
		t.Error("a value does not count")
	}
	other = o
	other.Side, other.Done = side, 3
	if !o.Equal(other) || o.Same(other) {
		t.Error("Side and Done count for Same alone")
	}
	again := other
	if !again.Same(other) {
		t.Error("not the same as its copy")
	}
	again.Done++
	if again.Same(other) {
		t.Error("Done does not count")
	}
}
