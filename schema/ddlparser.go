package schema

import (
	"fmt"
	"strings"
)

// ddlParser reads statements from tokens by recursive descent. What it does not know inside a statement it moves over,
// but never a column.
type ddlParser struct {
	syntax
	text   string
	tokens []token
	pos    int
}

// script is a text taken apart.
type script struct {
	text       string // as Debezium writes it into its records
	tokens     []token
	statements []statement
}

// parseScript takes a text apart into its statements.
func parseScript(sql string, s syntax) (*script, error) {
	l, err := cut(sql, s)
	if err != nil {
		return nil, err
	}
	text, tokens := l.text, l.tokens
	if !s.mariaDB {
		text, tokens = normalized(l)
	}
	p := &ddlParser{syntax: s, text: text, tokens: tokens}
	sc := &script{text: text, tokens: tokens}
	for {
		for p.punct(";") {
		}
		if p.peek().kind == tokenEnd {
			return sc, nil
		}
		first := p.pos
		stmt, err := p.statement()
		if err != nil {
			return nil, err
		}
		stmt.first, stmt.last = first, p.pos
		sc.statements = append(sc.statements, stmt)
	}
}

// source is the text of a stretch of tokens, with the comments between them.
func (s *script) source(first, last int) string {
	if first >= last {
		return ""
	}
	return s.text[s.tokens[first].start:s.tokens[last-1].end]
}

func (p *ddlParser) peek() token { return p.tokens[p.pos] }

func (p *ddlParser) peekAt(n int) token {
	return p.tokens[min(p.pos+n, len(p.tokens)-1)]
}

func (p *ddlParser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokenEnd {
		p.pos++
	}
	return t
}

func (t token) is(keyword string) bool {
	return t.kind == tokenWord && strings.EqualFold(t.text, keyword)
}

func (t token) isPunct(c string) bool { return t.kind == tokenPunct && t.text == c }

// word says whether the next tokens are keywords, and takes them if so.
func (p *ddlParser) word(keywords ...string) bool {
	for i, keyword := range keywords {
		if !p.peekAt(i).is(keyword) {
			return false
		}
	}
	p.pos += len(keywords)
	return true
}

// oneOf takes the next token if it is one of the keywords, and gives it in upper case.
func (p *ddlParser) oneOf(keywords ...string) string {
	for _, keyword := range keywords {
		if p.word(keyword) {
			return keyword
		}
	}
	return ""
}

func (p *ddlParser) isWord(keywords ...string) bool {
	for i, keyword := range keywords {
		if !p.peekAt(i).is(keyword) {
			return false
		}
	}
	return true
}

func (p *ddlParser) punct(c string) bool {
	if !p.peek().isPunct(c) {
		return false
	}
	p.pos++
	return true
}

// errorf tells what stands where something else was expected, and its surroundings.
func (p *ddlParser) errorf(format string, args ...any) error {
	t := p.peek()
	rest := p.text[t.start:]
	if rest == "" {
		return fmt.Errorf("%s at its end", fmt.Sprintf(format, args...))
	}
	return fmt.Errorf("%s, at %q (byte %d)", fmt.Sprintf(format, args...), excerpt(rest, 40), t.start)
}

// excerpt is the beginning of a text.
func excerpt(text string, most int) string {
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// name reads a name, quoted or not.
func (p *ddlParser) name() (string, error) {
	t := p.peek()
	if t.kind != tokenName && t.kind != tokenWord {
		return "", p.errorf("a name is missing")
	}
	p.pos++
	return t.value, nil
}

// tableRef reads [database.]table.
func (p *ddlParser) tableRef() (tableRef, error) {
	ref := tableRef{first: p.pos}
	p.punct(".") // ODBC's way to name a table of the default database
	name, err := p.name()
	if err != nil {
		return ref, err
	}
	ref.table = name
	if p.punct(".") {
		ref.database = name
		if ref.table, err = p.name(); err != nil {
			return ref, err
		}
	}
	ref.last = p.pos
	return ref, nil
}

// atEnd says whether the statement ends here.
func (p *ddlParser) atEnd() bool { return p.peek().kind == tokenEnd || p.peek().isPunct(";") }

// skipParens moves over a parenthesis and all in it; its opening one has been taken.
func (p *ddlParser) skipParens() error {
	for depth := 1; depth > 0; {
		switch t := p.next(); {
		case t.kind == tokenEnd:
			return p.errorf("a parenthesis is not closed")
		case t.isPunct("("):
			depth++
		case t.isPunct(")"):
			depth--
		}
	}
	return nil
}

// skipOne moves over one token, or over a parenthesis and all in it.
func (p *ddlParser) skipOne() error {
	if p.punct("(") {
		return p.skipParens()
	}
	p.next()
	return nil
}

// skipElement moves to the comma or parenthesis that ends an element of a list.
func (p *ddlParser) skipElement() error {
	for !p.atEnd() && !p.peek().isPunct(",") && !p.peek().isPunct(")") {
		if err := p.skipOne(); err != nil {
			return err
		}
	}
	return nil
}

// skipStatement moves to the end of the statement.
func (p *ddlParser) skipStatement() error {
	for !p.atEnd() {
		p.next()
	}
	return nil
}

// skipText moves to the end of the text: the bodies of routines hold semicolons.
func (p *ddlParser) skipText() { p.pos = len(p.tokens) - 1 }

func (p *ddlParser) statement() (statement, error) {
	if p.isWord("SET", "STATEMENT") { // MariaDB: SET STATEMENT variable=value FOR statement
		for !p.atEnd() && !p.word("FOR") {
			p.next()
		}
	}
	switch {
	case p.word("CREATE"):
		return p.create()
	case p.word("ALTER"):
		return p.alter()
	case p.word("DROP"):
		return p.drop()
	case p.word("RENAME"):
		return p.rename()
	case p.word("TRUNCATE"):
		return statement{kind: stmtTruncate}, p.skipStatement()
	case p.word("USE"):
		name, err := p.name()
		if err == nil {
			err = p.skipStatement()
		}
		return statement{kind: stmtUse, database: databaseChange{name: name}}, err
	case p.word("SET"):
		return p.set()
	}
	return p.other()
}

// other moves over a statement that says nothing about tables.
func (p *ddlParser) other() (statement, error) {
	return statement{kind: stmtOther}, p.skipStatement()
}

func (p *ddlParser) create() (statement, error) {
	replace := p.word("OR", "REPLACE")
	switch {
	case p.word("TEMPORARY"):
		if p.isWord("TABLE") {
			return statement{kind: stmtTemporary}, p.skipStatement()
		}
		return p.other()
	case p.word("TABLE"):
		return p.createTable(replace)
	case p.oneOf("DATABASE", "SCHEMA") != "":
		return p.createDatabase()
	case p.isWord("INDEX"), p.isWord("UNIQUE"), p.isWord("FULLTEXT"), p.isWord("SPATIAL"), p.isWord("VECTOR", "INDEX"),
		p.isWord("ONLINE"), p.isWord("OFFLINE"):
		return p.createIndex()
	case p.viewFollows():
		return p.view(eventCreateTable)
	case p.isWord("USER"), p.isWord("ROLE"), p.isWord("SERVER"), p.isWord("TABLESPACE"),
		p.isWord("UNDO"), p.isWord("LOGFILE"), p.isWord("SPATIAL"), p.isWord("RESOURCE"), p.isWord("SEQUENCE"):
		return p.other()
	}
	p.skipText() // a routine, a trigger, an event, or something with DEFINER
	return statement{kind: stmtOther}, nil
}

func (p *ddlParser) alter() (statement, error) {
	for p.oneOf("ONLINE", "OFFLINE", "IGNORE") != "" {
	}
	switch {
	case p.word("TABLE"):
		return p.alterTable()
	case p.oneOf("DATABASE", "SCHEMA") != "":
		return p.alterDatabase()
	case p.viewFollows():
		return p.view(eventAlterTable)
	case p.isWord("EVENT"), p.isWord("DEFINER"), p.isWord("PROCEDURE"), p.isWord("FUNCTION"):
		p.skipText()
		return statement{kind: stmtOther}, nil
	}
	return p.other()
}

func (p *ddlParser) drop() (statement, error) {
	if p.word("TEMPORARY") {
		return statement{kind: stmtTemporary}, p.skipStatement()
	}
	switch {
	case p.oneOf("TABLE", "TABLES") != "":
		return p.dropTables()
	case p.oneOf("DATABASE", "SCHEMA") != "":
		p.word("IF", "EXISTS")
		name, err := p.name()
		if err == nil {
			err = p.skipStatement()
		}
		return statement{kind: stmtDropDatabase, database: databaseChange{name: name}}, err
	case p.isWord("INDEX"), p.isWord("ONLINE"), p.isWord("OFFLINE"):
		return p.dropIndex()
	}
	return p.other()
}
