package keystore

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// read is a file of testdata, which make.sh made there: a certificate of an authority, and a key with its own.
func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const password = "changeit"

// TestTrustStoresOfJKSPKCS12AndPEM reads what keytool and openssl wrote.
func TestTrustStoresOfJKSPKCS12AndPEM(t *testing.T) {
	for _, tt := range []struct {
		file, password string
		want           string // names, or a part of the error
	}{
		{"ca.pem", "", "Test CA"},
		{"chain.pem", "", "client Test CA"},
		{"trust.jks", password, "client Test CA"},
		{"trust.jks", "", "client Test CA"}, // as Java, which checks nothing then
		{"trust.jks", "wrong", ErrPassword.Error()},
		{"trust.p12", password, "Test CA"},
		{"trust.p12", "wrong", ErrPassword.Error()},
		{"trust.p12", "", ErrPassword.Error()},
		{"key.jks", password, "client"}, // Java trusts the owner of a key
		{"key.p12", password, "client"},
		{"key-java.p12", password, "client"},
		{"nokeys.p12", password, "keytool -importcert"},
		{"trust.jceks", password, "JCEKS store; convert it: keytool"},
		{"leaf.key", "", "holds no certificate"},
		{"../jks.go", "", "no JKS, PKCS12 or PEM store"},
	} {
		certs, err := Trusted(read(t, tt.file), tt.password)
		var names []string
		for _, c := range certs {
			names = append(names, c.Subject.CommonName)
		}
		if got := strings.Join(names, " "); err == nil && got != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with password %q: %q, %v, want %s", tt.file, tt.password, got, err, tt.want)
		}
	}
}

// TestKeyStoresOfJKSPKCS12AndPEM gets the same key with its chain out of each.
func TestKeyStoresOfJKSPKCS12AndPEM(t *testing.T) {
	for _, tt := range []struct{ file, password, key, want string }{
		{"key.p12", password, "", ""},
		{"key-legacy.p12", password, "", ""},
		{"key-java.p12", password, "", ""},
		{"key.p12", "wrong", "", ErrPassword.Error()},
		{"trust.p12", password, "", "private key missing"},
		{"key.jks", password, "other-password", ""},
		{"key.jks", password, "", ErrPassword.Error()}, // the store's is not the key's
		{"key.jks", "wrong", "other-password", ErrPassword.Error()},
		{"trust.jks", password, "", "no private key"},
		{"chain.pem", "", "", "no private key"},
		{"leaf.key", "", "", "no certificate"},
		{"trust.jceks", password, "", "convert it"},
	} {
		pair, err := KeyPair(read(t, tt.file), tt.password, tt.key)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %s", tt.file, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		if len(pair.Certificate) != 2 || pair.Leaf.Subject.CommonName != "client" || !pair.PrivateKey.(*ecdsa.PrivateKey).PublicKey.Equal(pair.Leaf.PublicKey) {
			t.Errorf("%s: %d certificates, %v", tt.file, len(pair.Certificate), pair.Leaf.Subject)
		}
	}
	for _, tt := range []struct{ file, password, want string }{
		{"leaf.key", "", ""},
		{"key-sec1.pem", "", ""},
		{"key-aes256.pem", password, ""},
		{"key-aes128.pem", password, ""},
		{"key-des3.pem", password, ""},
		{"key-aes256.pem", "wrong", ErrPassword.Error()},
		{"key-aes256.pem", "", "no password for it is given"},
		{"key-v1.pem", password, "openssl pkcs8 -topk8"},
		{"key-old.pem", password, "openssl pkcs8 -topk8"},
		{"ca.pem", "", "no private key"},
	} {
		pair, err := PEMKeyPair(read(t, "chain.pem"), read(t, tt.file), tt.password)
		if tt.want == "" && (err != nil || len(pair.Certificate) != 2) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %s", tt.file, err, tt.want)
		}
	}
	if _, err := PEMKeyPair(read(t, "ca.pem"), read(t, "leaf.key"), ""); err == nil || !strings.Contains(err.Error(), "no certificate for its private key") {
		t.Errorf("a key without its certificate: %v", err)
	}
}

func TestStoreFileTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(MaxBytes + 1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "no store of certificates") {
		t.Error(err)
	}
}

// lying are JKS stores whose lengths and counts are not true.
func lying(t testing.TB) map[string][]byte {
	whole := read(t, "trust.jks")
	change := func(at int, n uint32) []byte {
		b := bytes.Clone(whole)
		binary.BigEndian.PutUint32(b[at:], n)
		return b
	}
	alias := 12 + 4
	certLength := alias + 2 + int(binary.BigEndian.Uint16(whole[alias:])) + 8 + 2 + len("X.509")
	key := append(bytes.Clone(whole[:12]), 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255)
	return map[string][]byte{
		"entries":      change(8, 1<<32-1),
		"certificate":  change(certLength, 1<<32-1),
		"certificates": append(key, make([]byte, 40)...),
		"cut":          whole[:len(whole)-sha1.Size-100],
		"empty":        whole[:4],
	}
}

// TestJKSLengthsAreBounded: a store cannot make the reader take memory for what it does not hold.
func TestJKSLengthsAreBounded(t *testing.T) {
	for name, data := range lying(t) {
		var err error
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = readJKS(data, "")
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		if !errors.Is(err, errCut) || allocated > 1<<20 {
			t.Errorf("%s: %v, %d bytes", name, err, allocated)
		}
	}
	if _, err := readJKS(append([]byte{0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 9}, make([]byte, 40)...), ""); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Error(err)
	}
}

// FuzzStores holds that no store makes a panic, and that an error has no password in it.
func FuzzStores(f *testing.F) {
	for _, name := range []string{"trust.jks", "key.jks", "chain.pem", "leaf.key", "key-sec1.pem"} {
		f.Add(read(f, name))
	}
	for _, data := range lying(f) {
		f.Add(data)
	}
	const secret = "canary-of-the-store"
	f.Fuzz(func(t *testing.T, data []byte) {
		if kind, _ := format(data); kind == p12 || bytes.Contains(data, []byte("ENCRYPTED")) {
			return // which say themselves how much work they are
		}
		for _, p := range []string{"", secret} {
			_, err := Trusted(data, p)
			_, keyErr := KeyPair(data, p, p)
			for _, err := range []error{err, keyErr} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%v", err)
				}
			}
		}
		_, _ = PEMKeyPair(data, data, secret)
	})
}
