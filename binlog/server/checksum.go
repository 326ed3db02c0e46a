package server

import (
	"encoding/binary"
	"hash/crc32"
)

// sumBlock is the length from which on, and in whole multiples of 16 bytes, the processor computes a CRC32 by itself. The
// bytes of any other length are looked up one by one, which takes longer than the whole rest of a small event.
const sumBlock = 64

// sumBefore are the four bytes, little-endian, which with zeros behind them, so many bytes in all, leave a checksum as it was
// at its beginning. With them in front of it an event has the checksum that it has without.
var sumBefore = func() (before [sumBlock + 1]uint32) {
	undo := func(state uint32) uint32 { // what a zero has made of it
		for i, entry := range crc32.IEEETable {
			if entry>>24 == state>>24 {
				return (state^entry)<<8 | uint32(i)
			}
		}
		panic("the table has all bytes")
	}
	state := uint32(sumBegin)
	for i := range before[1:] {
		state = undo(state)
		before[i+1] = sumBegin ^ state
	}
	return before
}()

const (
	// sumResidue is the checksum of any bytes and their own checksum behind them.
	sumResidue = 0x2144df1c
	// sumBegin is what a CRC32 begins with, before any byte.
	sumBegin = 0xffff_ffff
)

// sumLink are four bytes, little-endian. Behind bytes and their checksum they, and the zero that every event's packet has in
// front of it, bring the sum back to its beginning. So one sum of several events is right if each is.
var sumLink = sumResidue ^ sumBefore[packetHeader+1]

// sumOf is the CRC32 of what b has from at on. It may write over the sumBlock bytes in front of it.
func sumOf(b []byte, at int) uint32 {
	n := len(b) - at
	more := -n & 15
	if n+more < sumBlock {
		more = sumBlock - n
	}
	if more == 0 || at < sumBlock {
		return crc32.ChecksumIEEE(b[at:])
	}
	if more < 4 {
		more += 16
	}
	*(*[sumBlock]byte)(b[at-sumBlock : at]) = [sumBlock]byte{}
	front := b[at-more:]
	binary.LittleEndian.PutUint32(front, sumBefore[more])
	return crc32.ChecksumIEEE(front)
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
