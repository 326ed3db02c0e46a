package sim

import (
	"encoding/binary"
	"hash/crc32"
)

// Types of binlog events.
const (
	evQuery         = 2
	evRotate        = 4
	evFormat        = 15
	evXID           = 16
	evTableMap      = 19
	evHeartbeat     = 27
	evWrite         = 30
	evUpdate        = 31
	evDelete        = 32
	evGTID          = 33
	evAnonymousGTID = 34
	evPreviousGTIDs = 35
)

const (
	headerLen      = 19
	crcLen         = 4
	firstPos       = 4
	flagArtificial = 0x20
)

// rawEvent puts a header before a body and a checksum behind it. end is where the event ends in its file.
func rawEvent(kind byte, flags uint16, second int64, server uint32, end int64, body []byte) []byte {
	ev := make([]byte, headerLen, headerLen+len(body)+crcLen)
	binary.LittleEndian.PutUint32(ev, uint32(second))
	ev[4] = kind
	binary.LittleEndian.PutUint32(ev[5:], server)
	binary.LittleEndian.PutUint32(ev[9:], uint32(headerLen+len(body)+crcLen))
	binary.LittleEndian.PutUint32(ev[13:], uint32(end))
	binary.LittleEndian.PutUint16(ev[17:], flags)
	ev = append(ev, body...)
	return binary.LittleEndian.AppendUint32(ev, crc32.ChecksumIEEE(ev))
}

func formatBody() []byte {
	body := make([]byte, 2+50+4+1+42)
	body[0] = 4
	copy(body[2:], "9.7.0")
	body[56] = headerLen
	for i := range 42 {
		body[57+i] = 8
	}
	body[57+evTableMap-1] = 8
	body[57+evWrite-1], body[57+evUpdate-1], body[57+evDelete-1] = 10, 10, 10
	return append(body, 1) // events have checksums
}

func rotateBody(file string, pos int64) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(pos)), file...)
}

func queryBody(database, text string) []byte {
	body := binary.LittleEndian.AppendUint32(nil, 42) // thread
	body = append(body, 0, 0, 0, 0, byte(len(database)), 0, 0, 0, 0)
	body = append(append(body, database...), 0)
	return append(body, text...)
}

func gtidBody(uuid [16]byte, number int64, micros int64) []byte {
	body := append([]byte{0}, uuid[:]...)
	body = binary.LittleEndian.AppendUint64(body, uint64(number))
	body = append(body, 2)
	body = binary.LittleEndian.AppendUint64(body, 0)
	body = binary.LittleEndian.AppendUint64(body, uint64(number))
	return append(body, binary.LittleEndian.AppendUint64(nil, uint64(micros))[:7]...)
}

// appendLenenc appends a length as MySQL encodes it.
func appendLenenc(b []byte, n int) []byte {
	if n < 251 {
		return append(b, byte(n))
	}
	return binary.LittleEndian.AppendUint16(append(b, 0xfc), uint16(n))
}

// tableMapBody describes the columns of a table; full names them and the primary key, too.
func tableMapBody(id uint64, t *table, full bool) []byte {
	body := binary.LittleEndian.AppendUint64(nil, id)[:6]
	body = append(body, 1, 0, byte(len(database)))
	body = append(append(body, database...), 0, byte(len(t.name)))
	body = append(append(body, t.name...), 0, byte(len(t.columns)))
	var meta, names, key []byte
	nulls := make([]byte, (len(t.columns)+7)/8)
	numbers, texts := 0, 0
	for i, c := range t.columns {
		body = append(body, c.kind)
		if c.kind == typeVarchar {
			meta = append(meta, varcharBytes, 0)
			texts++
		} else {
			numbers++
		}
		if i > 0 {
			nulls[i/8] |= 1 << (i % 8)
		} else if t.keyed {
			key = append(key, 0)
		}
		names = append(append(names, byte(len(c.name))), c.name...)
	}
	body = append(appendLenenc(body, len(meta)), meta...)
	body = append(body, nulls...)
	field := func(kind byte, data []byte) {
		body = append(appendLenenc(append(body, kind), len(data)), data...)
	}
	field(1, make([]byte, (numbers+7)/8)) // all signed
	if texts > 0 {
		field(2, []byte{0xfc, 0xff, 0}) // utf8mb4_0900_ai_ci
	}
	if full {
		field(4, names)
		if len(key) > 0 {
			field(8, key)
		}
	}
	return body
}

// rowsBody has the images of changes of one kind.
func rowsBody(id uint64, kind byte, last bool, columns []column, changes []*change) []byte {
	body := binary.LittleEndian.AppendUint64(nil, id)[:6]
	flags := byte(0)
	if last {
		flags = 1
	}
	body = append(body, flags, 0, 2, 0, byte(len(columns)))
	present := make([]byte, (len(columns)+7)/8)
	for i := range columns {
		present[i/8] |= 1 << (i % 8)
	}
	body = append(body, present...)
	if kind == evUpdate {
		body = append(body, present...)
	}
	for _, c := range changes {
		if kind != evWrite {
			body = appendImage(body, columns, c.before)
		}
		if kind != evDelete {
			body = appendImage(body, columns, c.after)
		}
	}
	return body
}

func appendImage(body []byte, columns []column, row []any) []byte {
	nulls := make([]byte, (len(columns)+7)/8)
	for i := range columns {
		if row[i] == nil {
			nulls[i/8] |= 1 << (i % 8)
		}
	}
	body = append(body, nulls...)
	for i, c := range columns {
		switch v := row[i].(type) {
		case int64:
			if c.kind == typeLongLong {
				body = binary.LittleEndian.AppendUint64(body, uint64(v))
			} else {
				body = binary.LittleEndian.AppendUint32(body, uint32(v))
			}
		case string:
			body = append(append(body, byte(len(v))), v...)
		}
	}
	return body
}
