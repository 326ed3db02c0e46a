package schema

import (
	"fmt"
	"slices"
	"strings"
)

// DDL on tables in the form of SHOW CREATE TABLE.

func (r *ddlRun) modelContext() modelContext {
	return modelContext{mariaDB: r.c.opts.MariaDB, version: r.c.opts.Version, realAsFloat: r.s.RealAsFloat}
}

// newModel is the table that CREATE TABLE makes.
func (r *ddlRun) newModel(name TableName, c *createTable) *tableModel {
	ctx := r.modelContext()
	m := &tableModel{database: name.Database, name: name.Table, mariaDB: ctx.mariaDB, charset: ctx.charset(r.serverCharset(name.Database))}
	m.setOptions(ctx, &c.options, r.serverCharset(name.Database))
	for _, e := range c.elements {
		if e.column == nil {
			m.addKey(e.key)
			continue
		}
		column, keys := m.take(ctx, e.column)
		m.columns = append(m.columns, column)
		for _, key := range keys {
			m.addKey(key)
		}
	}
	m.fillPrimary()
	return m
}

// fillPrimary makes the columns of the primary key NOT NULL, which they stay when the key goes.
func (m *tableModel) fillPrimary() {
	for _, key := range m.keys {
		if key.kind != keyPrimary {
			continue
		}
		for _, part := range key.parts {
			i := m.column(part.column)
			if i < 0 || m.columns[i].has(attrNotNull) {
				continue
			}
			filled := *m.columns[i]
			filled.attributes = append(slices.Clone(filled.attributes), attribute{kind: attrNotNull})
			m.columns[i] = &filled
		}
	}
}

func (m *tableModel) setOptions(ctx modelContext, o *tableOptions, databaseCharset string) {
	switch {
	case strings.EqualFold(o.charset, "default"):
		m.charset = ctx.charset(databaseCharset)
	case o.charset != "":
		m.charset = ctx.charset(o.charset)
	case o.collate != "":
		m.charset = ctx.charset(charsetOfCollation(o.collate))
	}
	if o.comment != nil {
		m.comment = withoutQuotes(quoteText(printable(unescaped(*o.comment, '\'', true))))
	}
}

// take gives the normal form of a column, and the keys that it brings.
func (m *tableModel) take(ctx modelContext, c *columnText) (n *columnText, keys []*keyText) {
	n = &columnText{name: printable(c.name)}
	addKey := func(kind keyKind) { keys = append(keys, &keyText{kind: kind, parts: []keyPart{{column: n.name}}}) }
	charset := m.charset
	for _, a := range c.attributes {
		switch {
		case a.kind == attrCollate:
			charset = charsetOfCollation(a.value)
		case a.kind == attrCharset:
			charset = a.value
		}
	}
	n.typ = ctx.normalType(&c.typ, charset)
	serial := c.typ.words[0] == "SERIAL"
	notNull, auto := serial, serial
	var deflt *defaultText
	for _, a := range c.attributes {
		switch a.kind {
		case attrNull:
			notNull = false
		case attrNotNull:
			notNull = true
		case attrDefault:
			deflt = &a.deflt
		case attrAutoIncrement:
			auto = true
		case attrSerial:
			notNull, auto = true, true
		case attrPrimary:
			notNull = true
			addKey(keyPrimary)
		case attrUnique:
			addKey(keyUnique)
		case attrComment:
			if comment := printable(a.value); comment != "" {
				n.attributes = append(n.attributes, attribute{kind: attrComment, text: quoteText(comment), value: comment})
			}
		case attrOnUpdate, attrGenerated, attrInvisible:
			n.attributes = append(n.attributes, a)
		}
	}
	if serial || c.has(attrSerial) {
		addKey(keyUnique)
	}
	if notNull {
		n.attributes = append(n.attributes, attribute{kind: attrNotNull})
	}
	if auto {
		n.attributes = append(n.attributes, attribute{kind: attrAutoIncrement})
	}
	if deflt != nil && deflt.kind != defaultNull {
		n.attributes = append(n.attributes, attribute{kind: attrDefault, deflt: ctx.normalDefault(&n.typ, *deflt)})
	}
	return n, keys
}

// addKey adds a key, under the name that the server gives it when it has none: that of its first column.
func (m *tableModel) addKey(key *keyText) {
	if key.kind != keyPrimary && key.kind != keyUnique {
		return
	}
	k := *key
	if k.kind == keyPrimary {
		k.name = "PRIMARY"
	} else if k.name == "" {
		base := "functional_index"
		if k.parts[0].column != "" {
			base = k.parts[0].column
		}
		k.name = base
		for n := 2; m.key(k.name) >= 0; n++ {
			k.name = fmt.Sprintf("%s_%d", base, n)
		}
	}
	m.keys = append(m.keys, &k)
}

// key finds a key by name; -1 if there is none.
func (m *tableModel) key(name string) int {
	return slices.IndexFunc(m.keys, func(k *keyText) bool { return strings.EqualFold(k.name, name) })
}

// modelOf is a model for a definition that was not made by DDL here. Its keys have no names, so DROP INDEX finds none of
// them.
func modelOf(def *Definition) *tableModel {
	m := &tableModel{database: def.Database, name: def.Name, charset: def.DefaultCharset, comment: def.Comment}
	for i := range def.Columns {
		m.columns = append(m.columns, def.Columns[i].text())
	}
	if len(def.Key) > 0 {
		key := &keyText{kind: keyUnique, name: "\x00"}
		if def.KeyKind != KeyUnique {
			key.kind, key.name = keyPrimary, "PRIMARY"
		}
		for _, name := range def.Key {
			key.parts = append(key.parts, keyPart{column: name})
		}
		m.keys = append(m.keys, key)
	}
	return m
}

// text is the column in the words of SHOW CREATE TABLE.
func (c *ColumnDef) text() *columnText {
	words := strings.Fields(c.Type)
	t := &columnText{name: c.Name}
	for _, word := range words {
		switch word {
		case "UNSIGNED", "ZEROFILL":
			t.typ.options = append(t.typ.options, word)
		case "SIGNED", "BINARY":
			if len(t.typ.words) == 0 {
				t.typ.words = append(t.typ.words, word)
			}
		default:
			t.typ.words = append(t.typ.words, word)
		}
	}
	if len(t.typ.words) == 0 {
		t.typ.words = []string{"UNKNOWN"}
	}
	labels := c.ServerLabels()
	for i, label := range c.Labels {
		t.typ.labels = append(t.typ.labels, labelText{"'" + label + "'", labels[i]})
	}
	if c.Length >= 0 && len(labels) == 0 {
		t.typ.numbers = append(t.typ.numbers, fmt.Sprint(c.Length))
		if c.Scale >= 0 {
			t.typ.numbers = append(t.typ.numbers, fmt.Sprint(c.Scale))
		}
	}
	t.typ.charset = c.ServerCharset()
	add := func(kind attributeKind) { t.attributes = append(t.attributes, attribute{kind: kind}) }
	if !c.Nullable {
		add(attrNotNull)
	}
	if c.AutoInc {
		add(attrAutoIncrement)
	}
	if c.Default != nil {
		text := *c.Default
		t.attributes = append(t.attributes, attribute{kind: attrDefault, deflt: defaultText{kind: defaultString, text: "'" + text + "'", value: unescaped(text, '\'', true)}})
	} else if c.HasDefault && !c.Nullable {
		t.attributes = append(t.attributes, attribute{kind: attrDefault, deflt: defaultText{kind: defaultExpression}})
	}
	if c.Comment != "" {
		t.attributes = append(t.attributes, attribute{kind: attrComment, text: "'" + c.Comment + "'", value: unescaped(c.Comment, '\'', true)})
	}
	return t
}
