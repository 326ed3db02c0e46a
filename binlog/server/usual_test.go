package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
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
			long.giveBack()
			want, fault := long.next(t.Context())
			state := func(s *Stream) string {
				return fmt.Sprint(s.ChecksumLen(), s.where(), s.checksum, s.used)
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

// TestCheckedTogether: events that have been read are checked together, up to a bound, with checksums and without; a longer one
// alone. They are given out as they came.
func TestCheckedTogether(t *testing.T) {
	for _, checksum := range []bool{true, false} {
		var events, payloads [][]byte
		for i := range 300 {
			event := rawEvent(30, 0, uint32(300+i), bytes.Repeat([]byte{byte(i)}, i*i%257+i/298*(2*mostChecked)), checksum)
			events, payloads = append(events, event), append(payloads, ok(event))
		}
		s := feed(packets(payloads...), 1<<20, checksum)
		runs, end := 0, 0
		for i, want := range events {
			got, err := s.Next(t.Context())
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("event %d: % x, %v, want % x", i, got, err, want)
			}
			if s.r < end || s.run == 0 {
				continue
			}
			runs++
			if end = s.run; end-s.r > mostChecked && end != s.r+s.used {
				t.Errorf("%d bytes are checked together", end-s.r)
			}
		}
		if size := len(packets(payloads...)) - 4*mostChecked; runs < size/mostChecked || runs > size/mostChecked+6 {
			t.Errorf("checksum %v: %d bytes in %d runs", checksum, size, runs)
		}
	}
}

// TestI6_DamageInARun: wherever one of several events is damaged, those before it come as they are, and it is named.
func TestI6_DamageInARun(t *testing.T) {
	var events [][]byte
	for i := range 20 {
		events = append(events, rawEvent(byte(50+i), 0, uint32(300+i), bytes.Repeat([]byte{byte(i)}, 7*i), true))
	}
	for damaged := range events {
		for at := range len(events[damaged]) {
			if at >= 9 && at < 13 { // its length, which is compared with the packet's
				continue
			}
			var payloads [][]byte
			for i, event := range events {
				if i == damaged {
					event = bytes.Clone(event)
					event[at] ^= 1 << (at % 8)
				}
				payloads = append(payloads, ok(event))
			}
			s := feed(packets(payloads...), 1<<20, true)
			for i := range damaged {
				if got, err := s.Next(t.Context()); err != nil || !bytes.Equal(got, events[i]) {
					t.Fatalf("event %d before the damaged one, %d: % x, %v", i, damaged, got, err)
				}
			}
			kind := events[damaged][4]
			if at == 4 {
				kind ^= 1 << 4
			}
			if _, err := s.Next(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("an event of type %d whose checksum is wrong", kind)) {
				t.Fatalf("event %d, byte %d: %v", damaged, at, err)
			}
		}
	}
}
