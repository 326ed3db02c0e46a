package binlog

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is what a QUERY event's text is to the stream. The text is not parsed as SQL: only what stands in it by the
// server's own hand, or decides whether rows could be missing, is recognised.
type kind uint8

const (
	kindOther      kind = iota // account and administrative statements: a boundary
	kindDDL                    // CREATE, ALTER, DROP, RENAME, of whatever
	kindBegin                  // BEGIN
	kindCommit                 // COMMIT
	kindRollback               // ROLLBACK
	kindRollbackTo             // ROLLBACK TO SAVEPOINT
	kindSavepoint              // SAVEPOINT, RELEASE SAVEPOINT
	kindXAStart
	kindXAEnd
	kindXACommit
	kindXAOnePhase // XA COMMIT … ONE PHASE
	kindXARollback
	kindTruncate
	kindDML      // a change of rows logged as text
	kindFunction // a call of a stored function that changes rows, logged as text: SELECT `db`.`f`(…)
)

// statement is a classified text. For kindTruncate and kindDML it has the tables named as targets, for kindFunction the
// function.
type statement struct {
	kind   kind
	tables []tableName
	xid    string // of the XA kinds: X'…',X'…',1
}

type tableName struct{ database, table string }

// classify looks at the text of a QUERY event.
func classify(database, text []byte) statement {
	// The two that nearly every transaction has, without a look at anything else.
	switch string(text) {
	case "BEGIN":
		return statement{kind: kindBegin}
	case "COMMIT":
		return statement{kind: kindCommit}
	}
	s := scanner{text: text}
	switch s.word() {
	case "BEGIN":
		return statement{kind: kindBegin}
	case "COMMIT":
		return statement{kind: kindCommit}
	case "ROLLBACK":
		switch s.word() {
		case "":
			return statement{kind: kindRollback}
		case "TO":
			return statement{kind: kindRollbackTo}
		case "WORK":
			if s.word() == "TO" {
				return statement{kind: kindRollbackTo}
			}
			return statement{kind: kindRollback}
		}
	case "SAVEPOINT", "RELEASE":
		return statement{kind: kindSavepoint}
	case "XA":
		return s.xa()
	case "TRUNCATE":
		s.skip("TABLE")
		if t, ok := s.table(string(database)); ok {
			return statement{kind: kindTruncate, tables: []tableName{t}}
		}
	case "INSERT", "REPLACE":
		s.skip("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO")
		return s.dml(string(database), false)
	case "LOAD":
		// LOAD DATA … INTO TABLE t: whatever comes before, the table stands behind INTO TABLE.
		for {
			w, more := s.token()
			if !more {
				return statement{kind: kindDML}
			}
			if w == "INTO" {
				s.skip("TABLE")
				return s.dml(string(database), false)
			}
		}
	case "UPDATE":
		s.skip("LOW_PRIORITY", "IGNORE")
		return s.dml(string(database), true)
	case "DELETE":
		s.skip("LOW_PRIORITY", "QUICK", "IGNORE", "FROM")
		return s.dml(string(database), true)
	case "SELECT":
		f, _ := s.table(string(database))
		return statement{kind: kindFunction, tables: []tableName{f}}
	case "CREATE":
		if t, ok := s.createSelect(string(database)); ok {
			return statement{kind: kindDML, tables: []tableName{t}}
		}
		return statement{kind: kindDDL}
	case "ALTER", "DROP", "RENAME":
		return statement{kind: kindDDL}
	case "WITH":
		// Common table expressions in front of an UPDATE or DELETE: every name counts as a target.
		return s.dml(string(database), true)
	}
	return statement{}
}

// xa takes what follows the word XA.
func (s *scanner) xa() statement {
	var st statement
	switch s.word() {
	case "START", "BEGIN":
		st.kind = kindXAStart
	case "END", "PREPARE":
		st.kind = kindXAEnd
	case "COMMIT":
		st.kind = kindXACommit
	case "ROLLBACK":
		st.kind = kindXARollback
	}
	st.xid = s.xid()
	if st.kind == kindXACommit && s.word() == "ONE" {
		st.kind = kindXAOnePhase
	}
	return st
}

// xid takes the name of an XA transaction in any way of writing it and returns it as the server writes it into the binlog:
// X'…',X'…',1.
func (s *scanner) xid() string {
	var parts [2][]byte
	format := uint64(1)
	for i := range 3 {
		if i > 0 && !s.comma() {
			break
		}
		s.space()
		if i == 2 {
			if n, err := strconv.ParseUint(s.word(), 10, 32); err == nil {
				format = n
			}
			break
		}
		parts[i] = s.bytes()
	}
	return fmt.Sprintf("X'%x',X'%x',%d", parts[0], parts[1], format)
}

// comma takes a comma.
func (s *scanner) comma() bool {
	s.space()
	if len(s.text) == 0 || s.text[0] != ',' {
		return false
	}
	s.text = s.text[1:]
	return true
}

// bytes takes a string: 'text', X'hex' or 0xhex.
func (s *scanner) bytes() []byte {
	if len(s.text) == 0 {
		return nil
	}
	if c := s.text[0]; c == '\'' || c == '"' {
		return []byte(s.quoted(c))
	}
	digits := s.word()
	switch {
	case digits == "X" && len(s.text) > 0 && s.text[0] == '\'':
		digits = s.quoted('\'')
	case strings.HasPrefix(digits, "0X"):
		digits = digits[2:]
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return []byte(digits)
	}
	return b
}

// createSelect takes the rest of CREATE TABLE … SELECT, and of its likes with TABLE, VALUES and WITH, and returns the
// table. In row format the server leaves the query out of the text.
func (s *scanner) createSelect(database string) (tableName, bool) {
	if s.word() != "TABLE" { // a TEMPORARY one has no rows in the binlog
		return tableName{}, false
	}
	s.skip("IF", "NOT", "EXISTS")
	t, ok := s.table(database)
	if !ok {
		return tableName{}, false
	}
	depth, query := 0, true // query: a query may begin here, also in parentheses
	for {
		w, more := s.token()
		if !more {
			return tableName{}, false
		}
		switch {
		case w == "SELECT", w == "TABLE", w == "VALUES", w == "WITH":
			rest := s.text
			if w == "WITH" && s.word() == "SYSTEM" && s.word() == "VERSIONING" { // an option of MariaDB's
				continue
			}
			s.text = rest
			if depth == 0 || query {
				return t, true
			}
		case w == "" && s.last == '(':
			depth++
			query = query || depth == 1
			continue
		case w == "" && s.last == ')':
			depth--
		}
		query = false
	}
}

// dml collects the tables of a data change: the next one, or all names up to SET, WHERE and the like.
func (s *scanner) dml(database string, all bool) statement {
	st := statement{kind: kindDML}
	for {
		s.space()
		if len(s.text) == 0 || s.ends() {
			return st
		}
		if t, ok := s.table(database); ok {
			st.tables = append(st.tables, t)
			if !all {
				return st
			}
			continue
		}
		if _, more := s.token(); !more {
			return st
		}
	}
}

// ends says whether a word follows behind which no table is named any more.
func (s *scanner) ends() bool {
	look := *s
	switch look.word() {
	case "SET", "WHERE", "LIMIT", "VALUES", "VALUE":
		return true
	case "ORDER":
		return look.word() == "BY"
	}
	return false
}

// scanner walks through SQL text.
type scanner struct {
	text []byte
	last byte // the character that token took last, when it took one or a quoted text: then its quote
}

// space skips white space and comments. What is in a version comment (/*!50000 … */) is text.
func (s *scanner) space() {
	for {
		b := bytes.TrimLeft(s.text, " \t\r\n\f\v;")
		switch {
		case bytes.HasPrefix(b, []byte("/*!")):
			b = bytes.TrimLeft(b[3:], "0123456789")
		case bytes.HasPrefix(b, []byte("*/")):
			b = b[2:]
		case bytes.HasPrefix(b, []byte("/*")):
			_, rest, found := bytes.Cut(b[2:], []byte("*/"))
			if !found {
				rest = nil
			}
			b = rest
		case bytes.HasPrefix(b, []byte("-- ")), bytes.HasPrefix(b, []byte("#")):
			_, b, _ = bytes.Cut(b, []byte("\n"))
		default:
			s.text = b
			return
		}
		s.text = b
	}
}

func nameByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c == '$' || c >= utf8.RuneSelf
}

// word takes the next bare word, in upper case; "" when something else or nothing follows.
func (s *scanner) word() string {
	s.space()
	n := 0
	for n < len(s.text) && nameByte(s.text[n]) {
		n++
	}
	w := strings.ToUpper(string(s.text[:n]))
	s.text = s.text[n:]
	return w
}

// skip takes words as long as they are among those given.
func (s *scanner) skip(words ...string) {
	for {
		look := *s
		w := look.word()
		found := false
		for _, x := range words {
			found = found || w == x
		}
		if !found {
			return
		}
		*s = look
	}
}

// token takes one word, quoted text or character; more is false at the end.
func (s *scanner) token() (word string, more bool) {
	if w := s.word(); w != "" {
		return w, true
	}
	if len(s.text) == 0 {
		return "", false
	}
	s.last = s.text[0]
	switch c := s.last; c {
	case '\'', '"', '`':
		s.quoted(c)
	default:
		s.text = s.text[1:]
	}
	return "", true
}

// quoted takes a quoted text, with doubled quotes and, but in backticks, backslash escapes.
func (s *scanner) quoted(quote byte) string {
	var out []byte
	b := s.text[1:]
	for len(b) > 0 {
		c := b[0]
		b = b[1:]
		switch {
		case c == '\\' && quote != '`' && len(b) > 0:
			out = append(out, b[0])
			b = b[1:]
		case c == quote && len(b) > 0 && b[0] == quote:
			out = append(out, c)
			b = b[1:]
		case c == quote:
			s.text = b
			return string(out)
		default:
			out = append(out, c)
		}
	}
	s.text = nil
	return string(out)
}

// name takes an identifier.
func (s *scanner) name() (string, bool) {
	s.space()
	if len(s.text) == 0 {
		return "", false
	}
	if c := s.text[0]; c == '`' || c == '"' {
		return s.quoted(c), true
	}
	n := 0
	for n < len(s.text) && nameByte(s.text[n]) {
		n++
	}
	name := string(s.text[:n])
	s.text = s.text[n:]
	return name, n > 0
}

// table takes `t` or `db`.`t`.
func (s *scanner) table(database string) (tableName, bool) {
	first, ok := s.name()
	if !ok {
		return tableName{}, false
	}
	look := *s
	look.space()
	if len(look.text) > 0 && look.text[0] == '.' {
		look.text = look.text[1:]
		if second, ok := look.name(); ok {
			*s = look
			return tableName{first, second}, true
		}
	}
	return tableName{database, first}, true
}
