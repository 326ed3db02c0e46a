// Package offset knows which position is safe to restart from, its exact bytes, and where it is kept.
//
// An [Offset] is Debezium's MySQL source offset, read and written exactly as Kafka Connect stores it. A [Tracker] says
// which offset is safe: the newest one such that every record up to it is acknowledged. A [Store] keeps the offsets of
// many connectors in one place; [FileStore] is Connect's standalone file.
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

// Offset is Debezium's MySQL source offset: the position at which a restart begins, and how much to skip there. It is
// a small value; copies are cheap and share the immutable GTID set. The zero value is no offset at all.
type Offset struct {
	TsSec    int64    // seconds since the epoch of the event's source time; 0: not written
	File     string   // binlog file to restart in
	Pos      int64    // position in File: of the open transaction's BEGIN, or the end of the last whole event outside one
	GTIDs    GTIDSet  // executed set without the open transaction; the zero value: not written
	Row      int64    // rows of the next rows event already emitted; 0: not written
	ServerID int64    // server_id of the last event's header; 0: not written
	Event    int64    // events after and including BEGIN already done; 0: not written
	Extra    []Member // further members of a stored offset (snapshot, transaction_id …), in the order read; not to be changed
}

// Member is a member of a stored offset that Offset has no field for.
type Member struct {
	Name  string
	Value string // JSON text: a string, number, boolean or null
}

// IsZero reports whether o says nothing: what Load returns when nothing is stored.
func (o Offset) IsZero() bool {
	return o.File == "" && o.Pos == 0 && o.TsSec == 0 && o.Row == 0 && o.ServerID == 0 && o.Event == 0 &&
		o.GTIDs.IsAbsent() && len(o.Extra) == 0
}

// Equal reports whether both would be stored with the same members.
func (o Offset) Equal(p Offset) bool {
	return o.TsSec == p.TsSec && o.File == p.File && o.Pos == p.Pos && o.Row == p.Row && o.ServerID == p.ServerID &&
		o.Event == p.Event && o.GTIDs.Equal(p.GTIDs) && slices.Equal(o.Extra, p.Extra)
}

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

// Parse reads the text of a stored offset. Nothing, null and {} are no offset: the zero value. Anything else must be
// one flat JSON object that names file and pos, with whole numbers where Debezium has them; a repeated member counts
// with its last value, as in a Java map.
func Parse(text []byte) (Offset, error) {
	o, err := parse(text)
	if err != nil {
		return Offset{}, fmt.Errorf("source offset %s: %w", abridged(text), err)
	}
	return o, nil
}

func abridged(text []byte) string {
	const most = 400
	if len(text) > most {
		return strconv.Quote(string(text[:most])) + "…"
	}
	return strconv.Quote(string(text))
}

func parse(text []byte) (Offset, error) {
	var o Offset
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return o, nil
	}
	members, err := parseMembers(trimmed)
	if err != nil || len(members) == 0 {
		return o, err
	}
	hasPos := false
	for _, m := range members {
		switch m.Name {
		case "file":
			o.File, err = m.text()
		case "gtids":
			var text string
			if text, err = m.text(); err == nil && m.Value != "null" {
				o.GTIDs, err = ParseGTIDSet(text)
			}
		case "pos":
			hasPos = true
			o.Pos, err = m.number()
		case "ts_sec":
			o.TsSec, err = m.number()
		case "row":
			o.Row, err = m.number()
		case "server_id":
			o.ServerID, err = m.number()
		case "event":
			o.Event, err = m.number()
		default:
			o.Extra = append(o.Extra, m)
		}
		if err != nil {
			return Offset{}, err
		}
	}
	if o.File == "" || !hasPos {
		return Offset{}, errors.New(`it has no "file" and "pos", so it is no offset of a MySQL connector`)
	}
	return o, nil
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
		if i := slices.IndexFunc(members, func(o Member) bool { return o.Name == m.Name }); i >= 0 {
			members[i] = m
		} else {
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

func notJSON(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON text ends too early")
	}
	return fmt.Errorf("it is not JSON: %w", err)
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

// Append appends the exact text that Kafka Connect stores for o: compact JSON with the members in the iteration order
// of a java.util.HashMap. The zero value gives {}.
func (o Offset) Append(dst []byte) []byte {
	if o.IsZero() {
		return append(dst, "{}"...)
	}
	if len(o.Extra) > 0 {
		return o.appendHashed(dst)
	}
	// Few members, so the table has 16 buckets and the order is fixed: see TestMemberOrder.
	dst = append(dst, '{')
	if o.TsSec != 0 {
		dst = strconv.AppendInt(append(dst, `"ts_sec":`...), o.TsSec, 10)
		dst = append(dst, ',')
	}
	dst = appendJSONString(append(dst, `"file":`...), o.File)
	dst = strconv.AppendInt(append(dst, `,"pos":`...), o.Pos, 10)
	if !o.GTIDs.IsAbsent() {
		dst = o.GTIDs.Append(append(dst, `,"gtids":"`...))
		dst = append(dst, '"')
	}
	if o.Row != 0 {
		dst = strconv.AppendInt(append(dst, `,"row":`...), o.Row, 10)
	}
	if o.ServerID != 0 {
		dst = strconv.AppendInt(append(dst, `,"server_id":`...), o.ServerID, 10)
	}
	if o.Event != 0 {
		dst = strconv.AppendInt(append(dst, `,"event":`...), o.Event, 10)
	}
	return append(dst, '}')
}

// appendHashed writes any set of members by the general rule. Members that share a bucket keep the order in which
// Debezium puts them: its own first, server_id before event, then the others as they were read.
func (o Offset) appendHashed(dst []byte) []byte {
	members := make([]Member, 0, 7+len(o.Extra))
	number := func(name string, n int64) {
		if n != 0 {
			members = append(members, Member{name, strconv.FormatInt(n, 10)})
		}
	}
	if !o.GTIDs.IsAbsent() {
		members = append(members, Member{"gtids", `"` + o.GTIDs.String() + `"`})
	}
	members = append(members, Member{"file", string(appendJSONString(nil, o.File))}, Member{"pos", strconv.FormatInt(o.Pos, 10)})
	number("row", o.Row)
	number("server_id", o.ServerID)
	number("event", o.Event)
	number("ts_sec", o.TsSec)
	members = append(members, o.Extra...)

	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
	}
	dst = append(dst, '{')
	for i, at := range hashMapOrder(names) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(dst, members[at].Name)
		dst = append(dst, ':')
		dst = append(dst, members[at].Value...)
	}
	return append(dst, '}')
}

// String is the text that [Offset.Append] appends.
func (o Offset) String() string { return string(o.Append(nil)) }

// Before reports whether o lies before p in the binlog of one server: by number of the file, position, event and row.
// The second result is false if that cannot be said, because the files are not numbered alike ("mysql-bin.000009" and
// "binlog.000010"). Whether both offsets are from the same server, the caller has to know; across servers only the
// GTID sets can be compared.
func (o Offset) Before(p Offset) (before, comparable bool) {
	base, number, ok := fileNumber(o.File)
	base2, number2, ok2 := fileNumber(p.File)
	if !ok || !ok2 || base != base2 {
		return false, false
	}
	switch {
	case number != number2:
		return number < number2, true
	case o.Pos != p.Pos:
		return o.Pos < p.Pos, true
	case o.Event != p.Event:
		return o.Event < p.Event, true
	}
	return o.Row < p.Row, true
}

// fileNumber splits a binlog file name: the number grows by more digits after .999999.
func fileNumber(file string) (base string, number uint64, ok bool) {
	dot := strings.LastIndexByte(file, '.')
	if dot < 0 {
		return "", 0, false
	}
	number, err := strconv.ParseUint(file[dot+1:], 10, 64)
	return file[:dot], number, err == nil
}
