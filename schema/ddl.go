package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseCreateTable reads what SHOW CREATE TABLE prints into a Definition, in the words that Debezium uses for it.
// database is the one the table is in; the statement names only the table. It reads the server's own normal form, not
// all that CREATE TABLE can be given; what it does not know inside a column or key it skips, and a text that is not such
// a statement (a view's, for example) is an error.
func ParseCreateTable(database, sql string) (*Definition, error) {
	p := ddlParser{lexer: ddlLexer{text: sql}}
	p.next()
	def, err := p.createTable(database)
	if err == nil {
		err = p.lexer.err
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the definition of a table of database %s: %w: %s", database, err, excerpt(sql))
	}
	return def, nil
}

func excerpt(sql string) string {
	if runes := []rune(sql); len(runes) > 120 {
		return string(runes[:120]) + "…"
	}
	return sql
}

type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenWord             // unquoted: a keyword, a name or a number
	tokenName             // `quoted` or "quoted", without its quotes
	tokenString           // 'text', with its quotes
	tokenLetter           // b'101', x'ff', _utf8mb4'text' and the like, whole
	tokenPunct            // one character
)

type token struct {
	kind tokenKind
	text string
}

// ddlLexer cuts a statement into tokens. Comments with a version (/*!80023 INVISIBLE */) are read as their content, for
// that is how the server marks what older ones do not know.
type ddlLexer struct {
	text      string
	versioned bool // inside such a comment
	err       error
}

func (l *ddlLexer) next() token {
	for {
		l.text = strings.TrimLeft(l.text, " \t\r\n")
		switch {
		case l.text == "":
			return token{}
		case strings.HasPrefix(l.text, "/*!"):
			l.text = strings.TrimLeft(l.text[3:], "0123456789")
			l.versioned = true
		case strings.HasPrefix(l.text, "/*M!"):
			l.text = strings.TrimLeft(l.text[4:], "0123456789")
			l.versioned = true
		case strings.HasPrefix(l.text, "*/") && l.versioned:
			l.text = l.text[2:]
			l.versioned = false
		case strings.HasPrefix(l.text, "/*"):
			_, rest, _ := strings.Cut(l.text[2:], "*/")
			l.text = rest
		default:
			return l.token()
		}
	}
}

func (l *ddlLexer) token() token {
	switch c := l.text[0]; c {
	case '`', '"':
		quoted := l.quoted(0)
		name := strings.ReplaceAll(quoted[1:max(1, len(quoted)-1)], string([]byte{c, c}), string(c))
		return token{tokenName, name}
	case '\'':
		return token{tokenString, l.quoted(0)}
	}
	n := 0
	for n < len(l.text) && isWordByte(l.text[n]) {
		n++
	}
	switch {
	case n == 0:
		n = 1
		t := token{tokenPunct, l.text[:n]}
		l.text = l.text[n:]
		return t
	case n < len(l.text) && l.text[n] == '\'':
		return token{tokenLetter, l.quoted(n)}
	}
	t := token{tokenWord, l.text[:n]}
	l.text = l.text[n:]
	return t
}

// isWordByte takes all that names, keywords and numbers are made of; characters beyond ASCII are letters.
func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c == '.' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}

// quoted takes a quoted text whose opening quote is at start. Quotes inside are doubled, in strings also escaped.
func (l *ddlLexer) quoted(start int) string {
	quote := l.text[start]
	for i := start + 1; i < len(l.text); i++ {
		switch c := l.text[i]; {
		case c == '\\' && quote == '\'':
			i++
		case c == quote && i+1 < len(l.text) && l.text[i+1] == quote:
			i++
		case c == quote:
			text := l.text[:i+1]
			l.text = l.text[i+1:]
			return text
		}
	}
	l.err = fmt.Errorf("a quote (%c) is not closed", quote)
	text := l.text
	l.text = ""
	return text + string(quote) // callers cut the quotes off
}

// ddlParser reads with one token of look-ahead.
type ddlParser struct {
	lexer   ddlLexer
	token   token
	virtual []string    // generated columns that are not stored
	unique  []uniqueKey // in the order of the text
}

type uniqueKey struct {
	columns []string
	partial bool // of some columns only a prefix
}

func (p *ddlParser) next() token {
	t := p.token
	p.token = p.lexer.next()
	return t
}

// word says whether the next token is a keyword, and takes it if so.
func (p *ddlParser) word(keyword string) bool {
	if p.token.kind != tokenWord || !strings.EqualFold(p.token.text, keyword) {
		return false
	}
	p.next()
	return true
}

func (p *ddlParser) punct(c string) bool {
	if p.token.kind != tokenPunct || p.token.text != c {
		return false
	}
	p.next()
	return true
}

func (p *ddlParser) isPunct(c string) bool {
	return p.token.kind == tokenPunct && p.token.text == c
}

func (p *ddlParser) name() (string, error) {
	if p.token.kind != tokenName && p.token.kind != tokenWord {
		return "", fmt.Errorf("%q stands where a name belongs", p.token.text)
	}
	return p.next().text, nil
}

// skipParens skips a parenthesis that has been opened, and all in it.
func (p *ddlParser) skipParens() {
	for depth := 1; depth > 0 && p.token.kind != tokenEnd; {
		switch t := p.next(); {
		case t.kind != tokenPunct:
		case t.text == "(":
			depth++
		case t.text == ")":
			depth--
		}
	}
}

// skipElement skips to the comma or parenthesis that ends a column or key.
func (p *ddlParser) skipElement() {
	for p.token.kind != tokenEnd && !p.isPunct(",") && !p.isPunct(")") {
		if p.punct("(") {
			p.skipParens()
		} else {
			p.next()
		}
	}
}

func (p *ddlParser) createTable(database string) (*Definition, error) {
	if !p.word("CREATE") {
		return nil, fmt.Errorf("it does not begin with CREATE")
	}
	p.word("TEMPORARY")
	if !p.word("TABLE") {
		return nil, fmt.Errorf("it is not a table")
	}
	if p.word("IF") {
		p.word("NOT")
		p.word("EXISTS")
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	if p.punct(".") {
		if name, err = p.name(); err != nil {
			return nil, err
		}
	}
	if !p.punct("(") {
		return nil, fmt.Errorf("no columns follow its name")
	}
	def := &Definition{Database: database, Name: name}
	for {
		if err := p.element(def); err != nil {
			return nil, err
		}
		if p.punct(",") {
			continue
		}
		if !p.punct(")") {
			return nil, fmt.Errorf("%q stands where a column should end", p.token.text)
		}
		break
	}
	p.setCharsets(def)
	p.chooseKey(def)
	return def, nil
}

// element reads a column or a key.
func (p *ddlParser) element(def *Definition) error {
	if p.token.kind == tokenWord {
		switch strings.ToUpper(p.token.text) {
		case "PRIMARY":
			p.next()
			key, _ := p.keyColumns()
			def.Key, def.KeyKind = key.columns, KeyPrimary
			return nil
		case "UNIQUE":
			p.next()
			if key, ok := p.keyColumns(); ok {
				p.unique = append(p.unique, key)
			}
			return nil
		case "CONSTRAINT", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "PERIOD":
			p.skipElement()
			return nil
		}
	}
	column, err := p.column()
	if err != nil {
		return err
	}
	def.Columns = append(def.Columns, column)
	return nil
}

// keyColumns reads [KEY|INDEX] [name] (columns) … to the end of the element. ok is false if a part is an expression.
func (p *ddlParser) keyColumns() (key uniqueKey, ok bool) {
	for p.token.kind != tokenEnd && !p.isPunct("(") && !p.isPunct(",") && !p.isPunct(")") {
		p.next()
	}
	ok = p.punct("(")
	for ok && p.token.kind != tokenEnd && !p.punct(")") {
		switch {
		case p.punct("("): // an expression: it stands in parentheses of its own
			p.skipParens()
			ok = false
		case p.punct(","):
		case p.word("ASC"), p.word("DESC"):
		default:
			key.columns = append(key.columns, p.next().text)
			if p.punct("(") { // the length of a prefix
				p.skipParens()
				key.partial = true
			}
		}
	}
	if !ok {
		p.skipParens()
	}
	p.skipElement()
	return key, ok
}

func (p *ddlParser) column() (ColumnDef, error) {
	c := ColumnDef{Length: -1, Scale: -1, Nullable: true}
	var err error
	if c.Name, err = p.name(); err != nil {
		return c, err
	}
	if p.token.kind != tokenWord {
		return c, fmt.Errorf("column %s has no type", c.Name)
	}
	c.Type = strings.ToUpper(p.next().text)
	if c.Type == "DOUBLE" && p.word("PRECISION") {
		c.Type = "DOUBLE PRECISION"
	}
	if p.punct("(") {
		if err := p.typeArguments(&c); err != nil {
			return c, err
		}
	}
	for p.token.kind == tokenWord {
		word := strings.ToUpper(p.token.text)
		if word != "UNSIGNED" && word != "ZEROFILL" && word != "SIGNED" {
			break
		}
		p.next()
		if word != "SIGNED" {
			c.Type += " " + word
		}
	}
	p.attributes(&c)
	c.HasDefault = c.HasDefault || c.Nullable
	return c, nil
}

// typeArguments reads the numbers or labels after a type's name.
func (p *ddlParser) typeArguments(c *ColumnDef) error {
	var numbers []int
	for !p.punct(")") {
		switch t := p.next(); {
		case t.kind == tokenEnd:
			return fmt.Errorf("the type of column %s is cut short", c.Name)
		case t.kind == tokenString:
			c.Labels = append(c.Labels, t.text[1:len(t.text)-1])
		case t.kind == tokenWord:
			if n, err := strconv.Atoi(t.text); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	switch {
	case c.Type == "ENUM":
		c.Length = 1
	case c.Type == "SET":
		c.Length = max(0, 2*len(c.Labels)-1) // the labels and the commas between, as Debezium counts
	case c.Type == "VARCHAR" && len(numbers) == 1 && numbers[0] == 0:
		c.Length = 10 // what Debezium's parser makes of 0
	case len(numbers) > 0:
		c.Length = numbers[0]
		if len(numbers) > 1 {
			c.Scale = numbers[1]
		}
	}
	return nil
}

// attributes reads what follows a column's type.
func (p *ddlParser) attributes(c *ColumnDef) {
	virtual := false
	for p.token.kind != tokenEnd && !p.isPunct(",") && !p.isPunct(")") {
		switch {
		case p.word("NOT"):
			if p.word("NULL") {
				c.Nullable = false
			}
		case p.word("NULL"):
			c.Nullable = true
		case p.word("DEFAULT"):
			p.defaultValue(c)
		case p.word("AS"): // virtual unless the contrary is said
			virtual = true
		case p.word("STORED"), p.word("PERSISTENT"):
			virtual = false
		case p.word("ON"):
			if p.word("UPDATE") { // which Debezium takes for AUTO_INCREMENT
				c.AutoInc, c.Generated = true, true
			}
		case p.word("AUTO_INCREMENT"):
			c.AutoInc, c.Generated = true, true
		case p.word("CHARSET"):
			c.Charset = p.next().text
		case p.word("CHARACTER"):
			if p.word("SET") {
				c.Charset = p.next().text
			}
		case p.word("COLLATE"):
			if collation := p.next().text; c.Charset == "" {
				c.Charset, _, _ = strings.Cut(collation, "_")
			}
		case p.word("COMMENT"):
			if t := p.next(); t.kind == tokenString {
				c.Comment = t.text[1 : len(t.text)-1]
			}
		case p.punct("("):
			p.skipParens()
		default:
			p.next()
		}
	}
	if virtual {
		p.virtual = append(p.virtual, c.Name)
	}
}

// defaultValue reads what follows DEFAULT. The text that is kept is Debezium's: strings without their quotes but with
// their escapes, 0x00FF without its first two and its last character, the epoch for CURRENT_TIMESTAMP, none for an
// expression.
func (p *ddlParser) defaultValue(c *ColumnDef) {
	c.HasDefault = true
	sign := ""
	if p.isPunct("-") || p.isPunct("+") {
		sign = p.next().text
	}
	set := func(text string) { c.Default = &text }
	switch t := p.next(); t.kind {
	case tokenString, tokenName: // with ANSI_QUOTES off, "text" is a string, too
		text := t.text
		if t.kind == tokenString {
			text = text[1 : len(text)-1]
		}
		set(sign + text)
	case tokenLetter:
		if strings.HasPrefix(t.text, "_") {
			set(t.text)
		} else {
			set(t.text[2 : len(t.text)-1])
		}
	case tokenPunct:
		if t.text == "(" {
			p.skipParens()
		}
	case tokenWord:
		switch word := strings.ToUpper(t.text); {
		case word == "NULL":
		case word == "CURRENT_TIMESTAMP" || word == "NOW":
			set("1970-01-01 00:00:00")
		case strings.HasPrefix(word, "0X") && len(word) > 2:
			set(t.text[2 : len(t.text)-1])
		case p.isPunct("("): // another function
		default:
			set(sign + t.text)
		}
		if p.punct("(") {
			p.skipParens()
		}
	}
}

// setCharsets reads the table's options, and gives its character set to the text columns that name none.
func (p *ddlParser) setCharsets(def *Definition) {
	charset := p.tableCharset()
	for i := range def.Columns {
		if c := &def.Columns[i]; c.Charset == "" && hasCharset(c.Type) {
			c.Charset = charset
		}
	}
}

func (p *ddlParser) tableCharset() (charset string) {
	for p.token.kind != tokenEnd {
		switch {
		case p.word("CHARSET"):
			p.punct("=")
			charset = p.next().text
		case p.word("CHARACTER"):
			if p.word("SET") {
				p.punct("=")
				charset = p.next().text
			}
		case p.word("COLLATE"):
			p.punct("=")
			if collation := p.next().text; charset == "" {
				charset, _, _ = strings.Cut(collation, "_")
			}
		case p.word("PARTITION"): // the end of the options
			return charset
		default:
			p.next()
		}
	}
	return charset
}

func hasCharset(typ string) bool {
	switch typ {
	case "CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "ENUM", "SET":
		return true
	}
	return false
}

// chooseKey takes the first UNIQUE key over NOT NULL columns when there is no primary key, and lists those that the
// server may take. Debezium takes keys of prefixes and virtual columns, too; the server does not.
func (p *ddlParser) chooseKey(def *Definition) {
	if def.KeyKind == KeyPrimary {
		return
	}
	def.KeyKind = KeyUnique
	for _, key := range p.unique {
		ok, whole := len(key.columns) > 0, !key.partial
		for _, name := range key.columns {
			i := def.index(name)
			ok = ok && i >= 0 && !def.Columns[i].Nullable
			whole = whole && !slices.ContainsFunc(p.virtual, func(v string) bool { return strings.EqualFold(v, name) })
		}
		if ok && def.Key == nil {
			def.Key = key.columns
		}
		if ok && whole {
			def.Unique = append(def.Unique, key.columns)
		}
	}
}

// index finds a column by name, whose case does not matter in MySQL; -1 if there is none.
func (d *Definition) index(name string) int {
	return slices.IndexFunc(d.Columns, func(c ColumnDef) bool { return strings.EqualFold(c.Name, name) })
}
