package schema

func (p *ddlParser) alterTable() (statement, error) {
	a := &alterTable{mariaDB: p.mariaDB}
	s := statement{kind: stmtAlterTable, alter: a}
	a.ifExists = p.word("IF", "EXISTS")
	var err error
	if a.table, err = p.tableRef(); err != nil {
		return s, err
	}
	for p.isWord("WAIT") || p.isWord("NOWAIT") { // MariaDB
		if p.next(); p.peek().kind == tokenNumber {
			p.next()
		}
	}
	for !p.atEnd() {
		if p.partitioning() {
			break
		}
		item, err := p.alterItem()
		if err != nil {
			return s, err
		}
		a.items = append(a.items, item)
		if p.punct(",") {
			continue
		}
		if !p.atEnd() && !p.partitioning() {
			return s, p.errorf("a part of ALTER TABLE does not end")
		}
	}
	return s, p.skipStatement()
}

// partitioning says whether the rest of ALTER TABLE is about partitions.
func (p *ddlParser) partitioning() bool {
	switch {
	case p.isWord("PARTITION"), p.isWord("REMOVE", "PARTITIONING"), p.isWord("CONVERT", "PARTITION"), p.isWord("CONVERT", "TABLE"):
		return true
	}
	for _, verb := range []string{
		"ADD", "DROP", "TRUNCATE", "REORGANIZE", "EXCHANGE", "COALESCE", "REBUILD", "OPTIMIZE", "ANALYZE", "CHECK", "REPAIR",
		"DISCARD", "IMPORT",
	} {
		if p.isWord(verb, "PARTITION") {
			return true
		}
	}
	return false
}

func (p *ddlParser) alterItem() (alterItem, error) {
	switch {
	case p.word("ADD"):
		return p.add()
	case p.word("DROP"):
		return p.dropItem()
	case p.word("CHANGE"):
		return p.change()
	case p.word("MODIFY"):
		return p.modify()
	case p.word("ALTER"):
		return p.alterColumn()
	case p.word("RENAME"):
		return p.renameItem()
	case p.word("CONVERT", "TO"):
		return p.convert()
	case p.word("ORDER", "BY"):
		return alterItem{}, p.orderBy()
	case p.word("FORCE"), p.word("ENABLE", "KEYS"), p.word("DISABLE", "KEYS"), p.word("DISCARD", "TABLESPACE"),
		p.word("IMPORT", "TABLESPACE"), p.word("WITH", "VALIDATION"), p.word("WITHOUT", "VALIDATION"):
		return alterItem{}, nil
	case p.word("ALGORITHM"), p.word("LOCK"):
		p.punct("=")
		p.next()
		return alterItem{}, nil
	}
	item := alterItem{kind: alterOptions}
	for !p.atEnd() && !p.peek().isPunct(",") && !p.partitioning() {
		if err := p.tableOption(&item.options); err != nil {
			return item, err
		}
	}
	return item, nil
}

func (p *ddlParser) add() (alterItem, error) {
	var item alterItem
	column := p.word("COLUMN")
	item.exists = p.word("IF", "NOT", "EXISTS")
	var err error
	switch {
	case p.punct("("):
		item.kind = alterAddColumns
		item.elements, err = p.elements()
		return item, err
	case !column && p.isWord("SYSTEM", "VERSIONING"):
		return item, p.skipElement()
	case !column && p.keyFollows():
		item.kind = alterAddKey
		item.key, err = p.key()
		return item, err
	}
	item.kind = alterAddColumn
	if item.column, err = p.column(); err != nil {
		return item, err
	}
	item.place, err = p.place()
	return item, err
}

// place reads FIRST or AFTER, if they are there.
func (p *ddlParser) place() (columnPlace, error) {
	switch {
	case p.word("FIRST"):
		return columnPlace{first: true}, nil
	case p.word("AFTER"):
		name, err := p.name()
		return columnPlace{after: name}, err
	}
	return columnPlace{}, nil
}

func (p *ddlParser) dropItem() (alterItem, error) {
	var item alterItem
	var err error
	switch {
	case p.word("PRIMARY", "KEY"):
		item.kind = alterDropPrimary
		return item, nil
	case p.isWord("FOREIGN", "KEY"), p.isWord("CHECK"), p.isWord("CONSTRAINT"), p.isWord("PERIOD", "FOR"),
		p.isWord("SYSTEM", "VERSIONING"):
		constraint := p.isWord("CONSTRAINT")
		p.next()
		if constraint { // it may be a key
			item.kind = alterDropKey
			p.word("IF", "EXISTS")
			item.name, err = p.name()
			return item, err
		}
		return item, p.skipElement()
	case p.word("KEY"), p.word("INDEX"):
		item.kind = alterDropKey
		item.exists = p.word("IF", "EXISTS")
		item.name, err = p.name()
		return item, err
	}
	item.kind = alterDropColumn
	p.word("COLUMN")
	item.exists = p.word("IF", "EXISTS")
	if item.name, err = p.name(); err != nil {
		return item, err
	}
	p.oneOf("RESTRICT", "CASCADE")
	return item, nil
}

func (p *ddlParser) change() (alterItem, error) {
	item := alterItem{kind: alterChangeColumn}
	p.word("COLUMN")
	item.exists = p.word("IF", "EXISTS")
	var err error
	if item.name, err = p.name(); err != nil {
		return item, err
	}
	if item.column, err = p.column(); err != nil {
		return item, err
	}
	item.newName = item.column.name
	item.place, err = p.place()
	return item, err
}

func (p *ddlParser) modify() (alterItem, error) {
	item := alterItem{kind: alterModifyColumn}
	p.word("COLUMN")
	item.exists = p.word("IF", "EXISTS")
	var err error
	if item.column, err = p.column(); err != nil {
		return item, err
	}
	item.name = item.column.name
	item.place, err = p.place()
	return item, err
}

func (p *ddlParser) alterColumn() (alterItem, error) {
	var item alterItem
	if p.isWord("INDEX") || p.isWord("KEY") || p.isWord("CHECK") || p.isWord("CONSTRAINT") {
		return item, p.skipElement()
	}
	p.word("COLUMN")
	item.exists = p.word("IF", "EXISTS")
	var err error
	if item.name, err = p.name(); err != nil {
		return item, err
	}
	switch {
	case p.word("SET", "DEFAULT"):
		item.kind = alterDefault
		item.deflt, err = p.defaultValue()
	case p.word("DROP", "DEFAULT"):
		item.kind, item.drop = alterDefault, true
	case p.word("SET", "VISIBLE"), p.word("SET", "INVISIBLE"):
		item.kind, item.drop = alterVisibility, p.tokens[p.pos-1].is("VISIBLE")
	default:
		err = p.errorf("ALTER COLUMN %s says nothing", item.name)
	}
	return item, err
}

func (p *ddlParser) renameItem() (alterItem, error) {
	var item alterItem
	var err error
	switch {
	case p.word("COLUMN"):
		item.kind = alterRenameColumn
		item.exists = p.word("IF", "EXISTS")
	case (p.isWord("KEY") || p.isWord("INDEX")) && !p.peekAt(1).isPunct(".") && p.peekAt(1).kind != tokenEnd:
		p.next()
		item.kind = alterRenameKey
		item.exists = p.word("IF", "EXISTS")
	default:
		item.kind = alterRenameTable
		if !p.word("TO") && !p.word("AS") {
			p.punct("=")
		}
		item.table, err = p.tableRef()
		return item, err
	}
	if item.name, err = p.name(); err != nil {
		return item, err
	}
	if !p.word("TO") {
		return item, p.errorf("TO is missing")
	}
	item.newName, err = p.name()
	return item, err
}

func (p *ddlParser) convert() (alterItem, error) {
	item := alterItem{kind: alterConvert}
	if !p.word("CHARSET") && !p.word("CHARACTER", "SET") && !p.word("CHAR", "SET") {
		return item, p.errorf("CONVERT TO names no character set")
	}
	item.charset = p.charsetName()
	if p.word("COLLATE") {
		p.punct("=")
		item.collate = p.charsetName()
	}
	return item, nil
}

// orderBy moves over the columns of ORDER BY. The commas between them are those between the parts of the statement, too:
// a name with nothing behind it but a direction is a column.
func (p *ddlParser) orderBy() error {
	for {
		if _, err := p.name(); err != nil {
			return err
		}
		for p.punct(".") {
			if _, err := p.name(); err != nil {
				return err
			}
		}
		p.oneOf("ASC", "DESC")
		if !p.peek().isPunct(",") {
			return nil
		}
		t, after := p.peekAt(1), p.peekAt(2)
		if t.kind != tokenName && t.kind != tokenWord || t.is("FORCE") {
			return nil
		}
		if !after.isPunct(",") && !after.isPunct(".") && !after.isPunct(";") && after.kind != tokenEnd && !after.is("ASC") && !after.is("DESC") {
			return nil
		}
		p.next()
	}
}
