package avro

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// parse reads the text of a schema. Names are taken as they are; what a name or a default must be is for Check.
func parse(text string) (*node, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("the Avro schema is not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("the Avro schema has something behind its end")
	}
	p := parser{named: map[string]*node{}}
	n, err := p.node(v, "")
	if err != nil {
		return nil, fmt.Errorf("the Avro schema is not valid%s: %w", p.place(), err)
	}
	return n, nil
}

type parser struct {
	named map[string]*node
	path  []string // the fields down to what is read; left as it is by an error
}

func (p *parser) place() string {
	if len(p.path) == 0 {
		return ""
	}
	return " at " + strings.Join(p.path, ".")
}

// node reads a type in a namespace.
func (p *parser) node(v any, space string) (*node, error) {
	switch v := v.(type) {
	case string:
		return p.reference(v, space)
	case []any:
		return p.union(v, space)
	case map[string]any:
		return p.object(v, space)
	}
	return nil, errors.New("a type is a name, a list or an object")
}

func (p *parser) reference(name, space string) (*node, error) {
	if kind(name).primitive() {
		return &node{kind: kind(name)}, nil
	}
	full := name
	if !strings.Contains(name, ".") {
		full = joinName(space, name)
	}
	if n := p.named[full]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("no type is named %s", strconv.Quote(full))
}

func (p *parser) union(list []any, space string) (*node, error) {
	n := &node{kind: kindUnion}
	seen := map[string]bool{}
	for _, v := range list {
		b, err := p.node(v, space)
		if err != nil {
			return nil, err
		}
		if b.kind == kindUnion {
			return nil, errors.New("a union has a union in it")
		}
		if seen[b.label()] {
			return nil, fmt.Errorf("a union has %s twice", b.label())
		}
		seen[b.label()] = true
		n.branches = append(n.branches, b)
	}
	return n, nil
}

func (p *parser) object(o map[string]any, space string) (*node, error) {
	name, ok := o["type"].(string)
	if !ok {
		if o["type"] == nil {
			return nil, errors.New("a type has no \"type\"")
		}
		return p.node(o["type"], space)
	}
	n := &node{kind: kind(name)}
	n.logical, _ = o["logicalType"].(string)
	n.connect, _ = o["connect.name"].(string)
	if s, ok := o["scale"].(json.Number); ok {
		n.scale = s.String()
	}
	var err error
	switch n.kind {
	case kindNull, kindBoolean, kindInt, kindLong, kindFloat, kindDouble, kindBytes, kindString:
		return n, nil
	case kindArray:
		n.items, err = p.part(o, "items", space)
		return n, err
	case kindMap:
		n.items, err = p.part(o, "values", space)
		return n, err
	case kindRecord, kindEnum, kindFixed:
		return n, p.define(n, o, space)
	}
	return p.reference(name, space)
}

func (p *parser) part(o map[string]any, name, space string) (*node, error) {
	v, ok := o[name]
	if !ok {
		return nil, fmt.Errorf("a type has no %q", name)
	}
	return p.node(v, space)
}

// define reads a type with a name.
func (p *parser) define(n *node, o map[string]any, space string) error {
	name, ok := o["name"].(string)
	if !ok {
		return fmt.Errorf("a type of kind %s has no name", n.kind)
	}
	if strings.Contains(name, ".") {
		space, name = splitFull(name)
	} else if s, ok := o["namespace"].(string); ok {
		space = s
	}
	n.name = joinName(space, name)
	if p.named[n.name] != nil {
		return fmt.Errorf("%s is defined twice", n.name)
	}
	p.named[n.name] = n
	for _, a := range texts(o["aliases"]) {
		if !strings.Contains(a, ".") {
			a = joinName(space, a)
		}
		n.aliases = append(n.aliases, a)
	}
	switch n.kind {
	case kindEnum:
		n.symbols = texts(o["symbols"])
		n.fallback, _ = o["default"].(string)
		if len(n.symbols) == 0 {
			return fmt.Errorf("the enum %s has no symbols", n.name)
		}
		return nil
	case kindFixed:
		size, ok := o["size"].(json.Number)
		if !ok {
			return fmt.Errorf("%s is fixed and has no size", n.name)
		}
		var err error
		if n.size, err = strconv.ParseInt(size.String(), 10, 32); err != nil || n.size < 0 {
			return fmt.Errorf("%s is fixed and has the size %s", n.name, size)
		}
		return nil
	}
	list, ok := o["fields"].([]any)
	if !ok {
		return fmt.Errorf("the record %s has no list of fields", n.name)
	}
	return p.fields(n, list, space)
}

func (p *parser) fields(n *node, list []any, space string) error {
	seen := map[string]bool{}
	for i, v := range list {
		o, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("field %d of %s is no object", i, n.name)
		}
		f := field{aliases: texts(o["aliases"])}
		if f.name, ok = o["name"].(string); !ok {
			return fmt.Errorf("field %d of %s has no name", i, n.name)
		}
		if seen[f.name] {
			return fmt.Errorf("%s has two fields named %s", n.name, strconv.Quote(f.name))
		}
		seen[f.name] = true
		f.defaultValue, f.hasDefault = o["default"]
		p.path = append(p.path, f.name)
		var err error
		if f.typ, err = p.part(o, "type", space); err != nil {
			return err
		}
		p.path = p.path[:len(p.path)-1]
		n.fields = append(n.fields, f)
	}
	return nil
}

// texts returns the strings of a list.
func texts(v any) []string {
	list, _ := v.([]any)
	var all []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
