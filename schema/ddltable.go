package schema

import "strings"

func (p *ddlParser) createTable(replace bool) (statement, error) {
	c := &createTable{replace: replace, mariaDB: p.mariaDB}
	s := statement{kind: stmtCreateTable, create: c}
	c.ifNotExists = p.word("IF", "NOT", "EXISTS")
	var err error
	if c.table, err = p.tableRef(); err != nil {
		return s, err
	}
	switch {
	case p.word("LIKE"):
		return s, p.like(c)
	case p.peek().isPunct("(") && p.peekAt(1).is("LIKE"):
		p.next()
		p.next()
		return s, p.like(c)
	case p.peek().isPunct("(") && !p.queryFollows(1):
		p.next()
		if c.elements, err = p.elements(); err != nil {
			return s, err
		}
	}
	for !p.atEnd() {
		if p.queryFollows(0) {
			c.query = true
			break
		}
		if p.isWord("PARTITION") {
			break
		}
		if err := p.tableOption(&c.options); err != nil {
			return s, err
		}
	}
	if !c.query { // AS SELECT may follow the partitions
		for !p.atEnd() {
			if c.query = p.queryFollows(0); c.query {
				break
			}
			if err := p.skipOne(); err != nil {
				return s, err
			}
		}
	}
	if len(c.elements) == 0 && !c.query {
		return s, p.errorf("no columns follow the table's name")
	}
	return s, p.skipStatement()
}

func (p *ddlParser) like(c *createTable) error {
	like, err := p.tableRef()
	if err != nil {
		return err
	}
	c.like = &like
	return p.skipStatement()
}

// queryFollows says whether the query of CREATE TABLE … AS SELECT begins n tokens on.
func (p *ddlParser) queryFollows(n int) bool {
	t := p.peekAt(n)
	switch {
	case t.is("SELECT"), t.is("AS"), t.is("IGNORE"), t.is("REPLACE"), t.is("VALUES"), t.is("TABLE"):
		return true
	case t.is("WITH"):
		return !p.peekAt(n + 1).is("SYSTEM")
	case t.isPunct("("):
		return p.queryFollows(n + 1)
	}
	return false
}

// elements reads columns and keys to the closing parenthesis.
func (p *ddlParser) elements() ([]tableElement, error) {
	var all []tableElement
	for {
		e, err := p.element()
		if err != nil {
			return nil, err
		}
		all = append(all, e)
		if p.punct(",") {
			continue
		}
		if !p.punct(")") {
			return nil, p.errorf("a column or key does not end")
		}
		return all, nil
	}
}

func (p *ddlParser) element() (tableElement, error) {
	if p.keyFollows() {
		key, err := p.key()
		return tableElement{key: key}, err
	}
	column, err := p.column()
	return tableElement{column: column}, err
}

// keyFollows says whether a key or a constraint stands where a column may, too. All these words but the last are
// reserved: a column of their name is quoted.
func (p *ddlParser) keyFollows() bool {
	t := p.peek()
	if t.kind != tokenWord {
		return false
	}
	switch strings.ToUpper(t.text) {
	case "PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK":
		return true
	case "PERIOD":
		return p.peekAt(1).is("FOR")
	case "VECTOR":
		return p.peekAt(1).is("INDEX") || p.peekAt(1).is("KEY")
	}
	return false
}

// key reads a key or a constraint.
func (p *ddlParser) key() (*keyText, error) {
	key := &keyText{kind: keyPlain}
	if p.word("CONSTRAINT") {
		p.word("IF", "NOT", "EXISTS")
		if t := p.peek(); t.kind == tokenName || t.kind == tokenWord && !p.keyFollows() {
			key.name = p.next().value
		}
	}
	switch {
	case p.word("PRIMARY"):
		key.kind = keyPrimary
		p.word("KEY")
	case p.word("UNIQUE"):
		key.kind = keyUnique
		p.oneOf("KEY", "INDEX")
	case p.word("KEY"), p.word("INDEX"):
	default:
		key.kind = keyOther
		return key, p.skipElement()
	}
	p.word("IF", "NOT", "EXISTS")
	for !p.peek().isPunct("(") {
		switch t := p.peek(); {
		case p.word("USING"), p.word("TYPE"):
			p.next()
		case t.kind == tokenName || t.kind == tokenWord:
			key.name = t.value
			p.next()
		default:
			return nil, p.errorf("the columns of a key are missing")
		}
	}
	var err error
	if key.parts, err = p.keyParts(); err != nil {
		return nil, err
	}
	return key, p.skipElement()
}

// keyParts reads the columns of a key with their parentheses.
func (p *ddlParser) keyParts() ([]keyPart, error) {
	if !p.punct("(") {
		return nil, p.errorf("the columns of a key are missing")
	}
	var parts []keyPart
	for {
		var part keyPart
		switch t := p.peek(); {
		case t.isPunct("("): // an expression: it stands in parentheses of its own
		case t.kind == tokenName || t.kind == tokenWord:
			part.column = p.next().value
			part.prefix = p.peek().isPunct("(")
		default:
			return nil, p.errorf("a column of a key is missing")
		}
		parts = append(parts, part)
		if err := p.skipElement(); err != nil {
			return nil, err
		}
		if p.punct(",") {
			continue
		}
		if !p.punct(")") {
			return nil, p.errorf("the columns of a key do not end")
		}
		return parts, nil
	}
}

// tableOption reads one option of a table.
func (p *ddlParser) tableOption(o *tableOptions) error {
	p.word("DEFAULT")
	switch {
	case p.word("CHARSET"), p.word("CHARACTER", "SET"), p.word("CHAR", "SET"):
		p.punct("=")
		if charset := p.charsetName(); o.charset == "" || !strings.EqualFold(charset, "default") {
			o.charset = charset
		}
	case p.word("COLLATE"):
		p.punct("=")
		o.collate = p.charsetName()
	case p.word("COMMENT"):
		p.punct("=")
		if t := p.next(); t.kind == tokenString {
			comment := withoutQuotes(t.text)
			o.comment = &comment
		}
	case p.word("ENGINE"):
		p.punct("=")
		o.engine = p.charsetName()
	case p.word("UNION"):
		p.punct("=")
		return p.skipOne()
	case p.word("WITH"), p.word("WITHOUT"):
		p.word("SYSTEM", "VERSIONING")
	case p.word("DATA", "DIRECTORY"), p.word("INDEX", "DIRECTORY"), p.word("START", "TRANSACTION"):
		if p.punct("=") || p.peek().kind == tokenString {
			p.next()
		}
	default: // name [=] value; a value alone is moved over by the next call
		if p.next(); p.punct("=") {
			return p.skipOne()
		}
	}
	return nil
}

// withoutQuotes takes the quotes from around a text.
func withoutQuotes(text string) string {
	if n := len(text); n >= 2 && text[0] == text[n-1] && (text[0] == '\'' || text[0] == '"' || text[0] == '`') {
		return text[1 : n-1]
	}
	return text
}
