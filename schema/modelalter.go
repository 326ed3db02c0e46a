package schema

import (
	"fmt"
	"slices"
	"strings"
)

// ALTER TABLE on tables in the form of SHOW CREATE TABLE.

// alterModel applies ALTER TABLE to a table's model. A table whose definition was put in by hand gets one first.
func (r *ddlRun) alterModel(t *catalogTable, a *alterTable) (*tableModel, error) {
	ctx := r.modelContext()
	m := t.model
	if m == nil {
		m = modelOf(t.def)
		m.mariaDB = ctx.mariaDB
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
