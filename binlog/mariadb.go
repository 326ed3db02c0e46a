package binlog

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-cdc/tidemark/offset"
)

// Event types that only MariaDB has (sql/log_event.h of MariaDB's sources).
const (
	evMariaDB           = 160 // from here on
	evAnnotateRows      = 160
	evBinlogCheckpoint  = 161
	evMariaGTID         = 162
	evMariaGTIDList     = 163
	evStartEncryption   = 164
	evQueryCompressed   = 165
	evWriteCompressedV1 = 166
	evDeleteCompressed  = 171
)

// Flags of MariaDB's GTID event, and those of its second byte of flags.
const (
	mariaStandalone  = 1  // one statement follows, without BEGIN and end
	mariaGroupCommit = 2  // a commit id follows
	mariaPreparedXA  = 64 // the group is the first half of an XA transaction
	mariaCompletedXA = 128

	mariaMultiEngine   = 1
	mariaStartAlter    = 2 // the statement that follows is only announced
	mariaCommitAlter   = 4
	mariaRollbackAlter = 8 // it is called off
)

// mariaGTID is what is needed of MariaDB's GTID event.
type mariaGTID struct {
	id    offset.GTID
	flags byte
	extra byte
	xid   string // as XA RECOVER FORMAT='SQL' shows it; "" for none
}

// parseMariaGTID reads the body of MariaDB's GTID event: sequence number, domain, flags, and what the flags say. The
// server is in the header.
func parseMariaGTID(h header, b []byte) (mariaGTID, error) {
	const fixed = 8 + 4 + 1
	if len(b) < fixed {
		return mariaGTID{}, errShort
	}
	g := mariaGTID{flags: b[12]}
	n := binary.LittleEndian.Uint64(b)
	if n < 1 || n > offset.MaxGTIDNumber {
		return mariaGTID{}, fmt.Errorf("GTID with number %d", n)
	}
	g.id = offset.GTID{MariaDB: true, Domain: binary.LittleEndian.Uint32(b[8:]), Server: h.server, Number: int64(n)}
	b = b[fixed:]
	if g.flags&mariaGroupCommit != 0 {
		if len(b) < 8 {
			return mariaGTID{}, errShort
		}
		b = b[8:]
	}
	if g.flags&(mariaPreparedXA|mariaCompletedXA) != 0 {
		if len(b) < 6 {
			return mariaGTID{}, errShort
		}
		format, gtrid, bqual := binary.LittleEndian.Uint32(b), int(b[4]), int(b[5])
		if b = b[6:]; gtrid > 64 || bqual > 64 || len(b) < gtrid+bqual {
			return mariaGTID{}, errShort
		}
		g.xid = xidText(format, b[:gtrid], b[gtrid:gtrid+bqual])
		b = b[gtrid+bqual:]
	}
	if len(b) > 0 { // older servers fill the event up with zeros
		g.extra = b[0]
	}
	return g, nil
}

// xidText is an XA transaction's id as XA RECOVER shows it.
func xidText(format uint32, gtrid, bqual []byte) string {
	return fmt.Sprintf("X'%x',X'%x',%d", gtrid, bqual, format)
}

// parseMariaGTIDList reads the body of MariaDB's GTID_LIST event, which stands at the head of each file: the last GTID of
// each server in each domain, the newest of a domain last.
func parseMariaGTIDList(b []byte) (offset.GTIDSet, error) {
	if len(b) < 4 {
		return offset.GTIDSet{}, errShort
	}
	count := binary.LittleEndian.Uint32(b) & 0x0fff_ffff // the rest are flags
	b = b[4:]
	if uint64(count) > uint64(len(b))/16 {
		return offset.GTIDSet{}, errShort
	}
	set := offset.EmptyGTIDSet()
	for range count {
		n := binary.LittleEndian.Uint64(b[8:])
		if n > offset.MaxGTIDNumber {
			return offset.GTIDSet{}, fmt.Errorf("GTID with number %d", n)
		}
		if n > 0 {
			set = set.Add(offset.GTID{MariaDB: true, Domain: binary.LittleEndian.Uint32(b), Server: binary.LittleEndian.Uint32(b[4:]), Number: int64(n)})
		}
		b = b[16:]
	}
	return set, nil
}

// maria is what the assembler knows of a MariaDB binlog only.
type maria struct {
	announced bool // the statement that comes next is the first half of an ALTER, or calls it off

	// In files that are read from an earlier position than the start, transactions up to marks have been read. Sequence
	// numbers of a domain may fall (gtid_strict_mode=OFF), so a number alone says nothing once the mark has come by.
	marks  offset.GTIDSet
	passed map[uint32]bool // domains whose mark has come by

	inflate inflater
}

// read says whether a transaction lies before the start.
func (m *maria) read(id offset.GTID) bool {
	if m.passed[id.Domain] {
		return false
	}
	read := m.marks.Contains(id)
	next := id
	next.Number++
	if !read || !m.marks.Contains(next) { // behind the mark, or it is the mark
		if m.passed == nil {
			m.passed = make(map[uint32]bool)
		}
		m.passed[id.Domain] = true
	}
	return read
}

// plain turns an event that MariaDB has and MySQL has not (from evMariaDB on) into the one that MySQL has instead, where
// there is one. done says that the event is of no interest.
func (a *assembler) plain(h *header, body []byte) (_ []byte, done bool, err error) {
	switch {
	case h.typ == evAnnotateRows:
		// A server sends them only to who asks for them, and who does not ask must not count them.
		if !a.queries {
			return body, true, nil
		}
		h.typ = evRowsQuery
		body, err = a.maria.inflate.prefixed(body)
	case h.typ == evQueryCompressed:
		h.typ = evQuery
		body, err = a.maria.inflate.query(body)
	case h.typ >= evWriteCompressedV1 && h.typ <= evDeleteCompressed:
		h.typ = [...]byte{evWriteV1, evUpdateV1, evDeleteV1, evWrite, evUpdate, evDelete}[h.typ-evWriteCompressedV1]
		if a.silent() && !a.spools() {
			break // nobody looks at its images
		}
		body, err = a.maria.inflate.rows(&a.format, h.typ, body)
	case h.typ == evBinlogCheckpoint:
		return body, true, nil
	case h.typ == evStartEncryption:
		if a.fromFile {
			err = errors.New("the rest of the file is encrypted (encrypt_binlog=ON): read it from the server, which decrypts what it sends; or SET GLOBAL encrypt_binlog=OFF and " +
				"start in a file that was begun after that (FLUSH BINARY LOGS)")
		}
		return body, true, err
	}
	return body, false, err
}

// beginMaria handles MariaDB's GTID event. For a transaction it stands for BEGIN, of an XA transaction for XA START, and
// positions are its own; a statement alone has neither.
func (a *assembler) beginMaria(h *header, body []byte) (Event, error) {
	g, err := parseMariaGTID(*h, body)
	if err != nil {
		return nil, a.errorf(err, "")
	}
	a.transactionID(g.id, 0)
	a.ignored = a.maria.read(g.id)
	a.maria.announced = g.extra&(mariaStartAlter|mariaRollbackAlter) != 0
	switch {
	case g.flags&mariaPreparedXA != 0:
		return nil, a.xaStart(g.xid)
	case g.flags&mariaStandalone == 0:
		return a.beginTransaction(h, -1)
	}
	return nil, nil
}

// mariaList takes in what was executed before a file. In the middle of a stream it says nothing new: a server that has
// transactions of a domain which are not in its binlog has them before all that it sends.
func (a *assembler) mariaList(body []byte) error {
	list, err := parseMariaGTIDList(body)
	if err != nil {
		return a.errorf(err, "")
	}
	a.headed = true
	first := a.first
	a.first = false
	switch {
	case a.set.IsAbsent():
		a.set, a.gtids = list, true
	case first && !a.missing(list).IsEmpty():
		return a.errorf(fmt.Errorf("the binlog begins behind transactions that the start position does not have: %s; add the files before it", a.missing(list)), "")
	}
	return nil
}

// inflater undoes MariaDB's compression of events (log_bin_compress). What it returns holds until the next call.
type inflater struct {
	buf  []byte
	src  bytes.Reader
	zlib io.ReadCloser
}

// prefixed gives a body with a byte before it, as ROWS_QUERY has one before its text.
func (i *inflater) prefixed(body []byte) ([]byte, error) {
	i.buf = append(append(i.buf[:0], 0), body...)
	return i.buf, nil
}

// query gives the body of a QUERY event whose text is compressed.
func (i *inflater) query(body []byte) ([]byte, error) {
	q, err := parseQuery(body, 0)
	if err != nil {
		return nil, err
	}
	return i.expand(body[:len(body)-len(q.text)], q.text)
}

// rows gives the body of a rows event whose images are compressed.
func (i *inflater) rows(f *format, typ byte, body []byte) ([]byte, error) {
	var e rowsEvent
	if err := e.parse(f, typ, body); err != nil {
		return nil, err
	}
	return i.expand(body[:len(body)-len(e.images)], e.images)
}

// expand appends to head what b holds compressed: a byte with the algorithm (0: zlib) and the size of the length, the
// length, big-endian, and the data.
func (i *inflater) expand(head, b []byte) ([]byte, error) {
	i.buf = append(i.buf[:0], head...)
	if len(b) < 1 {
		return nil, errShort
	}
	lead, width := b[0], int(b[0]&0x07)
	if lead&0x80 == 0 || lead&0x70 != 0 {
		return nil, fmt.Errorf("compression of kind %#x of an event is unknown", lead)
	}
	if b = b[1:]; width < 1 || width > 4 || len(b) < width {
		return nil, errShort
	}
	size := 0
	for _, c := range b[:width] {
		size = size<<8 | int(c)
	}
	if size > maxEvent {
		return nil, fmt.Errorf("an event that says it has %d bytes when it is not compressed", size)
	}
	i.src.Reset(b[width:])
	var err error
	if i.zlib == nil {
		i.zlib, err = zlib.NewReader(&i.src)
	} else {
		err = i.zlib.(zlib.Resetter).Reset(&i.src, nil)
	}
	if err == nil {
		// In steps, so that a wrong size does not cost memory that the data cannot fill.
		const step = 1 << 20
		for have, want := len(i.buf), len(i.buf)+size; have < want && err == nil; have = len(i.buf) {
			i.buf = grow(i.buf, min(want, max(have+step, cap(i.buf))))
			_, err = io.ReadFull(i.zlib, i.buf[have:])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("decompressing the event: %v", err) // an early end is damage, not the end of the stream
	}
	return i.buf, nil
}
