package keystore

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// pair puts the certificate of the key's owner in front of its issuers, as TLS sends them.
func pair(key any, certs []*x509.Certificate) (tls.Certificate, error) {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return tls.Certificate{}, errors.New("the private key is of a kind that TLS does not know")
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return tls.Certificate{}, errors.New("the private key is of a kind that TLS does not know")
	}
	out := tls.Certificate{PrivateKey: key}
	for _, c := range certs {
		if public.Equal(c.PublicKey) {
			out.Leaf = c
			break
		}
	}
	if out.Leaf == nil {
		return tls.Certificate{}, errors.New("the store has no certificate for its private key")
	}
	for next := out.Leaf; next != nil; {
		out.Certificate = append(out.Certificate, next.Raw)
		next = issuer(next, certs)
		if len(out.Certificate) > len(certs) { // a circle
			break
		}
	}
	return out, nil
}

// issuer is the certificate that signed another one; nil for one that signed itself and where it is not there.
func issuer(of *x509.Certificate, certs []*x509.Certificate) *x509.Certificate {
	if bytes.Equal(of.RawIssuer, of.RawSubject) {
		return nil
	}
	for _, c := range certs {
		if bytes.Equal(of.RawIssuer, c.RawSubject) && of.CheckSignatureFrom(c) == nil {
			return c
		}
	}
	return nil
}
