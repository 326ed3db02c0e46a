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

// The side record stands beside each offset, in the same file or topic, under [Key.Side]. Its value is one flat JSON
// object, as Connect wants it. Members that are not known are passed over; members may be added, but none may change.
//
//	offset                      copy of the offset that it was written with, the exact text
//	offset_before               copy of the offset that was stored before that one; left out when there was none
//	server_uuid                 the server that offset is from; left out when it is not known
//	server_uuid_before          the same of offset_before
//	file_time                   Side.FileTime; left out for 0
//	transaction_rows            of the transaction that offset lies in: Open.Rows; left out for -1. Without an open one there is
//	transaction_captured_rows   neither this nor any of the following, and each that says nothing is left out: Open.Captured
//	table_filters               Open.Filters
//	transaction_gtid            Open.GTID
//	transaction_commit_us       Open.CommitMicros
//	transaction_thread          Open.Thread; left out for -1
//	statement_pos               Open.StatementPos
//	statement_event             Open.StatementEvent
//	event_pos                   Open.EventPos
//	transaction_xid             Open.XID
//	transaction_done            Offset.Done
//	xa                          prepared, undecided XA transactions: the text of a JSON list of objects with the members xid,
//	                            server_uuid, file, pos, gtid and skip, which is left out for 0; with "new":true it is not one of offset_before, with
//	                            "ended":true not of offset any more
//
// In a topic the side record is acknowledged before the offset is written. So a crash between the two leaves an offset
// that the second copy equals; then only what is said of that one counts. If neither copy equals the stored offset,
// somebody else has written it, and nothing in the record is about it.

// maxSideRecord is far beyond what a topic takes, in bytes: no more is read.
const maxSideRecord = 16 << 20

// sidePrefix makes a connector's name that of its side record.
const sidePrefix = "tidemark:"

// Side is the key of the side record beside the offset under k: ["tidemark:<name>",<the same source partition>]. Connect
// loads and keeps such a record, and no connector asks for it.
func (k Key) Side() Key { return Key{Connector: sidePrefix + k.Connector, Server: k.Server} }

// Check refuses the name of a connector whose offset would stand where another's side record does.
func (k Key) Check() error {
	if strings.HasPrefix(k.Connector, sidePrefix) {
		return fmt.Errorf("connector %q: names that begin with %q are taken for Tidemark's own records; give the connector another name", k.Connector, sidePrefix)
	}
	return nil
}

// sideRecord is what a side record holds.
type sideRecord struct {
	offset Offset // with its Side and Done
	before Offset // with Server and XA in its Side; the zero value: none
}

// AppendSide appends the side record that is to be stored with o. stored is the offset in the place now (the zero value:
// none), record the side record beside it (nil: none); both are about to be replaced. An o without a Side has no side
// record: nothing is appended.
func (o Offset) AppendSide(dst []byte, stored Offset, record []byte) []byte {
	if o.Side == nil {
		return dst
	}
	next := sideRecord{offset: o}
	// What cannot be read was refused when the offset was loaded, so it stands beside an offset that is not ours.
	last, err := parseSide(record)
	known := err == nil && last != nil
	switch {
	case stored.IsZero():
	case known && stored.Equal(o) && last.offset.Equal(o):
		next.before = last.before // the offset does not move
	case stored.Equal(o):
	case known && last.offset.Equal(stored):
		next.before = last.offset
	case known && last.before.Equal(stored):
		next.before = last.before
	default:
		next.before = stored
		next.before.Side = nil
	}
	return next.append(dst)
}

// ReadSide returns o, a stored offset, with what counts of the side record stored beside it: all of it if its first copy
// is o, the server and the XA transactions if the second one is. ours is false if neither is, so that the record says nothing
// of o: somebody else has stored that. A place without a side record (nil, null, {}) is like one that says nothing. It is an
// error if the record cannot be read.
func (o Offset) ReadSide(record []byte) (with Offset, ours bool, err error) {
	o.Side, o.Done = nil, 0
	r, err := parseSide(record)
	switch {
	case err != nil:
		return o, false, err
	case r == nil:
		return o, true, nil
	case r.offset.Equal(o):
		o.Side, o.Done = r.offset.Side, r.offset.Done
		return o, true, nil
	case !r.before.IsZero() && r.before.Equal(o):
		o.Side = r.before.Side
		return o, true, nil
	}
	return o, false, nil
}

// ForeignSide tells an operator that o, the offset stored under key, is not the one that the side record is about, for the
// log.
func ForeignSide(key Key, o Offset, record []byte) string {
	text := fmt.Sprintf("the stored offset of %s is not the one that Tidemark stored last: Debezium, another program or a person has written %s since. "+
		"So what Tidemark noted beside its own offset does not count: the server, the open transaction and the undecided XA transactions", key, o)
	r, err := parseSide(record)
	if err != nil || r == nil || len(r.offset.Side.XA) == 0 {
		return text
	}
	text += fmt.Sprintf(". Of the latter there were %d, whose rows Tidemark does not write any more when they are committed:", len(r.offset.Side.XA))
	for i, p := range r.offset.Side.XA {
		if i == 10 {
			text += " …"
			break
		}
		text += fmt.Sprintf(" %s (prepared at %s:%d)", p.XID, p.File, p.Pos)
	}
	return text
}

func (r *sideRecord) append(dst []byte) []byte {
	side := r.offset.Side
	dst = append(dst, `{"offset":`...)
	dst = appendJSONString(dst, r.offset.String())
	text := func(name, s string) {
		if s != "" {
			dst = append(append(append(dst, `,"`...), name...), `":`...)
			dst = appendJSONString(dst, s)
		}
	}
	number := func(name string, n, none int64) {
		if n != none {
			dst = append(append(append(dst, `,"`...), name...), `":`...)
			dst = strconv.AppendInt(dst, n, 10)
		}
	}
	var before Side
	if !r.before.IsZero() {
		text("offset_before", r.before.String())
		if r.before.Side != nil {
			before = *r.before.Side
		}
	}
	text("server_uuid", side.Server)
	text("server_uuid_before", before.Server)
	number("file_time", side.FileTime, 0)
	if open := side.Open; open != nil {
		number("transaction_rows", open.Rows, -1)
		number("transaction_captured_rows", open.Captured, 0)
		text("table_filters", open.Filters)
		text("transaction_gtid", open.GTID.String())
		number("transaction_commit_us", open.CommitMicros, 0)
		number("transaction_thread", open.Thread, -1)
		number("statement_pos", open.StatementPos, 0)
		number("statement_event", open.StatementEvent, 0)
		number("event_pos", open.EventPos, 0)
		text("transaction_xid", open.XID)
	}
	number("transaction_done", r.offset.Done, 0)
	if list := appendXA(nil, side.XA, before.XA); list != nil {
		text("xa", string(list))
	}
	return append(dst, '}')
}

// appendXA appends the one list of the transactions of both offsets; nothing if there are none.
func appendXA(dst []byte, now, before []Prepared) []byte {
	one := func(p Prepared, mark string) {
		if len(dst) == 0 {
			dst = append(dst, '[')
		} else {
			dst = append(dst, ',')
		}
		dst = appendJSONString(append(dst, `{"xid":`...), p.XID)
		dst = appendJSONString(append(dst, `,"server_uuid":`...), p.Server)
		dst = appendJSONString(append(dst, `,"file":`...), p.File)
		dst = strconv.AppendInt(append(dst, `,"pos":`...), p.Pos, 10)
		dst = appendJSONString(append(dst, `,"gtid":`...), p.GTID)
		if p.Skip != 0 {
			dst = strconv.AppendInt(append(dst, `,"skip":`...), p.Skip, 10)
		}
		dst = append(append(dst, mark...), '}')
	}
	for _, p := range before {
		if slices.Contains(now, p) {
			one(p, "")
		} else {
			one(p, `,"ended":true`)
		}
	}
	for _, p := range now {
		if !slices.Contains(before, p) {
			one(p, `,"new":true`)
		}
	}
	if len(dst) == 0 {
		return nil
	}
	return append(dst, ']')
}

// The JSON of a side record.
type sideJSON struct {
	Offset       string `json:"offset"`
	Before       string `json:"offset_before"`
	Server       string `json:"server_uuid"`
	ServerBefore string `json:"server_uuid_before"`
	FileTime     int64  `json:"file_time"`
	Rows         *int64 `json:"transaction_rows"`
	Captured     int64  `json:"transaction_captured_rows"`
	Filters      string `json:"table_filters"`
	GTID         string `json:"transaction_gtid"`
	CommitMicros int64  `json:"transaction_commit_us"`
	Thread       *int64 `json:"transaction_thread"`
	Pos          int64  `json:"statement_pos"`
	Event        int64  `json:"statement_event"`
	EventPos     int64  `json:"event_pos"`
	XID          string `json:"transaction_xid"`
	Done         int64  `json:"transaction_done"`
	XA           string `json:"xa"`
}

type preparedJSON struct {
	XID    string `json:"xid"`
	Server string `json:"server_uuid"`
	File   string `json:"file"`
	Pos    int64  `json:"pos"`
	GTID   string `json:"gtid"`
	Skip   int64  `json:"skip"`
	New    bool   `json:"new"`
	Ended  bool   `json:"ended"`
}

// parseSide gives nil for no record.
func parseSide(text []byte) (*sideRecord, error) {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 || string(trimmed) == "null" || string(trimmed) == "{}" {
		return nil, nil
	}
	fail := func(err error) (*sideRecord, error) {
		return nil, fmt.Errorf("side record %s: %w", abridged(text), err)
	}
	if len(trimmed) > maxSideRecord {
		return fail(fmt.Errorf("it has %d bytes, more than any that Tidemark writes", len(trimmed)))
	}
	var j sideJSON
	if err := json.Unmarshal(trimmed, &j); err != nil {
		return fail(notSide(err))
	}
	offset, err := parse([]byte(j.Offset))
	if err == nil && offset.IsZero() {
		err = errors.New("it is empty")
	}
	if err != nil {
		return fail(fmt.Errorf(`its "offset": %w`, err))
	}
	before, err := parse([]byte(j.Before))
	if err != nil {
		return fail(fmt.Errorf(`its "offset_before": %w`, err))
	}
	now, earlier, err := parseXA(j.XA)
	if err != nil {
		return fail(fmt.Errorf(`its "xa": %w`, err))
	}
	open, err := j.open()
	if err != nil {
		return fail(err)
	}
	offset.Side = &Side{Server: j.Server, Open: open, XA: now, FileTime: j.FileTime}
	offset.Done = j.Done
	if !before.IsZero() && (j.ServerBefore != "" || len(earlier) > 0) {
		before.Side = &Side{Server: j.ServerBefore, XA: earlier}
	}
	numbers := []int64{j.FileTime, j.CommitMicros, j.Pos, j.Event, j.EventPos, j.Done}
	if j.Captured != -1 { // they could not be counted
		numbers = append(numbers, j.Captured)
	}
	if j.Rows != nil {
		numbers = append(numbers, *j.Rows)
	}
	if slices.Min(numbers) < 0 {
		return fail(errors.New("a number in it is negative"))
	}
	return &sideRecord{offset: offset, before: before}, nil
}

func notSide(err error) error {
	if cut, ok := errors.AsType[*json.SyntaxError](err); ok && cut.Error() == "unexpected end of JSON input" {
		return notJSON(io.EOF)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("member %q is a %s where Tidemark writes another kind of value", wrong.Field, wrong.Value)
	}
	return notJSON(err)
}

func (j *sideJSON) open() (*Open, error) {
	var id GTID
	if j.GTID != "" {
		var err error
		if id, err = ParseGTID(j.GTID); err != nil {
			return nil, fmt.Errorf(`its "transaction_gtid": %w`, err)
		}
	}
	o := &Open{
		GTID: id, CommitMicros: j.CommitMicros, Thread: -1, Rows: -1, Captured: j.Captured, Filters: j.Filters,
		StatementPos: j.Pos, StatementEvent: j.Event, EventPos: j.EventPos, XID: j.XID,
	}
	if j.Rows == nil && *o == (Open{Thread: -1, Rows: -1}) {
		return nil, nil
	}
	if j.Rows != nil {
		o.Rows = *j.Rows
	}
	if j.Thread != nil {
		o.Thread = *j.Thread
	}
	return o, nil
}

// parseXA reads the list: those of the first copy and those of the second.
func parseXA(text string) (now, before []Prepared, err error) {
	if text == "" {
		return nil, nil, nil
	}
	var list []preparedJSON
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, nil, notSide(err)
	}
	for _, j := range list {
		p := Prepared{XID: j.XID, Server: j.Server, File: j.File, Pos: j.Pos, GTID: j.GTID, Skip: j.Skip}
		if p.XID == "" || p.File == "" || p.Pos < 0 || p.Skip < 0 {
			return nil, nil, errors.New("an entry without xid, file or position")
		}
		if !j.Ended {
			now = append(now, p)
		}
		if !j.New {
			before = append(before, p)
		}
	}
	return now, before, nil
}
