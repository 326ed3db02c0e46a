package keystore

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// certificates are those of a PEM text.
func certificates(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// PEMKeyPair is the first private key of one PEM text with its certificates, which another holds. The password is that of an
// encrypted key.
func PEMKeyPair(chain, key []byte, password string) (tls.Certificate, error) {
	certs, err := certificates(chain)
	if err != nil {
		return tls.Certificate{}, err
	}
	if len(certs) == 0 {
		return tls.Certificate{}, errors.New("it holds no certificate in PEM")
	}
	for block, rest := pem.Decode(key); block != nil; block, rest = pem.Decode(rest) {
		var private any
		switch block.Type {
		case "PRIVATE KEY":
			private, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			if password == "" {
				return tls.Certificate{}, errors.New("the private key is encrypted, and no password for it is given")
			}
			var plain []byte
			if plain, err = decryptPKCS8(block.Bytes, password); err == nil {
				if private, err = x509.ParsePKCS8PrivateKey(plain); err != nil {
					err = ErrPassword
				}
			}
		case "RSA PRIVATE KEY", "EC PRIVATE KEY":
			if block.Headers["Proc-Type"] != "" {
				return tls.Certificate{}, errors.New("the private key is encrypted in OpenSSL's old way; convert it: openssl pkcs8 -topk8 -in key.pem -out new.pem")
			}
			if block.Type[0] == 'R' {
				private, err = x509.ParsePKCS1PrivateKey(block.Bytes)
			} else {
				private, err = x509.ParseECPrivateKey(block.Bytes)
			}
		default:
			continue
		}
		if err != nil {
			return tls.Certificate{}, err
		}
		return pair(private, certs)
	}
	return tls.Certificate{}, errors.New("it holds no private key in PEM")
}
