package server

import (
	"encoding/binary"
	"hash/crc32"
)

// sumBlock is the length from which on, and in whole multiples of 16 bytes, the processor computes a CRC32 by itself. The
// bytes of any other length are looked up one by one, which takes longer than the whole rest of a small event.
const sumBlock = 64

// sumBefore are the checksums which so many zeros turn into 0, that of nothing. With one of them to begin with, an event
// with zeros in front of it has the checksum that it has without.
var sumBefore = func() (sums [sumBlock + 1]uint32) {
	undo := func(sum uint32) uint32 { // what a zero has made of a checksum
		state := ^sum
		for i, entry := range crc32.IEEETable {
			if entry>>24 == state>>24 {
				return ^((state^entry)<<8 | uint32(i))
			}
		}
		panic("the table has all bytes")
	}
	for i := range sums[1:] {
		sums[i+1] = undo(sums[i])
	}
	return sums
}()

// sumOf is the CRC32 of what b has from at on. It may put zeros in front of it.
func sumOf(b []byte, at int) uint32 {
	n := len(b) - at
	zeros := -n & 15
	if n+zeros < sumBlock {
		zeros = sumBlock - n
	}
	if zeros > at || zeros == 0 {
		return crc32.ChecksumIEEE(b[at:])
	}
	clear(b[at-zeros : at])
	return crc32.Update(sumBefore[zeros], crc32.IEEETable, b[at-zeros:])
}

// sumRight compares the event that has been read last with the checksum at its end. A FORMAT_DESCRIPTION is summed up
// before the server marks its file as being in use. What lies in front of the event in the buffer is not needed any more.
func (s *Stream) sumRight(event []byte, kind byte, flags uint16) bool {
	n := len(event) - crcLen
	data, want := event[:n], binary.LittleEndian.Uint32(event[n:])
	if kind != typeFormatDescription || flags&flagInUse == 0 {
		at := s.r + packetHeader + 1
		return sumOf(s.buf[:at+n], at) == want
	}
	sum := crc32.Update(0, crc32.IEEETable, data[:17])
	sum = crc32.Update(sum, crc32.IEEETable, []byte{data[17] &^ flagInUse})
	return crc32.Update(sum, crc32.IEEETable, data[18:]) == want
}
