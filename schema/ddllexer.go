package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenWord             // unquoted: a keyword or a name
	tokenName             // a quoted name; its value is the name
	tokenString           // a string; its value is what it says
	tokenNumber           // 1, 1.5, 1e3
	tokenHex              // 0xff or x'ff'
	tokenBits             // 0b11 or b'11'
	tokenPunct            // one character
)

// token is a piece of a statement: text[start:end] of the text that was cut.
type token struct {
	kind       tokenKind
	start, end int
	text       string // as written
	value      string // of names and strings
}

// syntax is what the text of a statement depends on.
type syntax struct {
	ansiQuotes bool
	noEscapes  bool // NO_BACKSLASH_ESCAPES
	mariaDB    bool
	version    int // the server's, as 80036; 0: not known, so every version that there is has been reached
}

// executes says whether a versioned comment is code to the server. MariaDB leaves alone what is meant for MySQL 5.7 and
// later.
func (s syntax) executes(version int, maria bool) bool {
	switch {
	case maria && !s.mariaDB:
		return false
	case s.mariaDB && !maria && version >= 50700 && version <= 99999:
		return false
	}
	return version == 0 || s.version == 0 && version < 99000 || s.version != 0 && version <= s.version
}

var (
	errOpenQuote   = errors.New("a quote is not closed")
	errOpenComment = errors.New("a comment is not closed")
)

// lexer cuts a text into tokens. Comments are left out; those with a version that the server has reached are read as
// their content, for that is how the server marks what older ones do not know.
type lexer struct {
	syntax
	text     string
	pos      int
	inside   bool // a versioned comment
	tokens   []token
	comments [][2]int // where comments stand that are not read
}

// cut cuts a text; the last token is tokenEnd.
func cut(text string, s syntax) (*lexer, error) {
	l := &lexer{syntax: s, text: text}
	for {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		l.tokens = append(l.tokens, t)
		if t.kind == tokenEnd {
			return l, nil
		}
	}
}

func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	if l.pos == len(l.text) {
		return token{kind: tokenEnd, start: l.pos, end: l.pos}, nil
	}
	start := l.pos
	switch c := l.text[start]; {
	case c == '`' || c == '"' && l.ansiQuotes:
		value, err := l.quoted(start, false)
		return l.token(tokenName, start, value), err
	case c == '\'' || c == '"':
		value, err := l.quoted(start, !l.noEscapes)
		return l.token(tokenString, start, value), err
	case (c == 'n' || c == 'N') && l.at(start+1) == '\'':
		value, err := l.quoted(start+1, !l.noEscapes)
		return l.token(tokenString, start, value), err
	case (c == 'x' || c == 'X') && l.at(start+1) == '\'':
		_, err := l.quoted(start+1, false)
		return l.token(tokenHex, start, ""), err
	case (c == 'b' || c == 'B') && l.at(start+1) == '\'':
		_, err := l.quoted(start+1, false)
		return l.token(tokenBits, start, ""), err
	case isDigit(c) || c == '.' && isDigit(l.at(start+1)) && !l.afterName(start):
		return l.number(start), nil
	case isWordByte(c):
		for l.pos < len(l.text) && isWordByte(l.text[l.pos]) {
			l.pos++
		}
		return l.token(tokenWord, start, l.text[start:l.pos]), nil
	default:
		l.pos++
		return l.token(tokenPunct, start, ""), nil
	}
}

func (l *lexer) token(kind tokenKind, start int, value string) token {
	return token{kind: kind, start: start, end: l.pos, text: l.text[start:l.pos], value: value}
}

// at is a byte of the text, 0 beyond its end.
func (l *lexer) at(i int) byte {
	if i < len(l.text) {
		return l.text[i]
	}
	return 0
}

// afterName says whether what stands at start directly follows a name, so that a point belongs to the name.
func (l *lexer) afterName(start int) bool {
	if len(l.tokens) == 0 {
		return false
	}
	last := l.tokens[len(l.tokens)-1]
	return last.end == start && (last.kind == tokenWord || last.kind == tokenName)
}

// skip moves over blanks and comments.
func (l *lexer) skip() error {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.IndexByte(" \t\r\n\f\v", rest[0]) >= 0 || rest[0] == 0:
			l.pos++
		case rest[0] == '#', strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' '):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest) - 1
			}
			l.comment(end + 1)
		case strings.HasPrefix(rest, "/*!"):
			if err := l.versioned(3, false); err != nil {
				return err
			}
		case strings.HasPrefix(rest, "/*M!"):
			if err := l.versioned(4, true); err != nil {
				return err
			}
		case l.inside && strings.HasPrefix(rest, "*/"):
			l.inside = false
			l.pos += 2
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return errOpenComment
			}
			l.comment(end + 4)
		default:
			return nil
		}
	}
	// A versioned comment may be open: Debezium's history cuts its end off, as it is behind the last word.
	return nil
}

// comment moves over a comment of so many bytes.
func (l *lexer) comment(size int) {
	l.comments = append(l.comments, [2]int{l.pos, l.pos + size})
	l.pos += size
}

// versioned enters a comment with a version, or moves over it. Comments may stand inside.
func (l *lexer) versioned(prefix int, maria bool) error {
	i := l.pos + prefix
	digits := i
	for digits < len(l.text) && digits < i+6 && isDigit(l.text[digits]) {
		digits++
	}
	version := 0
	if digits-i >= 5 {
		version, _ = strconv.Atoi(l.text[i:digits])
		i = digits
	}
	if l.executes(version, maria) {
		l.inside = true
		l.pos = i
		return nil
	}
	for depth := 1; ; i++ {
		switch {
		case i >= len(l.text):
			return errOpenComment
		case strings.HasPrefix(l.text[i:], "*/"):
			if depth--; depth == 0 {
				l.comment(i + 2 - l.pos)
				return nil
			}
			i++
		case strings.HasPrefix(l.text[i:], "/*"):
			depth++
			i++
		}
	}
}

// quoted moves over a quoted text whose opening quote is at start, and gives its content. Quotes inside are doubled, in
// strings also escaped.
func (l *lexer) quoted(start int, escapes bool) (string, error) {
	quote := l.text[start]
	for i := start + 1; i < len(l.text); i++ {
		switch c := l.text[i]; {
		case c == '\\' && escapes:
			i++
		case c == quote && l.at(i+1) == quote:
			i++
		case c == quote:
			l.pos = i + 1
			content := l.text[start+1 : i]
			return unescaped(content, quote, escapes), nil
		}
	}
	return "", fmt.Errorf("%w (%c)", errOpenQuote, quote)
}

// number reads a number, or a name that begins with digits.
func (l *lexer) number(start int) token {
	word := start
	for word < len(l.text) && isWordByte(l.text[word]) {
		word++
	}
	text := l.text[start:word]
	switch {
	case l.afterPoint(start): // of a qualified name
		l.pos = word
		return l.token(tokenWord, start, text)
	case len(text) > 2 && text[0] == '0' && text[1] == 'x' && strings.Trim(text[2:], "0123456789abcdefABCDEF") == "":
		l.pos = word
		return l.token(tokenHex, start, "")
	case len(text) > 2 && text[0] == '0' && text[1] == 'b' && strings.Trim(text[2:], "01") == "":
		l.pos = word
		return l.token(tokenBits, start, "")
	}
	i := l.digits(start)
	if l.at(i) == '.' {
		i = l.digits(i + 1)
	}
	if c := l.at(i); c == 'e' || c == 'E' {
		j := i + 1
		if c := l.at(j); c == '+' || c == '-' {
			j++
		}
		if isDigit(l.at(j)) {
			i = l.digits(j)
		}
	}
	if word > i { // 1a, 1e5x
		l.pos = word
		return l.token(tokenWord, start, text)
	}
	l.pos = i
	return l.token(tokenNumber, start, "")
}

func (l *lexer) afterPoint(start int) bool {
	n := len(l.tokens)
	return n > 1 && l.tokens[n-1].text == "." && l.tokens[n-1].end == start && l.tokens[n-1].kind == tokenPunct &&
		(l.tokens[n-2].kind == tokenWord || l.tokens[n-2].kind == tokenName)
}

func (l *lexer) digits(i int) int {
	for isDigit(l.at(i)) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWordByte takes all that names and keywords are made of; characters beyond ASCII are letters.
func isWordByte(c byte) bool {
	return c == '_' || c == '$' || isDigit(c) || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}
