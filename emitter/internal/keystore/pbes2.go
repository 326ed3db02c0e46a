package keystore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
)

// mostIterations bounds the work that a key may ask for: OpenSSL's and Java's default are thousands.
const mostIterations = 2_000_000

type algorithm struct {
	ID         asn1.ObjectIdentifier
	Parameters asn1.RawValue `asn1:"optional"`
}

func oid(id ...int) string { return asn1.ObjectIdentifier(id).String() }

// decryptPKCS8 decrypts an ENCRYPTED PRIVATE KEY by PBES2, which is what OpenSSL and Java write.
func decryptPKCS8(der []byte, password string) ([]byte, error) {
	var info struct {
		Algorithm algorithm
		Data      []byte
	}
	if _, err := asn1.Unmarshal(der, &info); err != nil {
		return nil, errors.New("the encrypted private key cannot be read")
	}
	if info.Algorithm.ID.String() != oid(1, 2, 840, 113549, 1, 5, 13) {
		return nil, fmt.Errorf("the private key is encrypted in a way that is not supported (%v); convert it: openssl pkcs8 -topk8 -v2 aes256 -in key.pem -out new.pem", info.Algorithm.ID)
	}
	var scheme struct{ Derive, Encrypt algorithm }
	if _, err := asn1.Unmarshal(info.Algorithm.Parameters.FullBytes, &scheme); err != nil {
		return nil, errors.New("the encrypted private key cannot be read")
	}
	var derive struct {
		Salt       []byte
		Iterations int
		Length     int       `asn1:"optional"`
		PRF        algorithm `asn1:"optional"`
	}
	if scheme.Derive.ID.String() != oid(1, 2, 840, 113549, 1, 5, 12) {
		return nil, fmt.Errorf("the private key's password is used in a way that is not supported (%v); convert it: openssl pkcs8 -topk8 -v2 aes256 -in key.pem -out new.pem", scheme.Derive.ID)
	}
	if _, err := asn1.Unmarshal(scheme.Derive.Parameters.FullBytes, &derive); err != nil || derive.Iterations < 1 || derive.Iterations > mostIterations {
		return nil, errors.New("the encrypted private key cannot be read")
	}
	sum, ok := map[string]func() hash.Hash{
		"": sha1.New, oid(1, 2, 840, 113549, 2, 7): sha1.New, oid(1, 2, 840, 113549, 2, 9): sha256.New,
		oid(1, 2, 840, 113549, 2, 10): sha512.New384, oid(1, 2, 840, 113549, 2, 11): sha512.New,
	}[derive.PRF.ID.String()]
	size := map[string]int{
		oid(2, 16, 840, 1, 101, 3, 4, 1, 2): 16, oid(2, 16, 840, 1, 101, 3, 4, 1, 22): 24, oid(2, 16, 840, 1, 101, 3, 4, 1, 42): 32,
		oid(1, 2, 840, 113549, 3, 7): 24,
	}[scheme.Encrypt.ID.String()]
	if !ok || size == 0 {
		return nil, fmt.Errorf("the private key is encrypted in a way that is not supported (%v, %v); convert it: openssl pkcs8 -topk8 -v2 aes256 -in key.pem -out new.pem", derive.PRF.ID, scheme.Encrypt.ID)
	}
	key, err := pbkdf2.Key(sum, password, derive.Salt, derive.Iterations, size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if scheme.Encrypt.ID.String() == oid(1, 2, 840, 113549, 3, 7) {
		block, err = des.NewTripleDESCipher(key)
	}
	if err != nil {
		return nil, err
	}
	var iv []byte
	if _, err := asn1.Unmarshal(scheme.Encrypt.Parameters.FullBytes, &iv); err != nil || len(iv) != block.BlockSize() || len(info.Data) == 0 || len(info.Data)%block.BlockSize() != 0 {
		return nil, errors.New("the encrypted private key cannot be read")
	}
	plain := make([]byte, len(info.Data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, info.Data)
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > block.BlockSize() {
		return nil, ErrPassword
	}
	return plain[:len(plain)-pad], nil
}
