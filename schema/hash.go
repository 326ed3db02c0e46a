package schema

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// digest appends the hash of text in hexadecimal. Unlike hash.Hash it keeps no state, and takes no memory from the heap.
type digest func(dst, text []byte) []byte

// hashFor finds an algorithm by one of the names that Java has for it, whose case does not matter; nil if it is not
// known.
func hashFor(name string) digest {
	switch strings.ToUpper(name) {
	case "MD5":
		return func(dst, text []byte) []byte { sum := md5.Sum(text); return hex.AppendEncode(dst, sum[:]) }
	case "SHA-1", "SHA1", "SHA":
		return func(dst, text []byte) []byte { sum := sha1.Sum(text); return hex.AppendEncode(dst, sum[:]) }
	case "SHA-224", "SHA224":
		return func(dst, text []byte) []byte { sum := sha256.Sum224(text); return hex.AppendEncode(dst, sum[:]) }
	case "SHA-256", "SHA256":
		return func(dst, text []byte) []byte { sum := sha256.Sum256(text); return hex.AppendEncode(dst, sum[:]) }
	case "SHA-384", "SHA384":
		return func(dst, text []byte) []byte { sum := sha512.Sum384(text); return hex.AppendEncode(dst, sum[:]) }
	case "SHA-512", "SHA512":
		return func(dst, text []byte) []byte { sum := sha512.Sum512(text); return hex.AppendEncode(dst, sum[:]) }
	case "SHA-512/224", "SHA512/224":
		return func(dst, text []byte) []byte {
			sum := sha512.Sum512_224(text)
			return hex.AppendEncode(dst, sum[:])
		}
	case "SHA-512/256", "SHA512/256":
		return func(dst, text []byte) []byte {
			sum := sha512.Sum512_256(text)
			return hex.AppendEncode(dst, sum[:])
		}
	case "SHA3-224":
		return func(dst, text []byte) []byte { sum := sha3.Sum224(text); return hex.AppendEncode(dst, sum[:]) }
	case "SHA3-256":
		return func(dst, text []byte) []byte { sum := sha3.Sum256(text); return hex.AppendEncode(dst, sum[:]) }
	case "SHA3-384":
		return func(dst, text []byte) []byte { sum := sha3.Sum384(text); return hex.AppendEncode(dst, sum[:]) }
	case "SHA3-512":
		return func(dst, text []byte) []byte { sum := sha3.Sum512(text); return hex.AppendEncode(dst, sum[:]) }
	}
	return nil
}

// CheckHash says whether a [Mask] can have an algorithm; its error names those that it can.
func CheckHash(algorithm string) error {
	if hashFor(algorithm) == nil {
		return fmt.Errorf("hash algorithm %q is not known; there are MD5, SHA-1, SHA-224, SHA-256, SHA-384, SHA-512, "+
			"SHA-512/224, SHA-512/256, SHA3-224, SHA3-256, SHA3-384 and SHA3-512", algorithm)
	}
	return nil
}

// appendJavaString writes text as Java's ObjectOutputStream writes a String: the stream's header, TC_STRING or
// TC_LONGSTRING, the length and the characters in modified UTF-8, in which zero has two bytes and a character outside
// the BMP is two surrogates of three.
func appendJavaString(dst, text []byte) []byte {
	size := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == 0:
			size += 2
		case r > 0xffff:
			size += 6
		default:
			size += n
		}
		i += n
	}
	dst = append(dst, 0xac, 0xed, 0, 5)
	if size <= 0xffff {
		dst = binary.BigEndian.AppendUint16(append(dst, 0x74), uint16(size))
	} else {
		dst = binary.BigEndian.AppendUint64(append(dst, 0x7c), uint64(size))
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == 0:
			dst = append(dst, 0xc0, 0x80)
		case r > 0xffff:
			r -= 0x10000
			dst = appendSurrogate(appendSurrogate(dst, 0xd800|r>>10), 0xdc00|r&0x3ff)
		default:
			dst = append(dst, text[i:i+n]...)
		}
		i += n
	}
	return dst
}

func appendSurrogate(dst []byte, r rune) []byte {
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}
