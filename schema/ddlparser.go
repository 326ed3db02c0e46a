package schema

import (
	"fmt"
	"strings"
)

// ddlParser reads statements from tokens by recursive descent. What it does not know inside a statement it moves over,
// but never a column.
type ddlParser struct {
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
	text, tokens := normalized(l)
	p := &ddlParser{text: text, tokens: tokens}
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
