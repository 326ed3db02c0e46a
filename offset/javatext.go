package offset

import (
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// hashOrder gives the indexes of names in the iteration order of a new java.util.HashMap into which they were put in
// the order given. Names must differ.
//
// The bucket of a name is its spread String.hashCode modulo the table's size, which is 16, doubles when more than three
// quarters are taken or, below 64, a ninth name comes to one bucket, and never shrinks. Members of one bucket keep their
// order. (From 64 on Java makes a tree of nine in one bucket and orders those nine otherwise. Readers do not mind the
// order, and nine of so few names meet only on purpose.)
func hashOrder(names []string) []int {
	hashes := make([]uint32, len(names))
	for i, name := range names {
		hashes[i] = javaHash(name)
	}
	return bucketOrder(hashes)
}

// bucketOrder is hashOrder of hash codes, which it changes.
func bucketOrder(hashes []uint32) []int {
	const overfull, treeLimit = 8, 64
	size := 16
	order := make([]int, len(hashes))
	for i := range hashes {
		hashes[i] ^= hashes[i] >> 16
		order[i] = i
		if size < treeLimit {
			alike := 0
			for _, other := range hashes[:i] {
				if (other^hashes[i])&uint32(size-1) == 0 {
					alike++
				}
			}
			if alike >= overfull {
				size *= 2
			}
		}
		if i+1 > size/4*3 {
			size *= 2
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(hashes[a]&uint32(size-1)) - int(hashes[b]&uint32(size-1))
	})
	return order
}

// javaHash is String.hashCode, over UTF-16 code units.
func javaHash(s string) uint32 {
	var h uint32
	for _, r := range s {
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			h = 31*h + uint32(high)
			r = low
		}
		h = 31*h + uint32(r)
	}
	return h
}

// appendJSONString appends s as Jackson writes a string to bytes: the two-character escapes, \u00XX in upper case for
// the other control characters, characters beyond U+FFFF as two such escapes, everything else as UTF-8.
func appendJSONString(dst []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	escape := func(u rune) {
		dst = append(dst, '\\', 'u', digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15])
	}
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			i += n
			if r > 0xffff {
				high, low := utf16.EncodeRune(r)
				escape(high)
				escape(low)
			} else {
				dst = utf8.AppendRune(dst, r) // U+FFFD for what is no UTF-8
			}
			continue
		}
		i++
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			if c < ' ' {
				escape(rune(c))
			} else {
				dst = append(dst, c)
			}
		}
	}
	return append(dst, '"')
}
