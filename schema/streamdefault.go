package schema

import "strings"

// What Debezium's DefaultValueParserListener makes of a default.

func (r *columnReader) defaultValue(d *defaultText) {
	switch {
	case d.kind == defaultNull:
	case !r.e.mariaDB:
		r.c.HasDefault, r.c.Default = true, d.expression()
	case d.read():
		r.c.HasDefault, r.c.Default = true, d.mariaExpression()
	}
}

// expression is the text that Debezium keeps of a default: strings without their quotes but with their escapes, 0x00FF
// without its first two and its last character, the epoch for CURRENT_TIMESTAMP, none for an expression.
func (d *defaultText) expression() *string {
	text := d.text
	switch d.kind {
	case defaultNull, defaultExpression:
		return nil
	case defaultNow:
		text = "1970-01-01 00:00:00"
	case defaultString:
		text = d.sign + withoutQuotes(text)
	case defaultNumber, defaultTemporal:
		text = d.sign + text
	case defaultHex, defaultBits:
		if len(text) > 2 {
			text = text[2 : len(text)-1]
		}
	}
	return &text
}

// mariaExpression is the text that the connector for MariaDB keeps, where it is another.
func (d *defaultText) mariaExpression() *string {
	text := d.sign + d.intro + d.text
	switch {
	case d.kind == defaultString && d.intro != "":
	case d.kind == defaultNow && strings.HasPrefix(strings.ToUpper(text), "LOCAL"):
	case d.kind == defaultBits && strings.HasPrefix(d.text, "0b"): // an expression to it
		return nil
	default:
		return d.expression()
	}
	return &text
}

// setExpression is that of ALTER COLUMN … SET DEFAULT, where Debezium knows fewer kinds: NULL and hexadecimal literals become the
// text "null".
func (d *defaultText) setExpression() *string {
	text := d.sign + d.text
	switch d.kind {
	case defaultExpression, defaultNow:
		return nil
	case defaultString:
		text = d.sign + d.intro + d.text
		if d.intro == "" {
			text = d.sign + withoutQuotes(d.text)
		}
	case defaultNull, defaultHex, defaultBits:
		text = d.sign + "null"
	}
	return &text
}

// setServerDefault notes what setExpression has not: NULL, hexadecimal and bit literals. Nil: there is no default any more.
func (c *ColumnDef) setServerDefault(d *defaultText) {
	text := ""
	if d != nil {
		switch d.kind {
		case defaultNull:
			text = "NULL"
		case defaultHex, defaultBits:
			text = d.text
		}
	}
	var server ServerColumn
	if c.Server != nil {
		server = *c.Server
	}
	if server.Default != text {
		server.Default = text
		c.Server = &server
	}
}

// read says whether Debezium's connector for MariaDB reads a default: it does not NULL, and nothing like 0x41.
func (d *defaultText) read() bool { return d.kind != defaultNull && d.kind != defaultHex }
