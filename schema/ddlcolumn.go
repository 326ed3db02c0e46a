package schema

import "strings"

// column reads a column's name, type and attributes.
func (p *ddlParser) column() (*columnText, error) {
	c := &columnText{}
	var err error
	if c.name, err = p.name(); err != nil {
		return nil, err
	}
	for p.punct(".") { // table.column
		if c.name, err = p.name(); err != nil {
			return nil, err
		}
	}
	if c.typ, err = p.columnType(c.name); err != nil {
		return nil, err
	}
	for !p.columnEnds() {
		a, err := p.attribute()
		if err != nil {
			return nil, err
		}
		if a.kind != 0 {
			c.attributes = append(c.attributes, a)
		}
	}
	return c, nil
}

// columnEnds says whether a column's attributes end here.
func (p *ddlParser) columnEnds() bool {
	t := p.peek()
	return p.atEnd() || t.isPunct(",") || t.isPunct(")") || t.is("FIRST") || t.is("AFTER")
}

func (p *ddlParser) columnType(column string) (typeText, error) {
	var t typeText
	if p.peek().kind != tokenWord {
		return t, p.errorf("column %s has no type", column)
	}
	first := strings.ToUpper(p.next().text)
	t.words = []string{first}
	take := func(words ...string) bool {
		if !p.word(words...) {
			return false
		}
		t.words = append(t.words, words...)
		return true
	}
	switch first {
	case "DOUBLE":
		take("PRECISION")
	case "CHAR", "CHARACTER":
		take("VARYING")
	case "NATIONAL":
		if take("CHAR") || take("CHARACTER") {
			take("VARYING")
		} else if !take("VARCHAR") {
			take("VARCHARACTER")
		}
	case "NCHAR":
		_ = take("VARCHAR") || take("VARCHARACTER") || take("VARYING")
	case "LONG":
		_ = take("VARBINARY") || take("VARCHAR") || take("VARCHARACTER") || take("CHAR", "VARYING") || take("CHARACTER", "VARYING")
	}
	if p.punct("(") {
		if err := p.typeArguments(&t); err != nil {
			return t, err
		}
	}
	for {
		switch {
		case p.isWord("SIGNED"), p.isWord("UNSIGNED"), p.isWord("ZEROFILL"):
			t.options = append(t.options, strings.ToUpper(p.next().text))
		case p.word("BINARY"):
			t.binary = true
		case p.word("ASCII"):
			t.ascii = true
		case p.word("UNICODE"):
			t.unicode = true
		case p.word("BYTE"):
			t.byte = true
		case p.word("CHARSET"), p.word("CHARACTER", "SET"), p.word("CHAR", "SET"):
			t.charsetText = p.peek().text
			t.charset = p.charsetName()
		default:
			if p.isWord("COLLATE") {
				t.collate = p.peekAt(1).value
			}
			return t, nil
		}
	}
}

// typeArguments reads the numbers or labels after a type's name; the parenthesis is open.
func (p *ddlParser) typeArguments(t *typeText) error {
	for !p.punct(")") {
		switch token := p.next(); token.kind {
		case tokenEnd:
			return p.errorf("the arguments of a type do not end")
		case tokenString:
			t.labels = append(t.labels, labelText{token.text, token.value})
		case tokenHex, tokenBits:
			t.labels = append(t.labels, labelText{token.text, literalBytes(token)})
		case tokenNumber:
			t.numbers = append(t.numbers, token.text)
		case tokenPunct:
			if token.text == "(" {
				if err := p.skipParens(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// attribute reads one attribute of a column; its kind is 0 for one that no row depends on.
func (p *ddlParser) attribute() (attribute, error) {
	switch {
	case p.word("NOT", "NULL"):
		return attribute{kind: attrNotNull}, nil
	case p.word("NULL"):
		return attribute{kind: attrNull}, nil
	case p.word("NOT", "SECONDARY"), p.word("NOT", "ENFORCED"):
		return attribute{}, nil
	case p.word("DEFAULT"):
		d, err := p.defaultValue()
		return attribute{kind: attrDefault, deflt: d}, err
	case p.word("ON", "UPDATE"):
		if p.isNow() {
			p.next()
			args, err := p.nowArguments()
			return attribute{kind: attrOnUpdate, text: args}, err
		}
		return attribute{}, nil
	case p.word("AUTO_INCREMENT"):
		return attribute{kind: attrAutoIncrement}, nil
	case p.word("SERIAL", "DEFAULT", "VALUE"):
		return attribute{kind: attrSerial}, nil
	case p.word("PRIMARY"):
		p.word("KEY")
		return attribute{kind: attrPrimary}, nil
	case p.word("KEY"):
		return attribute{kind: attrPrimary}, nil
	case p.word("UNIQUE"):
		p.word("KEY")
		return attribute{kind: attrUnique}, nil
	case p.word("COMMENT"):
		p.punct("=")
		return p.comment()
	case p.word("COLLATE"):
		p.punct("=")
		t := p.peek()
		return attribute{kind: attrCollate, text: t.text, value: p.charsetName()}, nil
	case p.word("CHARSET"), p.word("CHARACTER", "SET"):
		return attribute{kind: attrCharset, value: p.charsetName()}, nil
	case p.word("COLUMN_FORMAT"), p.word("STORAGE"):
		p.next()
		return attribute{}, nil
	case p.word("SRID"):
		return attribute{kind: attrSRID, value: p.next().text}, nil
	case p.word("INVISIBLE"):
		return attribute{kind: attrInvisible}, nil
	case p.word("VISIBLE"):
		return attribute{kind: attrVisible}, nil
	case p.word("REFERENCES"):
		return attribute{}, p.references()
	case p.word("CONSTRAINT"):
		if t := p.peek(); !t.is("CHECK") && !t.is("PRIMARY") && !t.is("UNIQUE") && !t.is("NOT") && (t.kind == tokenName || t.kind == tokenWord) {
			p.next()
		}
		return attribute{}, nil
	case p.word("CHECK"):
		return attribute{}, p.skipOne()
	case p.word("GENERATED", "ALWAYS", "AS", "ROW"): // MariaDB's system versioning
		p.oneOf("START", "END")
		return attribute{}, nil
	case p.word("GENERATED", "ALWAYS"):
		return attribute{}, nil
	case p.word("AS"):
		return p.generated()
	}
	if p.peek().isPunct("=") || p.peekAt(1).isPunct("=") { // an attribute of an engine: name = value
		p.next()
		p.punct("=")
		return attribute{}, p.skipOne()
	}
	return attribute{}, p.skipOne()
}

// generated reads the expression of a generated column.
func (p *ddlParser) generated() (attribute, error) {
	a := attribute{kind: attrGenerated}
	first := p.pos
	if !p.punct("(") {
		return a, p.errorf("the expression of a generated column is missing")
	}
	if err := p.skipParens(); err != nil {
		return a, err
	}
	a.text = p.text[p.tokens[first].start:p.tokens[p.pos-1].end]
	a.stored = p.word("STORED") || p.word("PERSISTENT")
	p.word("VIRTUAL")
	return a, nil
}

func (p *ddlParser) comment() (attribute, error) {
	a := attribute{kind: attrComment}
	if p.peek().kind != tokenString {
		return a, p.errorf("the text of a comment is missing")
	}
	for p.peek().kind == tokenString {
		t := p.next()
		a.text += t.text
		a.value += t.value
	}
	return a, nil
}

// references moves over REFERENCES table (columns) and what follows: ON UPDATE there is no attribute of the column.
func (p *ddlParser) references() error {
	if _, err := p.tableRef(); err != nil {
		return err
	}
	if p.punct("(") {
		if err := p.skipParens(); err != nil {
			return err
		}
	}
	if p.word("MATCH") {
		p.next()
	}
	for p.isWord("ON", "DELETE") || p.isWord("ON", "UPDATE") {
		p.next()
		p.next()
		if !p.word("SET", "NULL") && !p.word("SET", "DEFAULT") && !p.word("NO", "ACTION") {
			p.next() // RESTRICT, CASCADE
		}
	}
	return nil
}

// isNow says whether the next word is NOW or one of the words for it.
func (p *ddlParser) isNow() bool {
	switch t := p.peek(); {
	case t.kind != tokenWord:
		return false
	default:
		switch strings.ToUpper(t.text) {
		case "NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP":
			return true
		}
		return false
	}
}

// nowArguments reads (digits), if they are there.
func (p *ddlParser) nowArguments() (string, error) {
	digits := ""
	if p.punct("(") {
		if p.peek().kind == tokenNumber {
			digits = p.peek().text
		}
		return digits, p.skipParens()
	}
	return "", nil
}

// defaultValue reads what follows DEFAULT.
func (p *ddlParser) defaultValue() (defaultText, error) {
	var d defaultText
	for p.peek().isPunct("+") || p.peek().isPunct("-") {
		d.sign = p.next().text
	}
	t := p.peek()
	switch t.kind {
	case tokenString:
		return p.stringDefault(d), nil
	case tokenNumber:
		d.kind, d.text = defaultNumber, p.next().text
		return d, nil
	case tokenHex:
		d.kind, d.text = defaultHex, p.next().text
		return d, nil
	case tokenBits:
		d.kind, d.text = defaultBits, p.next().text
		return d, nil
	case tokenPunct:
		d.kind = defaultExpression
		if !p.punct("(") {
			return d, p.errorf("a default is missing")
		}
		first := p.pos - 1
		err := p.skipParens()
		if err == nil {
			d.text = p.text[p.tokens[first].start:p.tokens[p.pos-1].end]
		}
		return d, err
	case tokenEnd:
		return d, p.errorf("a default is missing")
	}
	return p.wordDefault(d)
}

// wordDefault reads a default that begins with a word.
func (p *ddlParser) wordDefault(d defaultText) (defaultText, error) {
	t := p.peek()
	after := p.peekAt(1)
	switch {
	case t.kind == tokenWord && strings.HasPrefix(t.text, "_") && after.kind == tokenString:
		d.intro = p.next().text
		return p.stringDefault(d), nil
	case t.kind == tokenWord && strings.HasPrefix(t.text, "_") && (after.kind == tokenHex || after.kind == tokenBits):
		p.next()
		return p.defaultValue()
	case p.word("NULL"):
		return d, nil
	case t.is("TRUE"), t.is("FALSE"):
		d.kind, d.text = defaultBool, p.next().text
		return d, nil
	case (t.is("DATE") || t.is("TIME") || t.is("TIMESTAMP")) && after.kind == tokenString:
		p.next()
		d.kind, d.text, d.value = defaultTemporal, t.text+after.text, p.next().value
		return d, nil
	case p.isNow():
		p.next()
		d.kind, d.text = defaultNow, t.text
		_, err := p.nowArguments()
		if p.mariaDB && err == nil && p.word("ON", "UPDATE") { // part of the default, not an attribute
			p.next()
			_, err = p.nowArguments()
		}
		return d, err
	}
	d.kind = defaultExpression // MariaDB needs no parentheses around them
	if p.word("NEXT", "VALUE", "FOR") {
		_, err := p.tableRef()
		return d, err
	}
	p.next()
	for p.punct(".") {
		p.next()
	}
	if p.punct("(") {
		return d, p.skipParens()
	}
	return d, nil
}

// stringDefault reads a string, which may be of several pieces.
func (p *ddlParser) stringDefault(d defaultText) defaultText {
	d.kind = defaultString
	for p.peek().kind == tokenString {
		t := p.next()
		d.text += t.text
		d.value += t.value
	}
	return d
}

// literalBytes is what a hexadecimal or binary literal stands for.
func literalBytes(t token) string {
	text := t.text
	if strings.HasSuffix(text, "'") {
		text = text[2 : len(text)-1]
	} else {
		text = text[2:]
	}
	base := uint(4)
	if t.kind == tokenBits {
		base = 1
	}
	per := int(8 / base) // digits of a byte
	for len(text)%per != 0 {
		text = "0" + text
	}
	out := make([]byte, 0, len(text)/per)
	for i := 0; i < len(text); i += per {
		b := byte(0)
		for _, c := range []byte(text[i : i+per]) {
			b = b<<base | hexDigit(c)
		}
		out = append(out, b)
	}
	return string(out)
}

// hexDigit is the value of a hexadecimal digit; 0 for another character.
func hexDigit(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 0
}
