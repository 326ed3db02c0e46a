package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// damaged is an event in a packet's payload, or what may be taken for one.
func damaged(random *rand.Rand, checksum bool) []byte {
	kinds := []byte{2, 2, 30, 30, 16, typeRotate, typeFormatDescription, typeHeartbeat, typeHeartbeatV2, 36, 40, 64, 79, 91, 160, 164, 255}
	kind := kinds[random.IntN(len(kinds))]
	var flags uint16
	if random.IntN(4) == 0 {
		flags = 1 << random.IntN(16)
	}
	event := rawEvent(kind, flags, uint32(random.IntN(3)*random.IntN(1<<20)), make([]byte, random.IntN(200)), checksum)
	if kind == typeFormatDescription && random.IntN(4) > 0 {
		event = formatDescription(random.IntN(4) > 0)
	}
	sum := func() {
		if n := len(event) - crcLen; n >= 0 {
			binary.LittleEndian.PutUint32(event[n:], crc32.ChecksumIEEE(event[:n]))
		}
	}
	switch random.IntN(40) {
	case 0: // as short as it says
		event = event[:random.IntN(eventHeader+crcLen+2)]
		if len(event) >= 13 {
			binary.LittleEndian.PutUint32(event[9:], uint32(len(event)))
		}
		if random.IntN(2) == 0 {
			sum()
		}
	case 1: // shorter than it says
		event = event[:random.IntN(len(event))]
	case 2:
		binary.LittleEndian.PutUint32(event[9:], random.Uint32N(300))
		sum()
	case 3:
		event[random.IntN(len(event))] ^= 1 << random.IntN(8)
	case 4:
		return append([]byte{byte(random.Uint32())}, event...)
	}
	return ok(event)
}

// TestUsualEvents: what comes the short way is what comes without it, and what is wrong is said in the same words.
func TestUsualEvents(t *testing.T) {
	events := 0
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		checksum := random.IntN(2) == 0
		var payloads [][]byte
		for range 20 {
			payloads = append(payloads, damaged(random, checksum))
		}
		data := packets(payloads...)
		if random.IntN(8) == 0 {
			data[packetHeader+len(payloads[0])+3]++ // the second packet's number
		}
		step := []int{50, 1000, 1 << 20}[random.IntN(3)]
		short, long := feed(bytes.Clone(data), step, checksum), feed(bytes.Clone(data), step, checksum)
		for i := 0; ; i++ {
			got, err := short.Next(t.Context())
			long.release()
			want, fault := long.next(t.Context())
			state := func(s *Stream) string {
				return fmt.Sprint(s.ChecksumLen(), s.where(), s.sequence, s.checksum, s.r, s.used, s.small)
			}
			if fmt.Sprint(err) != fmt.Sprint(fault) || !bytes.Equal(got, want) || err == nil && state(short) != state(long) {
				t.Fatalf("seed %d, event %d:\n got % x, %v, %s\nwant % x, %v, %s", seed, i, got, err, state(short), want, fault, state(long))
			}
			if err != nil {
				break
			}
			events++
		}
	}
	if events < 10_000 {
		t.Errorf("%d events only", events)
	}
}
