package kafka

import (
	"errors"
	"fmt"
	"strings"
)

// mostJAAS bounds a login module: a token may stand in it.
const mostJAAS = 256 << 10

type jaasLogin struct {
	module  string
	options map[string]string
}

// parseJAAS reads one login module: class, control flag, key=value pairs with quoted or bare values, semicolon. No error
// shows any of the text, which holds the password.
func parseJAAS(text string) (jaasLogin, error) {
	login := jaasLogin{options: map[string]string{}}
	if len(text) > mostJAAS {
		return login, fmt.Errorf("it has more than %d bytes", mostJAAS)
	}
	p := jaasParser{text: text}
	var err error
	if login.module, err = p.word(); err != nil {
		return login, err
	}
	if login.module == "" {
		return login, errors.New("it is missing")
	}
	flag, err := p.word()
	if err != nil {
		return login, err
	}
	switch strings.ToLower(flag) {
	case "required", "requisite", "sufficient", "optional":
	default:
		return login, errors.New("the word after the class must be required")
	}
	for {
		name, err := p.word()
		if err != nil {
			return login, err
		}
		if name == "" {
			break
		}
		if !p.skip('=') {
			return login, errors.New("an option has no = after its name")
		}
		if login.options[name], err = p.word(); err != nil {
			return login, err
		}
	}
	if !p.skip(';') {
		return login, errors.New("the ; at its end is missing")
	}
	if p.blanks(); p.text != "" {
		return login, errors.New("something follows after the ;")
	}
	return login, nil
}

type jaasParser struct{ text string }

// blanks skips blanks and Java's comments.
func (p *jaasParser) blanks() {
	for {
		p.text = strings.TrimLeft(p.text, " \t\r\n")
		switch {
		case strings.HasPrefix(p.text, "//"):
			_, p.text, _ = strings.Cut(p.text, "\n")
		case strings.HasPrefix(p.text, "/*"):
			_, p.text, _ = strings.Cut(p.text[2:], "*/")
		default:
			return
		}
	}
}

func (p *jaasParser) skip(c byte) bool {
	p.blanks()
	if p.text == "" || p.text[0] != c {
		return false
	}
	p.text = p.text[1:]
	return true
}

// word reads up to a blank, = or ;, or a quoted text with Java's backslash escapes. It is empty at the end.
func (p *jaasParser) word() (string, error) {
	p.blanks()
	if p.text == "" {
		return "", nil
	}
	quote := p.text[0]
	if quote != '"' && quote != '\'' {
		end := strings.IndexAny(p.text, " \t\r\n=;\"'")
		if end < 0 {
			end = len(p.text)
		}
		word := p.text[:end]
		p.text = p.text[end:]
		return word, nil
	}
	var word strings.Builder
	for i := 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == quote:
			p.text = p.text[i+1:]
			return word.String(), nil
		case c == '\\' && i+1 < len(p.text):
			i++
			escaped := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}[p.text[i]]
			if escaped == 0 {
				escaped = p.text[i]
			}
			word.WriteByte(escaped)
		default:
			word.WriteByte(c)
		}
	}
	return "", errors.New("a quoted text does not end")
}
