package avro

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/schema"
	"pgregory.net/rapid"
)

// mutate returns a copy of t in which some things are different.
func (r *randomTypes) mutate(t *schema.Type, depth int) *schema.Type {
	c := *t
	if r.chance(10) {
		c.Optional = !c.Optional
	}
	if r.chance(7) {
		n := r.any(depth)
		n.Optional = c.Optional
		return n
	}
	if c.Items != nil && c.Default == nil {
		c.Items = r.mutate(c.Items, depth)
	}
	if c.Values != nil {
		c.Values = r.mutate(c.Values, depth)
	}
	if c.Type != "struct" {
		return &c
	}
	if r.chance(5) && c.Name != "" {
		c.Name = r.pick("q.t.Value", "q.t.New")
	}
	c.Fields = nil
	for _, f := range t.Fields {
		if r.chance(10) {
			continue
		}
		c.Fields = append(c.Fields, schema.Field{Name: f.Name, Type: r.mutate(f.Type, max(0, depth-1))})
	}
	if r.chance(15) {
		c.Fields = append([]schema.Field{{Name: "more", Type: r.any(max(0, depth-1))}}, c.Fields...)
	}
	return &c
}

// drawPair draws two schemas that have much in common.
func drawPair(t *rapid.T) [2]string {
	r := randomTypes{t: t}
	typ := r.structure(3)
	var pair [2]string
	for i, typ := range [...]*schema.Type{typ, r.mutate(typ, 2)} {
		text, err := Options{}.AppendSchema(nil, typ)
		if err != nil {
			t.Fatal(err)
		}
		pair[i] = string(text)
	}
	return pair
}

// breaks says which directions the changes break.
func breaks(changes []Change) (backward, forward bool) {
	for _, c := range changes {
		backward = backward || c.Backward
		forward = forward || c.Forward
	}
	return backward, forward
}

// TestCompareFindsWhatBreaks holds that the changes break a direction exactly if the whole cannot be read in it.
func TestCompareFindsWhatBreaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pair := drawPair(t)
		a, err := parse(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		b, err := parse(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		changes, err := Compare(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		var r reading
		backward, forward := breaks(changes)
		if backward == r.can(b, a) || forward == r.can(a, b) {
			t.Fatalf("earlier reads later: %v, later reads earlier: %v, changes: %v\n%s\n%s", r.can(a, b), r.can(b, a), changes, pair[0], pair[1])
		}
		same, err := SameBytes(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if same == "" && len(changes) > 0 {
			t.Fatalf("the same bytes in spite of %v", changes)
		}
	})
}

// TestCompareBreaksWhatAvroJavaDoes compares with SchemaCompatibility of Avro Java 1.12.1, which registries ask:
// compatibility.jsonl has pairs of schemas and whether the later reads the earlier (backward) and the other way round.
func TestCompareBreaksWhatAvroJavaDoes(t *testing.T) {
	type pair struct {
		Earlier, Later    string
		Backward, Forward bool
	}
	pairs := lines[pair](t, "compatibility.jsonl")
	if len(pairs) < 1000 {
		t.Fatalf("%d pairs", len(pairs))
	}
	for _, p := range pairs {
		changes, err := Compare(p.Earlier, p.Later)
		if err != nil {
			t.Fatal(err)
		}
		if backward, forward := breaks(changes); backward == p.Backward || forward == p.Forward {
			t.Fatalf("Java: backward %v, forward %v; changes: %v\n%s\n%s", p.Backward, p.Forward, changes, p.Earlier, p.Later)
		}
	}
}
