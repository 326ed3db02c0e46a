package schema

import "strings"

// viewFollows says whether VIEW comes behind nothing but the attributes of one, and moves there if so.
func (p *ddlParser) viewFollows() bool {
	start := p.pos
	for range 24 {
		switch {
		case p.word("VIEW"):
			return true
		case p.word("ALGORITHM"), p.word("DEFINER"), p.word("SQL"), p.word("SECURITY"), p.word("CURRENT_USER"), p.word("INVOKER"),
			p.word("UNDEFINED"), p.word("MERGE"), p.word("TEMPTABLE"), p.punct("="), p.punct("@"), p.punct("("), p.punct(")"):
		case p.peek().kind == tokenName, p.peek().kind == tokenString, p.pos > start && p.tokens[p.pos-1].isPunct("="),
			p.pos > start && p.tokens[p.pos-1].isPunct("@"):
			p.next()
		default:
			p.pos = start
			return false
		}
	}
	p.pos = start
	return false
}

// view reads the name of a view, and moves over the rest.
func (p *ddlParser) view(event ddlEventKind) (statement, error) {
	s := statement{kind: stmtView, viewEvent: event}
	p.word("IF", "NOT", "EXISTS")
	var err error
	if s.view, err = p.tableRef(); err != nil {
		return s, err
	}
	return s, p.skipStatement()
}

func (p *ddlParser) dropTables() (statement, error) {
	s := statement{kind: stmtDropTables}
	p.word("IF", "EXISTS")
	for {
		ref, err := p.tableRef()
		if err != nil {
			return s, err
		}
		s.drops = append(s.drops, ref)
		if !p.punct(",") {
			break
		}
	}
	s.dropType = p.oneOf("RESTRICT", "CASCADE")
	return s, p.skipStatement()
}

func (p *ddlParser) rename() (statement, error) {
	if p.oneOf("TABLE", "TABLES") == "" {
		return p.other() // RENAME USER
	}
	s := statement{kind: stmtRenameTables}
	ifExists := p.word("IF", "EXISTS")
	for {
		pair := renamePair{ifExists: ifExists}
		var err error
		if pair.from, err = p.tableRef(); err != nil {
			return s, err
		}
		for p.isWord("WAIT") || p.isWord("NOWAIT") { // MariaDB
			if p.next(); p.peek().kind == tokenNumber {
				p.next()
			}
		}
		if !p.word("TO") {
			return s, p.errorf("TO is missing")
		}
		if pair.to, err = p.tableRef(); err != nil {
			return s, err
		}
		s.renames = append(s.renames, pair)
		if !p.punct(",") {
			return s, p.skipStatement()
		}
	}
}

// databaseOptions reads the character set and the collation of CREATE and ALTER DATABASE.
func (p *ddlParser) databaseOptions(d *databaseChange) error {
	for !p.atEnd() {
		switch {
		case p.word("CHARSET"), p.word("CHARACTER", "SET"), p.word("CHAR", "SET"):
			p.punct("=")
			d.charset = p.charsetName()
		case p.word("COLLATE"):
			p.punct("=")
			d.collate = p.charsetName()
		default:
			p.next()
		}
	}
	return nil
}

// charsetName reads the name of a character set or a collation, quoted or not.
func (p *ddlParser) charsetName() string {
	t := p.peek()
	switch t.kind {
	case tokenWord, tokenName, tokenString:
		p.pos++
		return t.value
	}
	return ""
}

func (p *ddlParser) createDatabase() (statement, error) {
	s := statement{kind: stmtCreateDatabase}
	s.database.exists = p.word("IF", "NOT", "EXISTS")
	var err error
	if s.database.name, err = p.name(); err != nil {
		return s, err
	}
	return s, p.databaseOptions(&s.database)
}

func (p *ddlParser) alterDatabase() (statement, error) {
	s := statement{kind: stmtAlterDatabase}
	if t := p.peek(); t.kind == tokenName || t.kind == tokenWord && !p.isDatabaseOption() {
		s.database.name = p.next().value
	}
	return s, p.databaseOptions(&s.database)
}

// isDatabaseOption says whether an option follows where ALTER DATABASE may name none.
func (p *ddlParser) isDatabaseOption() bool {
	return p.isWord("DEFAULT") || p.isWord("CHARACTER") || p.isWord("CHAR") || p.isWord("COLLATE") || p.isWord("READ", "ONLY") ||
		(p.isWord("CHARSET") || p.isWord("ENCRYPTION") || p.isWord("COMMENT")) && !p.peekAt(1).is("CHARSET") &&
			!p.peekAt(1).is("CHARACTER") && !p.peekAt(1).is("COLLATE") && !p.peekAt(1).is("DEFAULT")
}

func (p *ddlParser) createIndex() (statement, error) {
	s := statement{kind: stmtCreateIndex, index: &createIndex{}}
	key := &s.index.key
	key.kind = keyPlain
	for !p.word("INDEX") {
		switch {
		case p.word("UNIQUE"):
			key.kind = keyUnique
		case p.word("FULLTEXT"), p.word("SPATIAL"), p.word("VECTOR"):
			key.kind = keyOther
			if p.isWord("REFERENCE") { // CREATE SPATIAL REFERENCE SYSTEM
				return p.other()
			}
		case p.word("ONLINE"), p.word("OFFLINE"):
		default:
			return s, p.errorf("INDEX is missing")
		}
	}
	p.word("IF", "NOT", "EXISTS")
	var err error
	if key.name, err = p.name(); err != nil {
		return s, err
	}
	for !p.atEnd() && !p.isWord("ON") {
		p.next()
	}
	if !p.word("ON") {
		return s, p.errorf("ON is missing")
	}
	if s.index.table, err = p.tableRef(); err != nil {
		return s, err
	}
	for p.isWord("WAIT") || p.isWord("NOWAIT") {
		if p.next(); p.peek().kind == tokenNumber {
			p.next()
		}
	}
	if key.parts, err = p.keyParts(); err != nil {
		return s, err
	}
	return s, p.skipStatement()
}

func (p *ddlParser) dropIndex() (statement, error) {
	for p.oneOf("ONLINE", "OFFLINE") != "" {
	}
	s := statement{kind: stmtDropIndex, dropped: &dropIndex{}}
	if !p.word("INDEX") {
		return p.other()
	}
	p.word("IF", "EXISTS")
	var err error
	if s.dropped.name, err = p.name(); err != nil {
		return s, err
	}
	if !p.word("ON") {
		return s, p.errorf("ON is missing")
	}
	if s.dropped.table, err = p.tableRef(); err != nil {
		return s, err
	}
	return s, p.skipStatement()
}

// set reads SET variable = value, …; what it does not know it moves over.
func (p *ddlParser) set() (statement, error) {
	s := statement{kind: stmtSet}
	for !p.atEnd() {
		user := p.punct("@") && !p.punct("@") // @variable
		if p.oneOf("GLOBAL", "SESSION", "LOCAL", "PERSIST") != "" {
			p.punct(".")
		}
		t := p.peek()
		if !user && (t.kind == tokenWord || t.kind == tokenName) && (p.peekAt(1).isPunct("=") || p.peekAt(1).isPunct(":") && p.peekAt(2).isPunct("=")) {
			p.next()
			for p.punct(":") || p.punct("=") {
			}
			value := p.peek()
			text := value.text
			if value.kind == tokenString || value.kind == tokenName {
				text = value.value
			}
			s.settings = append(s.settings, setting{strings.ToLower(t.value), text})
		}
		for !p.atEnd() && !p.peek().isPunct(",") {
			if err := p.skipOne(); err != nil {
				return s, err
			}
		}
		p.punct(",")
	}
	return s, nil
}
