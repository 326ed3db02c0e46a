package it

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"testing"
)

// The Java serialisation stream of a HashMap<byte[], byte[]>, which is what Connect's standalone worker keeps offsets in. Written
// here a second time on purpose: the tests must not read a file with the code that wrote it.
const (
	mapHead    = "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f724900097468726573686f6c6478703f400000"
	firstArray = "757200025b42acf317f8060854e00200007870"
	nextArray  = "7571007e0002"
)

// ReadOffsetFile returns the entries of an offset file: key text → value text, "" for null. A missing file has none.
func ReadOffsetFile(path string) (map[string]string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(b) == 0 {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	head := unhex(mapHead)
	if !bytes.HasPrefix(b, head) || len(b) < len(head)+14 {
		return nil, fmt.Errorf("%s does not begin as a HashMap: % x", path, b[:min(len(b), 90)])
	}
	b = b[len(head)+4:] // the threshold
	if b[0] != 0x77 || b[1] != 8 {
		return nil, fmt.Errorf("%s: no block of capacity and size: % x", path, b[:2])
	}
	size := int(binary.BigEndian.Uint32(b[6:]))
	b = b[10:]
	array := func() (string, error) {
		if len(b) > 0 && b[0] == 0x70 {
			b = b[1:]
			return "", nil
		}
		for _, start := range []string{firstArray, nextArray} {
			s := unhex(start)
			if !bytes.HasPrefix(b, s) || len(b) < len(s)+4 {
				continue
			}
			n := int(binary.BigEndian.Uint32(b[len(s):]))
			b = b[len(s)+4:]
			if n > len(b) {
				break
			}
			text := string(b[:n])
			b = b[n:]
			return text, nil
		}
		return "", fmt.Errorf("%s: no byte array where one has to be: % x", path, b[:min(len(b), 24)])
	}
	entries := make(map[string]string, size)
	for range size {
		key, err := array()
		if err != nil {
			return nil, err
		}
		value, err := array()
		if err != nil {
			return nil, err
		}
		entries[key] = value
	}
	if !bytes.Equal(b, []byte{0x78}) {
		return nil, fmt.Errorf("%s: % x after the last entry, want 78", path, b)
	}
	return entries, nil
}

// WriteOffsetFile writes an offset file as Connect would, with pairs of key and value.
func WriteOffsetFile(t testing.TB, path string, pairs ...string) {
	t.Helper()
	b := unhex(mapHead)
	b = binary.BigEndian.AppendUint32(b, 12)
	b = append(b, 0x77, 8)
	b = binary.BigEndian.AppendUint32(b, 16)
	b = binary.BigEndian.AppendUint32(b, uint32(len(pairs)/2))
	start := firstArray
	for _, text := range pairs {
		b = append(b, unhex(start)...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
		start = nextArray
	}
	write(t, path, append(b, 0x78))
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err) // only constants of this file come here
	}
	return b
}

// OffsetKey is the key of a connector's offset: Connect's name and Debezium's partition.
func OffsetKey(connector, prefix string) string {
	return fmt.Sprintf(`[%q,{"server":%q}]`, connector, prefix)
}

// SideKey is the key of the record that Tidemark keeps beside a connector's offset.
func SideKey(connector, prefix string) string { return OffsetKey("tidemark:"+connector, prefix) }
