package server

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Most events are small, and to look into each for itself, its checksum above all, would cost more than to read what it says.
// So those that have been read and are like nearly all are checked together, a run of them: their packets and headers one after
// the other, their checksums with one sum over all.

// mostChecked is how many bytes of events are checked together, if they are more than one: in so many a CRC32 finds any three
// wrong bits, and they stay in the processor's nearest cache.
const mostChecked = 8 << 10

// ofStream are the types of events that say something of the stream itself.
var ofStream = [256]bool{typeRotate: true, typeFormatDescription: true, typeHeartbeat: true, typeHeartbeatV2: true}

// usual says whether the next event is checked, and like nearly all: it has been read already, is alone in one packet, and is
// nothing that the stream itself has to look into. Of others, and of what is wrong, next knows more.
func (s *Stream) usual() bool { return s.r < s.run || s.check() }

// checked returns the next event, after usual, without so many bytes at its end.
func (s *Stream) checked(without int) []byte {
	b := s.buf[s.r+packetHeader+1 : s.run]
	n := int(binary.LittleEndian.Uint32(b[9:13]))
	s.used = packetHeader + 1 + n
	if end := binary.LittleEndian.Uint32(b[13:17]); end != 0 {
		s.pos = int64(end)
	}
	return b[:n-without]
}

// check makes the next events a run, and says whether there is one.
func (s *Stream) check() bool {
	s.giveBack()
	if s.alone || s.err != nil {
		return false
	}
	const head = packetHeader + 1
	crc := 0
	if s.checksum {
		crc = crcLen
	}
	run, sequence := 0, s.sequence
	for b := s.buf[s.r:min(s.w, s.r+bufferSize)]; len(b) >= head+eventHeader+crcLen; sequence++ {
		n := int(binary.LittleEndian.Uint32(b[head+9:]))
		if n > len(b)-head || n < eventHeader+crc || b[packetHeader] != mysql.OK_HEADER ||
			binary.LittleEndian.Uint32(b) != packetHead(n, sequence) ||
			ofStream[b[head+4]] || b[head+17]&flagArtificial != 0 ||
			run > 0 && run+head+n > mostChecked {
			break
		}
		if run > 0 && crc > 0 {
			binary.LittleEndian.PutUint32(b, sumLink)
		}
		run += head + n
		b = b[head+n:]
	}
	if run == 0 {
		return false
	}
	end := s.r + run
	if crc > 0 && sumOf(s.buf[:end], s.r+head) != sumResidue {
		s.unlink(s.buf[s.r:end])
		return false
	}
	s.run, s.sequence, s.lastCRC = end, sequence, crc
	return true
}

// packetHead is the header of the packet of an event of n bytes.
func packetHead(n int, sequence byte) uint32 { return uint32(n+1) | uint32(sequence)<<24 }

// unlink gives the packets in b, in which a checksum is wrong, their headers again, and has next find out which.
func (s *Stream) unlink(b []byte) {
	for sequence := s.sequence; len(b) > 0; sequence++ {
		n := int(binary.LittleEndian.Uint32(b[packetHeader+1+9:]))
		binary.LittleEndian.PutUint32(b, packetHead(n, sequence))
		b[packetHeader] = mysql.OK_HEADER
		b = b[packetHeader+1+n:]
	}
	s.alone = true
}
