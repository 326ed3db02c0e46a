package binlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/tidemark-cdc/tidemark/offset"
)

const (
	headerSize   = 19
	checksumSize = 4
	// maxEvent bounds what a length in the stream can make us allocate: no server writes a larger event.
	maxEvent = 1 << 30
)

// Event types that are treated by name.
const (
	evQuery         = byte(replication.QUERY_EVENT)
	evStop          = byte(replication.STOP_EVENT)
	evRotate        = byte(replication.ROTATE_EVENT)
	evIntVar        = byte(replication.INTVAR_EVENT)
	evAppendBlock   = byte(replication.APPEND_BLOCK_EVENT)
	evDeleteFile    = byte(replication.DELETE_FILE_EVENT)
	evRand          = byte(replication.RAND_EVENT)
	evUserVar       = byte(replication.USER_VAR_EVENT)
	evFormat        = byte(replication.FORMAT_DESCRIPTION_EVENT)
	evXID           = byte(replication.XID_EVENT)
	evBeginLoad     = byte(replication.BEGIN_LOAD_QUERY_EVENT)
	evExecuteLoad   = byte(replication.EXECUTE_LOAD_QUERY_EVENT)
	evTableMap      = byte(replication.TABLE_MAP_EVENT)
	evWriteV0       = byte(replication.WRITE_ROWS_EVENTv0)
	evDeleteV0      = byte(replication.DELETE_ROWS_EVENTv0)
	evWriteV1       = byte(replication.WRITE_ROWS_EVENTv1)
	evUpdateV1      = byte(replication.UPDATE_ROWS_EVENTv1)
	evDeleteV1      = byte(replication.DELETE_ROWS_EVENTv1)
	evIncident      = byte(replication.INCIDENT_EVENT)
	evHeartbeat     = byte(replication.HEARTBEAT_EVENT)
	evIgnorable     = byte(replication.IGNORABLE_EVENT)
	evRowsQuery     = byte(replication.ROWS_QUERY_EVENT)
	evWrite         = byte(replication.WRITE_ROWS_EVENTv2)
	evUpdate        = byte(replication.UPDATE_ROWS_EVENTv2)
	evDelete        = byte(replication.DELETE_ROWS_EVENTv2)
	evGTID          = byte(replication.GTID_EVENT)
	evAnonymous     = byte(replication.ANONYMOUS_GTID_EVENT)
	evPreviousGTIDs = byte(replication.PREVIOUS_GTIDS_EVENT)
	evTransaction   = byte(replication.TRANSACTION_CONTEXT_EVENT)
	evViewChange    = byte(replication.VIEW_CHANGE_EVENT)
	evXAPrepare     = byte(replication.XA_PREPARE_LOG_EVENT)
	evPartialUpdate = byte(replication.PARTIAL_UPDATE_ROWS_EVENT)
	evPayload       = byte(replication.TRANSACTION_PAYLOAD_EVENT)
	evHeartbeatV2   = byte(replication.HEARTBEAT_LOG_EVENT_V2)
	evTaggedGTID    = byte(replication.GTID_TAGGED_LOG_EVENT)
)

// home is where in a binlog events of a type stand.
type home uint8

const (
	inGroup home = iota // in a transaction or statement
	between             // around one
	atHead              // at the head of a file, which is sent again at each start
	nowhere             // made for the stream
)

// homes says it of all types.
var homes = [256]home{
	evGTID: between, evTaggedGTID: between, evAnonymous: between, evMariaGTID: between, evRotate: between, evStop: between,
	evFormat: atHead, evPreviousGTIDs: atHead, evMariaGTIDList: atHead,
	evHeartbeat: nowhere, evHeartbeatV2: nowhere,
}

// Header flags.
const (
	flagArtificial = replication.LOG_EVENT_ARTIFICIAL_F
	flagIgnorable  = replication.LOG_EVENT_IGNORABLE_F
	inUse          = byte(replication.LOG_EVENT_BINLOG_IN_USE_F)
)

var errShort = errors.New("the event is shorter than its content needs")

// header is the common header of an event.
type header struct {
	time   uint32 // seconds since the epoch
	typ    byte
	server uint32
	size   uint32 // of the whole event
	end    uint32 // low 32 bits of the position behind it; 0: it has none
	flags  uint16
}

func (h *header) parse(raw []byte) error {
	if len(raw) < headerSize {
		return fmt.Errorf("%d bytes are too few for an event header", len(raw))
	}
	h.read((*[headerSize]byte)(raw))
	return nil
}

func (h *header) read(b *[headerSize]byte) {
	h.time = binary.LittleEndian.Uint32(b[0:])
	h.typ = b[4]
	h.server = binary.LittleEndian.Uint32(b[5:])
	h.size = binary.LittleEndian.Uint32(b[9:])
	h.end = binary.LittleEndian.Uint32(b[13:])
	h.flags = binary.LittleEndian.Uint16(b[17:])
}

// format is what a FORMAT_DESCRIPTION event says about those behind it.
type format struct {
	known    bool
	checksum bool // each event ends in a CRC32
	mariaDB  bool // the server is a MariaDB
	// lengths of the parts of fixed size at the beginning of an event's body, by event type less one
	post []byte
}

// parseFormat reads the body of a FORMAT_DESCRIPTION event, without the four bytes for its checksum.
func parseFormat(body []byte) (format, error) {
	const fixed = 2 + 50 + 4 + 1
	if len(body) < fixed+1 {
		return format{}, errShort
	}
	if v := binary.LittleEndian.Uint16(body); v != 4 {
		return format{}, fmt.Errorf("binlog format version %d, can be read: 4 (MySQL 5.6 and later)", v)
	}
	if n := body[2+50+4]; n != headerSize {
		return format{}, fmt.Errorf("event headers of %d bytes, can be read: %d", n, headerSize)
	}
	version, _, _ := bytes.Cut(body[2:52], []byte{0})
	f := format{known: true, mariaDB: strings.Contains(strings.ToLower(string(version)), "mariadb")}
	switch alg := body[len(body)-1]; alg {
	case 0:
	case 1:
		f.checksum = true
	default:
		return format{}, fmt.Errorf("binlog checksum algorithm %d is unknown", alg)
	}
	f.post = bytes.Clone(body[fixed : len(body)-1])
	if f.postLength(evTableMap) == 0 {
		return format{}, fmt.Errorf("binlog of %s: no row events in this format", version)
	}
	return f, nil
}

// postLength is the length of the part of fixed size of an event type's body, 0 when the server does not know the type.
func (f *format) postLength(typ byte) int {
	if i := int(typ) - 1; i >= 0 && i < len(f.post) {
		return int(f.post[i])
	}
	return 0
}

var errChecksum = errors.New("the checksum (CRC32) does not match: the event is damaged, on disk or on the way")

// validChecksum compares a whole event with the CRC32 at its end. A FORMAT_DESCRIPTION is summed up before the server
// marks its file as being in use.
func validChecksum(raw []byte) bool {
	if len(raw) < headerSize+checksumSize {
		return false
	}
	n := len(raw) - checksumSize
	want := binary.LittleEndian.Uint32(raw[n:])
	if flags := raw[17]; raw[4] == evFormat && flags&inUse != 0 {
		sum := crc32.ChecksumIEEE(raw[:17])
		sum = crc32.Update(sum, crc32.IEEETable, []byte{flags &^ inUse})
		return crc32.Update(sum, crc32.IEEETable, raw[18:n]) == want
	}
	return crc32.ChecksumIEEE(raw[:n]) == want
}

// queryEvent is what is needed of a QUERY event; the slices alias it.
type queryEvent struct {
	thread   int64
	database []byte
	status   []byte // status variables
	text     []byte
}

// parseQuery reads a QUERY event's body, or with extra 13 that of EXECUTE_LOAD_QUERY.
func parseQuery(b []byte, extra int) (queryEvent, error) {
	const fixed = 4 + 4 + 1 + 2 + 2
	if len(b) < fixed+extra {
		return queryEvent{}, errShort
	}
	q := queryEvent{thread: int64(binary.LittleEndian.Uint32(b))}
	database := int(b[8])
	status := int(binary.LittleEndian.Uint16(b[11:]))
	b = b[fixed+extra:]
	if len(b) < status+database+1 {
		return queryEvent{}, errShort
	}
	q.status = b[:status]
	q.database = b[status : status+database]
	q.text = b[status+database+1:]
	return q, nil
}

// gtidEvent is what is needed of a GTID event.
type gtidEvent struct {
	id     offset.GTID
	micros int64 // original commit time since the epoch; 0: not known
}

// parseGTID reads the body of a GTID or ANONYMOUS_GTID event.
func parseGTID(b []byte) (gtidEvent, error) {
	if len(b) < 1+16+8 {
		return gtidEvent{}, errShort
	}
	var g gtidEvent
	copy(g.id.Source[:], b[1:])
	g.id.Number = int64(binary.LittleEndian.Uint64(b[17:]))
	b = b[25:]
	// Logical clock: a type byte (2) and two numbers; then the commit times of 5.8 and later, in 55 bits each.
	if len(b) < 1+16+7 || b[0] != 2 {
		return g, nil
	}
	immediate := binary.LittleEndian.Uint64(b[16:24]) >> 8 // seven bytes
	b = b[17:]
	if immediate&(1<<55) == 0 {
		g.micros = int64(immediate)
		return g, nil
	}
	if len(b) < 14 {
		return gtidEvent{}, errShort
	}
	g.micros = int64(fixedInt(b[7:14]))
	if g.micros == 0 { // the first server of a chain was too old to say
		g.micros = int64(immediate &^ (1 << 55))
	}
	return g, nil
}

// parseTaggedGTID reads the body of a GTID_TAGGED event.
func parseTaggedGTID(b []byte) (g gtidEvent, err error) {
	defer func() {
		if p := recover(); p != nil { // the library indexes without looking
			err = errShort
		}
	}()
	var e replication.GtidTaggedLogEvent
	if err := e.Decode(b); err != nil {
		return gtidEvent{}, err
	}
	if len(e.SID) != 16 {
		return gtidEvent{}, errShort
	}
	copy(g.id.Source[:], e.SID)
	g.id.Tag = e.Tag.String()
	g.id.Number = e.GNO
	g.micros = int64(e.OriginalCommitTimestamp)
	if g.micros == 0 {
		g.micros = int64(e.ImmediateCommitTimestamp)
	}
	return g, nil
}

// parsePreviousGTIDs reads the body of a PREVIOUS_GTIDS event. The set is present even when it is empty.
func parsePreviousGTIDs(b []byte) (offset.GTIDSet, error) {
	if len(b) < 8 {
		return offset.GTIDSet{}, errShort
	}
	// Sets with tags have a 1 in the highest and the lowest byte, and the count between them.
	tagged := b[7] == 1
	count := binary.LittleEndian.Uint64(b)
	if tagged {
		count = fixedInt(b[1:7])
	}
	b = b[8:]
	var text []byte
	for range count {
		if len(b) < 16+1 {
			return offset.GTIDSet{}, errShort
		}
		id := offset.GTID{Source: [16]byte(b)}
		b = b[16:]
		if tagged {
			n := int(b[0] >> 1)
			if len(b) < 1+n {
				return offset.GTIDSet{}, errShort
			}
			id.Tag = string(b[1 : 1+n])
			b = b[1+n:]
		}
		if len(b) < 8 {
			return offset.GTIDSet{}, errShort
		}
		intervals := binary.LittleEndian.Uint64(b)
		b = b[8:]
		if intervals > uint64(len(b))/16 {
			return offset.GTIDSet{}, errShort
		}
		for range intervals {
			first := int64(binary.LittleEndian.Uint64(b))
			end := int64(binary.LittleEndian.Uint64(b[8:]))
			b = b[16:]
			if first < 1 || end <= first {
				return offset.GTIDSet{}, fmt.Errorf("GTID interval %d to %d", first, end)
			}
			if len(text) > 0 {
				text = append(text, ',')
			}
			id.Number = first
			text = fmt.Appendf(id.Append(text), "-%d", end-1)
		}
	}
	if len(text) == 0 {
		return offset.EmptyGTIDSet(), nil
	}
	return offset.ParseGTIDSet(string(text))
}

// parseHeartbeat reads a heartbeat's file and position; low says that only the low 32 bits of the position are known.
func parseHeartbeat(h header, b []byte) (file string, pos int64, low bool, err error) {
	if h.typ == evHeartbeat {
		return string(b), int64(h.end), true, nil
	}
	const (
		endMark   = 0
		fieldFile = 1
		fieldPos  = 2
	)
	for len(b) > 0 && b[0] != endMark {
		field := b[0]
		v, rest, ok := lenencBytes(b[1:])
		if !ok {
			return "", 0, false, errShort
		}
		b = rest
		switch field {
		case fieldFile:
			file = string(v)
		case fieldPos:
			n, _, ok := lenenc(v)
			if !ok {
				return "", 0, false, errShort
			}
			pos = int64(n)
		}
	}
	return file, pos, false, nil
}

// rowsEvent is the head of a rows event; the slices alias it.
type rowsEvent struct {
	table   uint64
	end     bool // the last one of its statement
	op      Op
	columns int
	before  []byte // columns-present bitmap of before images
	after   []byte // the same of after images
	images  []byte
}

// tableIDSize is 6, and 4 in very old formats.
func tableIDSize(post int) int {
	if post == 6 {
		return 4
	}
	return 6
}

// tableID reads a table id of a size.
func tableID(b []byte, size int) uint64 {
	id := uint64(binary.LittleEndian.Uint32(b))
	if size == 6 {
		id |= uint64(binary.LittleEndian.Uint16(b[4:])) << 32
	}
	return id
}

// parse reads a rows event's body up to its images.
func (e *rowsEvent) parse(f *format, typ byte, b []byte) error {
	*e = rowsEvent{}
	post := f.postLength(typ)
	id := tableIDSize(post)
	if len(b) < id+2 {
		return errShort
	}
	e.table = tableID(b, id)
	e.end = binary.LittleEndian.Uint16(b[id:])&1 != 0
	b = b[id+2:]
	if typ >= evWrite { // version 2: extra data with its own length
		if len(b) < 2 {
			return errShort
		}
		n := int(binary.LittleEndian.Uint16(b))
		if n < 2 || n > len(b) {
			return errShort
		}
		b = b[n:]
	}
	switch typ {
	case evWrite, evWriteV1:
		e.op = Create
	case evUpdate, evUpdateV1, evPartialUpdate:
		e.op = Update
	case evDelete, evDeleteV1:
		e.op = Delete
	}
	n, b, ok := lenenc(b)
	if !ok || n > 4096 {
		return errShort
	}
	e.columns = int(n)
	size := (e.columns + 7) / 8
	if e.op != Create {
		if len(b) < size {
			return errShort
		}
		e.before, b = b[:size], b[size:]
	}
	if e.op != Delete {
		if len(b) < size {
			return errShort
		}
		e.after, b = b[:size], b[size:]
	}
	e.images = b
	return nil
}

// parseXID reads the xid of an XA_PREPARE event as XA RECOVER shows it.
func parseXAPrepare(b []byte) string {
	if len(b) < 1+12 {
		return "?"
	}
	gtrid := binary.LittleEndian.Uint32(b[5:])
	bqual := binary.LittleEndian.Uint32(b[9:])
	data := b[13:]
	if uint64(gtrid)+uint64(bqual) > uint64(len(data)) {
		return "?"
	}
	return xidText(binary.LittleEndian.Uint32(b[1:]), data[:gtrid], data[gtrid:gtrid+bqual])
}
