package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// file is a configuration file as a flat map, the way Kafka Connect sees it: all values are text.
type file struct {
	path  string
	keys  []string // in the order of the file
	value map[string]string
	twice []string // keys given more than once; the last value counts
	state string   // initial_state of a connector file
	json  bool
}

func (f *file) set(key, value string) {
	if _, ok := f.value[key]; ok {
		f.twice = append(f.twice, key)
	} else {
		f.keys = append(f.keys, key)
	}
	f.value[key] = value
}

// readFile reads JSON when the file begins with a brace, else Java properties.
func readFile(path string) (*file, error) {
	text, err := readBounded(path)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, &KeyError{File: path, Text: "cannot be read: " + err.Error()}
	}
	f, err := parseFile(path, text)
	if err != nil {
		return nil, &KeyError{File: path, Text: err.Error()}
	}
	return f, nil
}

// mostBytes is far more than any configuration has: beyond it the file is a wrong one.
const mostBytes = 16 << 20

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = fmt.Errorf("it has more than %d bytes, so it is no configuration", mostBytes)
	}
	return text, err
}

func parseFile(path string, text []byte) (*file, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	f := &file{path: path, value: map[string]string{}}
	if trimmed := bytes.TrimSpace(text); strings.EqualFold(filepath.Ext(path), ".json") || bytes.HasPrefix(trimmed, []byte("{")) {
		f.json = true
		return f, f.parseJSON(text)
	}
	return f, f.parseProperties(text)
}

// parseProperties reads Java's properties format. Java takes the bytes of a file as Latin-1; bytes that are valid UTF-8
// are taken as UTF-8 here, since that is what an editor wrote.
func (f *file) parseProperties(text []byte) error {
	if utf8.Valid(text) {
		return parseProperties(string(text), f.set)
	}
	latin1 := make([]rune, len(text))
	for i, b := range text {
		latin1[i] = rune(b)
	}
	return parseProperties(string(latin1), f.set)
}

// parseJSON reads {"name":…,"config":{…}}, as it is sent to Kafka Connect's REST interface and, with the members tasks
// and type, as that answers, or the bare map.
func (f *file) parseJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	wrap := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends too early")
		}
		at := min(int(d.InputOffset()), len(text))
		return fmt.Errorf("is not valid JSON: line %d: %w", 1+bytes.Count(text[:at], []byte("\n")), err)
	}
	t, err := d.Token()
	if err != nil {
		return wrap(err)
	}
	if t != json.Delim('{') {
		return errors.New(`is not a connector configuration; it must be {"name":"…","config":{…}} or the map of keys alone`)
	}
	outer := map[string]string{}
	var inner *file
	tasks := false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return wrap(err)
		}
		k := key.(string)
		v, err := d.Token()
		if err != nil {
			return wrap(err)
		}
		if v == json.Delim('{') && k == "config" {
			inner = &file{value: map[string]string{}}
			if err := inner.members(d, wrap); err != nil {
				return err
			}
			continue
		}
		if v == json.Delim('[') && k == "tasks" {
			tasks = true
			if err := skip(d); err != nil {
				return wrap(err)
			}
			continue
		}
		s, ok, err := scalar(k, v)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		outer[k] = s
		f.set(k, s)
	}
	if _, err := d.Token(); err != nil {
		return wrap(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("is not valid JSON: something follows the closing brace")
	}
	if inner == nil {
		if tasks {
			return notScalar("tasks")
		}
		return nil
	}
	name, state := outer["name"], outer["initial_state"]
	delete(outer, "name")
	delete(outer, "initial_state")
	if tasks {
		delete(outer, "type") // an answer of GET /connectors/NAME
	}
	for k := range outer {
		return fmt.Errorf(`has %q beside "config"; only "name" and "initial_state" may stand there`, k)
	}
	f.keys, f.value, f.twice, f.state = inner.keys, inner.value, inner.twice, state
	if within, ok := f.value["name"]; ok && name != "" && within != name {
		return fmt.Errorf(`has two names, %q beside "config" and %q inside it`, name, within)
	}
	if name != "" {
		f.value["name"] = name
		if !slices.Contains(f.keys, "name") {
			f.keys = append([]string{"name"}, f.keys...)
		}
	}
	return nil
}

// members reads the members of an object whose opening brace is read.
func (f *file) members(d *json.Decoder, wrap func(error) error) error {
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return wrap(err)
		}
		v, err := d.Token()
		if err != nil {
			return wrap(err)
		}
		s, ok, err := scalar(k.(string), v)
		if err != nil {
			return err
		}
		if ok {
			f.set(k.(string), s)
		}
	}
	if _, err := d.Token(); err != nil {
		return wrap(err)
	}
	return nil
}

// skip reads to the end of an array whose opening bracket is read.
func skip(d *json.Decoder) error {
	for depth := 1; depth > 0; {
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
	return nil
}

// scalar is a JSON value as text; null counts as not given.
func scalar(key string, v json.Token) (string, bool, error) {
	switch v := v.(type) {
	case string:
		return v, true, nil
	case json.Number:
		return v.String(), true, nil
	case bool:
		return fmt.Sprint(v), true, nil
	case nil:
		return "", false, nil
	}
	return "", false, notScalar(key)
}

func notScalar(key string) error {
	return fmt.Errorf("has an object or array as the value of %q; every value is text, a number, true or false", key)
}
