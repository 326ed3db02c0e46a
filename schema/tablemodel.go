package schema

import (
	"fmt"
	"slices"
	"strings"
)

// tableModel is a table as the server has it, in the words of SHOW CREATE TABLE: types, defaults and keys in its normal
// form. It is not changed once it is in a catalog.
type tableModel struct {
	database, name string
	mariaDB        bool
	charset        string // default character set
	comment        string // as SHOW CREATE TABLE writes it
	columns        []*columnText
	keys           []*keyText // PRIMARY and UNIQUE keys only, as they came; all of them have names
}

func (m *tableModel) like(name TableName) *tableModel {
	if m == nil {
		return nil
	}
	like := *m
	like.database, like.name = name.Database, name.Table
	return &like
}

// show puts a model in, with the definition that its SHOW CREATE TABLE gives.
func (t *catalogTable) show(m *tableModel) error {
	if len(m.columns) == 0 {
		return fmt.Errorf("table %s.%s would have no columns", m.database, m.name)
	}
	t.model, t.def = m, m.definition()
	return t.def.unique()
}

func (m *tableModel) definition() *Definition {
	c := &createTable{options: tableOptions{charset: m.charset}, mariaDB: m.mariaDB}
	if m.comment != "" {
		c.options.comment = &m.comment
	}
	for _, column := range m.columns {
		c.elements = append(c.elements, tableElement{column: column})
	}
	for _, key := range m.sortedKeys() {
		c.elements = append(c.elements, tableElement{key: key})
	}
	def := createDefinition(m.database, m.name, c, m.charset, m.charset)
	def.chooseKey(c)
	return def
}

// column finds a column by name; -1 if there is none.
func (m *tableModel) column(name string) int {
	return slices.IndexFunc(m.columns, func(c *columnText) bool { return strings.EqualFold(c.name, name) })
}

// has says whether a column has an attribute.
func (c *columnText) has(kind attributeKind) bool {
	return slices.ContainsFunc(c.attributes, func(a attribute) bool { return a.kind == kind })
}

// virtual says whether a column is generated and not stored.
func (c *columnText) virtual() bool {
	return slices.ContainsFunc(c.attributes, func(a attribute) bool { return a.kind == attrGenerated && !a.stored })
}

// sortedKeys are the keys in the order in which the server keeps them: the primary key, then those without NULL,
// prefixes and virtual columns.
func (m *tableModel) sortedKeys() []*keyText {
	primary := map[string]bool{}
	for _, key := range m.keys {
		if key.kind == keyPrimary {
			for _, part := range key.parts {
				primary[strings.ToLower(part.column)] = true
			}
		}
	}
	rank := func(key *keyText) int {
		if key.kind == keyPrimary {
			return 0
		}
		nullable, prefix, virtual := false, false, false
		for _, part := range key.parts {
			i := m.column(part.column)
			if i < 0 {
				virtual, nullable = true, true // an expression is a hidden virtual column
				continue
			}
			nullable = nullable || !m.columns[i].has(attrNotNull) && !primary[strings.ToLower(part.column)]
			prefix = prefix || part.prefix
			virtual = virtual || m.columns[i].virtual()
		}
		n := 1
		for _, flag := range []bool{nullable, prefix, virtual} {
			n *= 2
			if flag {
				n++
			}
		}
		return n
	}
	sorted := slices.Clone(m.keys)
	slices.SortStableFunc(sorted, func(a, b *keyText) int { return rank(a) - rank(b) })
	return sorted
}

// chooseKey says what the key of a definition in the form of SHOW CREATE TABLE is, and lists the keys that the server
// may take when there is no primary key. Debezium takes keys of prefixes and virtual columns, too; the server does not.
func (d *Definition) chooseKey(c *createTable) {
	d.KeyKind = KeyUnique
	virtual := map[string]bool{}
	for _, e := range c.elements {
		switch {
		case e.column != nil:
			if e.column.has(attrPrimary) {
				d.KeyKind = KeyPrimary
			}
			virtual[strings.ToLower(e.column.name)] = e.column.virtual()
		case e.key.kind == keyPrimary:
			d.KeyKind = KeyPrimary
		}
	}
	if d.KeyKind == KeyPrimary {
		return
	}
	for _, e := range c.elements {
		if e.key == nil || e.key.kind != keyUnique || e.key.hasExpression() {
			continue
		}
		whole := !slices.ContainsFunc(e.key.parts, func(p keyPart) bool {
			i := d.index(p.column)
			return i < 0 || d.Columns[i].Nullable || p.prefix || virtual[strings.ToLower(p.column)]
		})
		if whole {
			d.Unique = append(d.Unique, e.key.columns())
		}
	}
}

// index finds a column by name, whose case does not matter in MySQL; -1 if there is none.
func (d *Definition) index(name string) int {
	return slices.IndexFunc(d.Columns, func(c ColumnDef) bool { return strings.EqualFold(c.Name, name) })
}
