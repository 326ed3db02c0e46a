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
	m := &tableModel{database: name.Database, name: name.Table, charset: ctx.charset(r.serverCharset(name.Database))}
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

// alterModel applies ALTER TABLE to a table's model. A table whose definition was put in by hand gets one first.
func (r *ddlRun) alterModel(t *catalogTable, a *alterTable) (*tableModel, error) {
	ctx := r.modelContext()
	m := t.model
	if m == nil {
		m = modelOf(t.def)
	}
	e := &modelEditor{ctx: ctx, databaseCharset: r.serverCharset(t.name.Database), m: *m}
	e.m.keys = slices.Clone(m.keys)
	for _, c := range m.columns {
		e.slots = append(e.slots, &modelSlot{columnText: c, old: c.name})
	}
	for i := range a.items { // new columns have the default that the table gets
		if a.items[i].kind == alterOptions {
			e.m.setOptions(ctx, &a.items[i].options, e.databaseCharset)
		}
	}
	for i := range a.items { // keys are of the columns afterwards
		if err := e.columns(&a.items[i]); err != nil {
			return nil, err
		}
	}
	for i := range a.items {
		if a.items[i].kind == alterConvert { // all columns, those of the statement included
			e.convert(&a.items[i])
		}
	}
	e.m.columns = e.ordered()
	e.dropLost()
	for _, key := range e.keys {
		e.m.addKey(key)
	}
	e.m.fillPrimary()
	return &e.m, nil
}

// modelEditor is a model under change.
type modelEditor struct {
	ctx             modelContext
	databaseCharset string
	m               tableModel
	slots           []*modelSlot
	placed          []*modelSlot // those that are new or moved, in the order of the text
	keys            []*keyText   // that are new
}

type modelSlot struct {
	*columnText
	old     string
	dropped bool
	place   columnPlace
}

func (e *modelEditor) before(name string) *modelSlot {
	for _, s := range e.slots {
		if !s.dropped && s.old != "" && strings.EqualFold(s.old, name) {
			return s
		}
	}
	return nil
}

// take gives the normal form of a column and notes its keys.
func (e *modelEditor) take(c *columnText) *columnText {
	n, keys := e.m.take(e.ctx, c)
	e.keys = append(e.keys, keys...)
	return n
}

func (e *modelEditor) add(s *modelSlot) {
	e.slots = append(e.slots, s)
	e.placed = append(e.placed, s)
}

// columns applies what an item does to columns and drops of keys.
func (e *modelEditor) columns(item *alterItem) error {
	s := e.before(item.name)
	switch item.kind {
	case alterChangeColumn, alterModifyColumn, alterDropColumn, alterRenameColumn, alterDefault, alterVisibility:
		if s == nil {
			if item.exists {
				return nil
			}
			return fmt.Errorf("table %s.%s is not known to have a column %s", e.m.database, e.m.name, item.name)
		}
	}
	switch item.kind {
	case alterAddColumn:
		if item.exists && e.m.column(item.column.name) >= 0 {
			return nil
		}
		e.add(&modelSlot{columnText: e.take(item.column), place: item.place})
	case alterAddColumns:
		for _, element := range item.elements {
			if element.column != nil {
				e.add(&modelSlot{columnText: e.take(element.column)})
			} else {
				e.keys = append(e.keys, element.key)
			}
		}
	case alterAddKey:
		e.keys = append(e.keys, item.key)
	case alterChangeColumn, alterModifyColumn:
		s.columnText = e.take(item.column)
		if s.place = item.place; s.place.given() {
			e.placed = append(e.placed, s)
		}
	case alterRenameColumn:
		renamed := *s.columnText
		renamed.name = printable(item.newName)
		s.columnText = &renamed
	case alterDropColumn:
		s.dropped = true
	case alterDefault:
		s.setDefault(e.ctx, item)
	case alterDropPrimary:
		e.m.keys = slices.DeleteFunc(e.m.keys, func(k *keyText) bool { return k.kind == keyPrimary })
	case alterDropKey:
		e.m.keys = slices.DeleteFunc(e.m.keys, func(k *keyText) bool { return strings.EqualFold(k.name, item.name) })
	case alterRenameKey:
		if i := e.m.key(item.name); i >= 0 {
			renamed := *e.m.keys[i]
			renamed.name = item.newName
			e.m.keys[i] = &renamed
		}
	}
	return nil
}

func (s *modelSlot) setDefault(ctx modelContext, item *alterItem) {
	changed := *s.columnText
	changed.attributes = slices.DeleteFunc(slices.Clone(changed.attributes), func(a attribute) bool { return a.kind == attrDefault })
	if !item.drop && item.deflt.kind != defaultNull {
		changed.attributes = append(changed.attributes, attribute{kind: attrDefault, deflt: ctx.normalDefault(&changed.typ, item.deflt)})
	}
	s.columnText = &changed
}

// convert is CONVERT TO CHARACTER SET: all text gets it, and types that become too small for their characters grow.
func (e *modelEditor) convert(item *alterItem) {
	charset := item.charset
	if strings.EqualFold(charset, "default") || charset == "" {
		charset = e.databaseCharset
	}
	e.m.charset = e.ctx.charset(charset)
	for _, s := range e.slots {
		if s.dropped || s.typ.charset == "" || s.typ.charset == "binary" {
			continue
		}
		converted := *s.columnText
		if bytesPerRune(charset) > bytesPerRune(converted.typ.charset) {
			switch converted.typ.words[0] {
			case "TINYTEXT":
				converted.typ.words = []string{"TEXT"}
			case "TEXT":
				converted.typ.words = []string{"MEDIUMTEXT"}
			case "MEDIUMTEXT":
				converted.typ.words = []string{"LONGTEXT"}
			}
		}
		converted.typ.charset = charset
		converted.typ = e.ctx.normalType(&converted.typ, charset)
		s.columnText = &converted
	}
}

// ordered puts the columns into their places, as [tableEditor.ordered] does.
func (e *modelEditor) ordered() []*columnText {
	var list []*modelSlot
	for _, s := range e.slots {
		if !s.dropped && s.old != "" {
			list = append(list, s)
		}
	}
	for _, s := range e.placed {
		list = slices.DeleteFunc(list, func(x *modelSlot) bool { return x == s })
		list = slices.Insert(list, placeOf(len(list), s.place, func(i int) string { return list[i].name }), s)
	}
	columns := make([]*columnText, len(list))
	for i, s := range list {
		columns[i] = s.columnText
	}
	return columns
}

// dropLost takes columns out of keys that are no longer there, and gives renamed ones their new names.
func (e *modelEditor) dropLost() {
	var keys []*keyText
	for _, key := range e.m.keys {
		k := *key
		k.parts = nil
		for _, part := range key.parts {
			if part.column != "" {
				if s := e.slot(part.column); s != nil {
					if s.dropped {
						continue
					}
					part.column = s.name
				}
			}
			k.parts = append(k.parts, part)
		}
		if len(k.parts) > 0 {
			keys = append(keys, &k)
		}
	}
	e.m.keys = keys
}

// slot finds a column by its old name, else by its new one.
func (e *modelEditor) slot(name string) *modelSlot {
	for _, s := range e.slots {
		if strings.EqualFold(s.old, name) {
			return s
		}
	}
	for _, s := range e.slots {
		if strings.EqualFold(s.name, name) {
			return s
		}
	}
	return nil
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
