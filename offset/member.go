package offset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Member is one member of an offset's text.
type Member struct {
	Name  string
	Value string // JSON text: a string, number, boolean or null
}

// TextMember is a member whose value is a string.
func TextMember(name, text string) Member { return Member{name, string(appendJSONString(nil, text))} }

// NumberMember is a member whose value is a whole number.
func NumberMember(name string, n int64) Member { return Member{name, strconv.FormatInt(n, 10)} }

// Member gives a member of Extra by name: the content of a string, the JSON text of anything else. A member that is
// null counts as not there.
func (o Offset) Member(name string) (string, bool) {
	for _, m := range o.Extra {
		if m.Name != name || m.Value == "null" {
			continue
		}
		var s string
		if json.Unmarshal([]byte(m.Value), &s) == nil {
			return s, true
		}
		return m.Value, true
	}
	return "", false
}

// Members are all members of o's text, in its order: that in which Java iterates over the HashMap in which Debezium
// collects them. Of those that share a bucket its own come first, server_id before event, then Extra in its order. The
// caller owns the result.
func (o Offset) Members() []Member {
	if o.IsZero() {
		return nil
	}
	put := make([]Member, 0, 7+len(o.Extra))
	number := func(name string, n int64) {
		if n != 0 {
			put = append(put, NumberMember(name, n))
		}
	}
	if !o.GTIDs.IsAbsent() {
		put = append(put, Member{"gtids", `"` + o.GTIDs.String() + `"`})
	}
	put = append(put, TextMember("file", o.File), NumberMember("pos", o.Pos))
	number("row", o.Row)
	number("server_id", o.ServerID)
	number("event", o.Event)
	number("ts_sec", o.TsSec)
	put = append(put, o.Extra...)

	names := make([]string, len(put))
	for i, m := range put {
		names[i] = m.Name
	}
	members := make([]Member, len(put))
	for i, at := range hashOrder(names) {
		members[i] = put[at]
	}
	return members
}

// With returns o with further members in Extra. One whose name Extra has replaces that one in its place, as in a Java
// map; others follow in the order given. What o and extra hold is not changed. The names of the fields of [Offset] are not to
// be among them.
func (o Offset) With(extra ...Member) Offset {
	all := make([]Member, len(o.Extra), len(o.Extra)+len(extra))
	copy(all, o.Extra)
	for _, m := range extra {
		if i := slices.IndexFunc(all, func(o Member) bool { return o.Name == m.Name }); i >= 0 {
			all[i] = m
		} else {
			all = append(all, m)
		}
	}
	o.Extra = all
	return o
}

// Without returns o without the members of Extra whose names drop takes. What o holds is not changed.
func (o Offset) Without(drop func(name string) bool) Offset {
	if !slices.ContainsFunc(o.Extra, func(m Member) bool { return drop(m.Name) }) {
		return o
	}
	var kept []Member
	for _, m := range o.Extra {
		if !drop(m.Name) {
			kept = append(kept, m)
		}
	}
	o.Extra = kept
	return o
}

func sameMembers(a, b []Member) bool {
	if len(a) != len(b) {
		return false
	}
	for i, m := range a {
		if m != b[i] {
			byName := func(x, y Member) int { return strings.Compare(x.Name, y.Name) }
			return slices.Equal(slices.SortedStableFunc(slices.Values(a), byName), slices.SortedStableFunc(slices.Values(b), byName))
		}
	}
	return true
}

// parseMembers reads one flat object. Strings are written again as Connect would write them.
func parseMembers(text []byte) ([]Member, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	tok, err := dec.Token()
	if err != nil {
		return nil, notJSON(err)
	}
	if tok != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	var members []Member
	places := make(map[string]int)
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, notJSON(err)
		}
		m := Member{Name: tok.(string)} // the decoder lets nothing else stand for a name
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, notJSON(err)
		}
		switch raw[0] {
		case '{', '[':
			return nil, fmt.Errorf("member %q is not a plain value", m.Name)
		case '"':
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				return nil, notJSON(err)
			}
			m.Value = string(appendJSONString(nil, s))
		default:
			m.Value = string(raw)
		}
		if at, again := places[m.Name]; again {
			members[at] = m
		} else {
			places[m.Name] = len(members)
			members = append(members, m)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, notJSON(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON object")
	}
	return members, nil
}

func (m Member) text() (string, error) {
	if m.Value == "null" {
		return "", nil
	}
	var s string
	if err := json.Unmarshal([]byte(m.Value), &s); err != nil {
		return "", fmt.Errorf("member %q is %s, not a string", m.Name, m.Value)
	}
	return s, nil
}

// number reads a whole number. Debezium casts to Long, so 1.0 and "1" would stop it as well.
func (m Member) number() (int64, error) {
	if m.Value == "null" {
		return 0, nil
	}
	n, err := strconv.ParseInt(m.Value, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("member %q is %s, not a whole number from 0 to 2^63-1", m.Name, m.Value)
	}
	return n, nil
}
