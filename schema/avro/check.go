package avro

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/linkedin/goavro/v2"
)

// Check says whether Avro takes text as a schema: whether names, references, unions and defaults are as they have to be,
// and goavro compiles it. A name that Avro cannot carry is a *[NameError]. It takes milliseconds for
// a wide table: once for each schema is enough.
func Check(text string) error {
	n, err := parse(text)
	if err != nil {
		return err
	}
	c := checker{seen: map[*node]bool{}}
	if err := c.check(n); err != nil {
		return err
	}
	_, err = goavro.NewCodec(text)
	if err == nil {
		return nil
	}
	// goavro does not take all that is valid: defaults of nullable decimals, numbers beyond 2⁵³ in the default of a union,
	// letters that are not ASCII. What it may object to there was looked at above.
	bare, _ := plain(n)
	if _, bareErr := goavro.NewCodec(bare); bareErr != nil {
		return fmt.Errorf("the Avro schema does not compile: %w", err)
	}
	return nil
}

// checker looks at what parse leaves open.
type checker struct {
	path []string
	seen map[*node]bool
}

func (c *checker) check(n *node) error {
	if c.seen[n] {
		return nil
	}
	c.seen[n] = true
	if n.kind.named() {
		if why := fullNameFault(n.name); why != "" {
			return &NameError{Name: n.name, Path: slices.Clone(c.path), why: why}
		}
	}
	for _, s := range n.symbols {
		if why := nameFault(s); why != "" {
			return fmt.Errorf("the enum %s has the symbol %s: %s", n.name, strconv.Quote(s), why)
		}
	}
	for i := range n.fields {
		f := &n.fields[i]
		c.path = append(c.path, f.name)
		if why := nameFault(f.name); why != "" {
			return &NameError{Name: f.name, Field: true, Path: slices.Clone(c.path), why: why}
		}
		if err := c.check(f.typ); err != nil {
			return err
		}
		if f.hasDefault && !fits(f.typ, f.defaultValue) {
			return fmt.Errorf("the default of the field %s does not fit its type, %s", strings.Join(c.path, "."), f.typ.words())
		}
		c.path = c.path[:len(c.path)-1]
	}
	if n.items != nil {
		return c.check(n.items)
	}
	for _, b := range n.branches {
		if err := c.check(b); err != nil {
			return err
		}
	}
	return nil
}

// fits says whether v can be a default of the type. That of a union is one of its first branch.
func fits(n *node, v any) bool {
	switch n.kind {
	case kindNull:
		return v == nil
	case kindBoolean:
		_, ok := v.(bool)
		return ok
	case kindInt, kindLong:
		number, _ := v.(json.Number)
		i, err := strconv.ParseInt(number.String(), 10, 64)
		return err == nil && (n.kind == kindLong || i >= math.MinInt32 && i <= math.MaxInt32)
	case kindFloat, kindDouble:
		_, ok := v.(json.Number)
		return ok
	case kindString:
		_, ok := v.(string)
		return ok
	case kindBytes, kindFixed:
		s, ok := v.(string)
		for _, r := range s {
			ok = ok && r <= 0xff
		}
		return ok
	case kindEnum:
		s, ok := v.(string)
		return ok && slices.Contains(n.symbols, s)
	case kindArray:
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { return !fits(n.items, v) })
	case kindMap:
		o, ok := v.(map[string]any)
		for _, v := range o {
			ok = ok && fits(n.items, v)
		}
		return ok
	case kindUnion:
		return len(n.branches) > 0 && fits(n.branches[0], v)
	}
	o, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for i := range n.fields {
		f := &n.fields[i]
		if v, ok := o[f.name]; ok && !fits(f.typ, v) || !ok && !f.hasDefault {
			return false
		}
	}
	return true
}
