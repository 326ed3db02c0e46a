// Package offset knows which position is safe to restart from, its exact bytes, and where it is kept.
//
// An [Offset] is Debezium's MySQL or MariaDB source offset, read and written exactly as Kafka Connect stores it. What that
// text cannot say is its [Side], kept in a record of our own beside it. A [Tracker] says which offset is safe: the newest
// one such that every record up to it is acknowledged. A [Store] keeps the offsets of many connectors in one place;
// [FileStore] is Connect's standalone file.
package offset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Offset is Debezium's source offset of a MySQL or MariaDB server: the position at which a restart begins, and how much to
// skip there. It is a small value; copies are cheap and share the immutable GTID set and Side. The zero value is no offset
// at all.
type Offset struct {
	TsSec    int64    // seconds since the epoch of the event's source time; 0: not written
	File     string   // binlog file to restart in
	Pos      int64    // position in File: of the open transaction's BEGIN, or the end of the last whole event outside one
	GTIDs    GTIDSet  // executed set without the open transaction; the zero value: not written
	Row      int64    // rows of the next rows event already emitted; 0: not written
	ServerID int64    // server_id of the last event's header; 0: not written
	Event    int64    // events after and including BEGIN already done; 0: not written
	Extra    []Member // further members of a stored offset (snapshot, transaction_id …), in the order read; not to be changed

	// What the text of an offset cannot say. It does not count for Equal, but for Same, and is not in the text; a [Store]
	// keeps it in the side record.
	Side *Side // nil: nothing is known
	Done int64 // rows of the XA transaction Side.Open that are given out
}

// IsZero reports whether o says nothing: what Load returns when nothing is stored.
func (o Offset) IsZero() bool {
	return o.File == "" && o.Pos == 0 && o.TsSec == 0 && o.Row == 0 && o.ServerID == 0 && o.Event == 0 &&
		o.GTIDs.IsAbsent() && len(o.Extra) == 0
}

// Equal reports whether both would be stored with the same members. The order of Extra does not count: it shows only
// where two members share a bucket of a Java map.
func (o Offset) Equal(p Offset) bool {
	return o.TsSec == p.TsSec && o.File == p.File && o.Pos == p.Pos && o.Row == p.Row && o.ServerID == p.ServerID &&
		o.Event == p.Event && o.GTIDs.Equal(p.GTIDs) && sameMembers(o.Extra, p.Extra)
}

// Same reports whether saving p after o would change nothing: besides being Equal, they share their Side and have the
// same rows Done. Inside an XA transaction that is given out, offsets are Equal and only Done moves.
func (o Offset) Same(p Offset) bool { return o.Side == p.Side && o.Done == p.Done && o.Equal(p) }

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

func notJSON(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON text ends too early")
	}
	return fmt.Errorf("it is not JSON: %w", err)
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

// appendHashed writes any set of members by the general rule.
func (o Offset) appendHashed(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range o.Members() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(dst, m.Name)
		dst = append(dst, ':')
		dst = append(dst, m.Value...)
	}
	return append(dst, '}')
}

// String is the text that [Offset.Append] appends.
func (o Offset) String() string { return string(o.Append(nil)) }
