package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
)

// A broker that wants a client certificate ends the handshake with an alert, which comes with the first read: waiting does
// not help, and the message names the setting.
func TestMissingClientCertificateIsNotTransient(t *testing.T) {
	cert, key := certificate(t, "broker.test")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 1)) // the handshake, which fails
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "broker.test"})
	defer client.Close()
	_, err = client.Read(make([]byte, 1))
	if err == nil || Transient(err) || !strings.Contains(explain(err, ""), "ssl.keystore.location") {
		t.Errorf("%v, transient %v: %s", err, Transient(err), explain(err, ""))
	}
}
