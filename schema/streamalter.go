package schema

import (
	"fmt"
	"slices"
	"strings"
)

// alterDefinition applies ALTER TABLE to a definition, which is not changed. RENAME TO is the caller's. databaseCharset is
// the real default character set of the table's database.
func alterDefinition(def *Definition, a *alterTable, databaseCharset string) (*Definition, error) {
	e := editDefinition(def, a.mariaDB)
	if e.def.ServerCharset == "" {
		e.def.ServerCharset = strings.ToLower(e.def.DefaultCharset)
	}
	// The server gives new columns the default that the table has after the statement.
	for _, item := range a.items {
		if item.kind == alterOptions {
			switch o := item.options; {
			case strings.EqualFold(o.charset, "default"):
				e.def.ServerCharset = databaseCharset
			case o.charset != "":
				e.def.ServerCharset = strings.ToLower(o.charset)
			case o.collate != "":
				e.def.ServerCharset = charsetOfCollation(o.collate)
			}
		}
	}
	for i := range a.items {
		if err := e.alter(&a.items[i]); err != nil {
			return nil, err
		}
	}
	for i := range a.items {
		if a.items[i].kind == alterConvert {
			e.convertServer(&a.items[i], databaseCharset)
		}
	}
	altered := e.definition()
	altered.settleCharset()
	if len(altered.Columns) == 0 {
		return nil, fmt.Errorf("table %s.%s would have no columns left", def.Database, def.Name)
	}
	return altered, nil
}

func (e *tableEditor) alter(item *alterItem) error {
	switch item.kind {
	case alterAddColumn:
		if item.exists && e.current(item.column.name) != nil {
			return nil
		}
		slot := newColumn(item.column)
		slot.place = item.place
		r := columnReader{e: e, c: slot}
		r.read(item.column)
		e.add(slot)
		r.takeUnique()
	case alterAddColumns:
		e.addColumns(item)
	case alterAddKey:
		e.addKey(item.key)
	case alterChangeColumn, alterModifyColumn:
		return e.changeColumn(item)
	case alterDropColumn:
		c := e.before(item.name)
		if c == nil {
			return e.missing(item)
		}
		c.dropped = true
		e.key = slices.DeleteFunc(e.key, func(k keyColumn) bool { return k.name == c.Name })
	case alterDropPrimary:
		e.key = nil
	case alterDefault:
		c := e.before(item.name)
		if c == nil {
			return e.missing(item)
		}
		switch {
		case item.drop:
			c.HasDefault, c.Default = false, nil
			c.setServerDefault(nil)
			return nil
		case !e.mariaDB:
			c.HasDefault, c.Default = true, item.deflt.setExpression()
		case item.deflt.read():
			c.HasDefault, c.Default = true, item.deflt.mariaExpression()
		}
		c.setServerDefault(&item.deflt)
	case alterRenameColumn:
		c := e.before(item.name)
		if c == nil {
			return e.missing(item)
		}
		e.rename(c, item.newName)
	case alterConvert:
		e.convert(item)
	case alterOptions:
		if item.options.comment != nil {
			e.def.setComment(*item.options.comment)
		}
	}
	return nil
}

// missing is the error for a column that is not there. Where the text allows for that, it is none.
func (e *tableEditor) missing(item *alterItem) error {
	if item.exists {
		return nil
	}
	return fmt.Errorf("table %s.%s is not known to have a column %s", e.def.Database, e.def.Name, item.name)
}

// addColumns is ADD (column, …). Debezium reads the keys in it before the columns, and of the attributes only NULL and
// DEFAULT.
func (e *tableEditor) addColumns(item *alterItem) {
	for _, element := range item.elements {
		if element.key != nil {
			e.addKey(element.key)
		}
	}
	for _, element := range item.elements {
		if element.column == nil {
			continue
		}
		slot := newColumn(element.column)
		r := columnReader{e: e, c: slot, listed: !e.mariaDB}
		r.read(element.column)
		e.add(slot)
		r.takeUnique()
	}
}

// changeColumn is CHANGE and MODIFY. CHANGE keeps of the column what the text does not say: its comment, and that it
// increments; MODIFY begins anew.
func (e *tableEditor) changeColumn(item *alterItem) error {
	c := e.before(item.name)
	if c == nil {
		return e.missing(item)
	}
	name := c.Name
	if item.kind == alterModifyColumn {
		c.ColumnDef = ColumnDef{Name: item.column.name, Length: -1, Scale: -1, Nullable: true}
	} else {
		c.HasDefault, c.Default = false, nil
		c.Length, c.Scale = -1, -1
	}
	if c.place = item.place; c.place.given() {
		e.placed = append(e.placed, c)
	}
	r := columnReader{e: e, c: c}
	r.read(item.column)
	r.takeUnique()
	if item.kind == alterChangeColumn {
		c.Name = name
		e.rename(c, item.newName)
	}
	return nil
}

// takeUnique takes an inline UNIQUE for the record's key, which Debezium does in ALTER TABLE only for MariaDB.
func (r *columnReader) takeUnique() {
	if r.e.mariaDB && r.unique && len(r.e.key) == 0 {
		r.e.key = []keyColumn{{r.c.Name, r.c}}
	}
}

func (e *tableEditor) rename(c *columnSlot, name string) {
	for i, k := range e.key {
		if k.name == c.Name && (k.slot == c || k.slot == nil) {
			e.key[i].name = name
		}
	}
	c.Name = name
}

// convert is CONVERT TO CHARACTER SET as Debezium sees it: the columns that there are by then get the character set.
func (e *tableEditor) convert(item *alterItem) {
	if item.charset == "" || strings.EqualFold(item.charset, "default") {
		return
	}
	e.def.DefaultCharset = item.charset
	for _, c := range e.columns {
		if !c.dropped && c.Charset != "" {
			c.Charset = item.charset
		}
	}
}

// convertServer is the same on the server: all text gets the character set, that of new columns included.
func (e *tableEditor) convertServer(item *alterItem, databaseCharset string) {
	charset := strings.ToLower(item.charset)
	if charset == "" || charset == "default" {
		charset = databaseCharset
	}
	e.def.ServerCharset = charset
	for _, c := range e.columns {
		if usesCharset(c.JDBCType) && c.ServerCharset() != "binary" {
			kept := ServerColumn{Charset: charset}
			if c.Server != nil {
				kept.Labels, kept.Default = c.Server.Labels, c.Server.Default
			}
			c.Server = &kept
		}
	}
}
