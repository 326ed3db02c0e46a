package keystore

import (
	"bytes"
	"crypto/sha1"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
)

// A JKS file: magic, version, number of entries (4 bytes each, big endian); then the entries: tag (4), alias (2 + UTF-8), time
// (8), and of a key its length (4) and bytes and the number of certificates (4), of a certificate its type (2 + UTF-8, from
// version 2 on), length (4) and bytes; last a SHA-1 over the password, a fixed text and all in front of it.
const (
	jksMagic   = 0xfeedfeed
	jceksMagic = 0xcececece
	jksText    = "Mighty Aphrodite"

	tagKey         = 1
	tagCertificate = 2
)

// protectedKey is the algorithm by which JKS hides keys.
var protectedKey = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 42, 2, 17, 1, 1}

var errCut = errors.New("the JKS store is damaged: a length in it goes beyond its end")

// entry is one of a JKS store.
type entry struct {
	key   []byte // protected; nil of a trusted certificate
	certs [][]byte
}

// readJKS reads all entries. With a password it checks the store's integrity, too.
func readJKS(data []byte, password string) ([]entry, error) {
	if len(data) < 12+sha1.Size {
		return nil, errCut
	}
	body, sum := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	r := reader{rest: body[4:]}
	version, count := r.number(), r.number()
	if version != 1 && version != 2 {
		return nil, fmt.Errorf("the JKS store has the version %d, which does not exist", version)
	}
	if password != "" {
		h := sha1.New()
		h.Write(wide(password))
		h.Write([]byte(jksText))
		h.Write(body)
		if subtle.ConstantTimeCompare(h.Sum(nil), sum) != 1 {
			return nil, ErrPassword
		}
	}
	var entries []entry
	for range count {
		tag := r.number()
		r.short() // alias
		r.take(8) // time
		var e entry
		n := uint32(1)
		switch tag {
		case tagKey:
			e.key = r.take(r.number())
			n = r.number()
		case tagCertificate:
		default:
			if r.bad {
				return nil, errCut
			}
			return nil, fmt.Errorf("the JKS store has an entry of kind %d, which does not exist", tag)
		}
		for i := uint32(0); i < n && !r.bad; i++ {
			if version == 2 {
				r.short() // X.509
			}
			e.certs = append(e.certs, r.take(r.number()))
		}
		if r.bad {
			return nil, errCut
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func trustedJKS(data []byte, password string) ([]*x509.Certificate, error) {
	entries, err := readJKS(data, password)
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	for _, e := range entries {
		if len(e.certs) == 0 {
			continue
		}
		c, err := x509.ParseCertificate(e.certs[0])
		if err != nil {
			return nil, err
		}
		certs = append(certs, c)
	}
	return certs, nil
}

func keyOfJKS(data []byte, password, keyPassword string) (tls.Certificate, error) {
	entries, err := readJKS(data, password)
	if err != nil {
		return tls.Certificate{}, err
	}
	for _, e := range entries {
		if e.key == nil {
			continue
		}
		var certs []*x509.Certificate
		for _, raw := range e.certs {
			c, err := x509.ParseCertificate(raw)
			if err != nil {
				return tls.Certificate{}, err
			}
			certs = append(certs, c)
		}
		plain, err := unprotect(e.key, keyPassword)
		if err != nil {
			return tls.Certificate{}, err
		}
		key, err := x509.ParsePKCS8PrivateKey(plain)
		if err != nil {
			return tls.Certificate{}, err
		}
		return pair(key, certs)
	}
	return tls.Certificate{}, errors.New("the JKS store holds no private key")
}

// unprotect gives the PKCS#8 form of a key of JKS: salt, the key under a stream of SHA-1 sums, and a check.
func unprotect(protected []byte, password string) ([]byte, error) {
	var info struct {
		Algorithm struct {
			Algorithm  asn1.ObjectIdentifier
			Parameters asn1.RawValue `asn1:"optional"`
		}
		Data []byte
	}
	if _, err := asn1.Unmarshal(protected, &info); err != nil {
		return nil, errors.New("the JKS store has a private key that cannot be read")
	}
	if !info.Algorithm.Algorithm.Equal(protectedKey) || len(info.Data) < 2*sha1.Size {
		return nil, errors.New("the JKS store has a private key that is protected in an unknown way")
	}
	secret := wide(password)
	sum, hidden, check := info.Data[:sha1.Size], info.Data[sha1.Size:len(info.Data)-sha1.Size], info.Data[len(info.Data)-sha1.Size:]
	plain := make([]byte, len(hidden))
	for i := 0; i < len(hidden); i += sha1.Size {
		next := sha1.Sum(append(bytes.Clone(secret), sum...))
		sum = next[:]
		subtle.XORBytes(plain[i:], hidden[i:], sum)
	}
	if want := sha1.Sum(append(bytes.Clone(secret), plain...)); subtle.ConstantTimeCompare(want[:], check) != 1 {
		return nil, ErrPassword
	}
	return plain, nil
}

// wide is a password as Java's characters, two bytes each.
func wide(password string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(password)) {
		out = binary.BigEndian.AppendUint16(out, u)
	}
	return out
}

// reader takes numbers and texts off, and remembers that there was too little.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) take(n uint32) []byte {
	if r.bad || uint64(n) > uint64(len(r.rest)) {
		r.bad = true
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}

func (r *reader) number() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) short() {
	if b := r.take(2); b != nil {
		r.take(uint32(binary.BigEndian.Uint16(b)))
	}
}
