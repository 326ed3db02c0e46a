// Package keystore reads certificates and private keys from the stores that Java's clients name: JKS, PKCS12 and PEM. A
// store is told by what it holds, whatever its type is said to be, as Java does it with the first two. No error holds a
// password or a key.
package keystore

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	pkcs12 "software.sslmate.com/src/go-pkcs12"
)

// MaxBytes is more than any store has: a longer file is a wrong one.
const MaxBytes = 16 << 20

// Errors by their meaning, for [errors.Is].
var (
	// ErrPassword says that the password is not that of the store or the key.
	ErrPassword = errors.New("the password is wrong, or the store is damaged")
	// ErrFormat says that a store is of a kind that is not read.
	ErrFormat = errors.New("it is no JKS, PKCS12 or PEM store")
)

const (
	jks   = "JKS"
	p12   = "PKCS12"
	asPEM = "PEM"
)

// format tells the kind of a store.
func format(data []byte) (string, error) {
	switch {
	case len(data) >= 4 && binary.BigEndian.Uint32(data) == jksMagic:
		return jks, nil
	case len(data) >= 4 && binary.BigEndian.Uint32(data) == jceksMagic:
		return "", fmt.Errorf("%w but a JCEKS store; convert it: keytool -importkeystore -srckeystore FILE -srcstoretype JCEKS -destkeystore store.p12 -deststoretype PKCS12", ErrFormat)
	case bytes.Contains(data, []byte("-----BEGIN ")):
		return asPEM, nil
	case len(data) > 1 && data[0] == 0x30 && data[1] >= 0x80: // a long SEQUENCE
		return p12, nil
	}
	return "", ErrFormat
}

// ReadFile reads the file of a store, up to [MaxBytes]. It blocks as a read of the file does.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		return nil, fmt.Errorf("%s has more than %d bytes, so it is no store of certificates", path, MaxBytes)
	}
	return data, err
}

// Trusted are the certificates of a trust store: its trusted entries, and of each key the certificate of its owner. The
// password may be empty where the store can be read without it: PEM, and JKS, whose integrity is then not checked.
func Trusted(data []byte, password string) ([]*x509.Certificate, error) {
	kind, err := format(data)
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	switch kind {
	case asPEM:
		certs, err = certificates(data)
	case jks:
		certs, err = trustedJKS(data, password)
	default:
		certs, err = trustedPKCS12(data, password)
	}
	if err == nil && len(certs) == 0 {
		err = fmt.Errorf("the %s store holds no certificate", kind)
	}
	return certs, err
}

// KeyPair is the private key of a key store with its chain of certificates. keyPassword is that of the key alone; empty: that
// of the store.
func KeyPair(data []byte, password, keyPassword string) (tls.Certificate, error) {
	kind, err := format(data)
	if err != nil {
		return tls.Certificate{}, err
	}
	if keyPassword == "" {
		keyPassword = password
	}
	switch kind {
	case asPEM:
		return PEMKeyPair(data, data, keyPassword)
	case jks:
		return keyOfJKS(data, password, keyPassword)
	}
	key, leaf, others, err := pkcs12.DecodeChain(data, password)
	if err != nil {
		return tls.Certificate{}, wordsPKCS12(err)
	}
	return pair(key, append([]*x509.Certificate{leaf}, others...))
}

func trustedPKCS12(data []byte, password string) ([]*x509.Certificate, error) {
	certs, err := pkcs12.DecodeTrustStore(data, password)
	if err == nil || errors.Is(err, pkcs12.ErrIncorrectPassword) {
		return certs, wordsPKCS12(err)
	}
	if _, leaf, _, chainErr := pkcs12.DecodeChain(data, password); chainErr == nil {
		return []*x509.Certificate{leaf}, nil
	}
	return nil, wordsPKCS12(err)
}

func wordsPKCS12(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pkcs12.ErrIncorrectPassword), errors.Is(err, pkcs12.ErrDecryption):
		return ErrPassword
	case err.Error() == "pkcs12: trust store contains a certificate that is not marked as trusted":
		return errors.New("the PKCS12 store has a certificate that is not marked as trusted, as Java wants it; make it with keytool -importcert -keystore store.p12 -storetype PKCS12, or name a PEM file")
	}
	return err
}
