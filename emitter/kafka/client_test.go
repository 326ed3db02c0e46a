package kafka

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func newCluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func properties(c *kfake.Cluster, more ...string) map[string]string {
	p := map[string]string{"bootstrap.servers": strings.Join(c.ListenAddrs(), ",")}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}

func open(t testing.TB, cfg ClientConfig) *Client {
	t.Helper()
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func login(user, password string) []string {
	return []string{
		"security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "SCRAM-SHA-256",
		"sasl.jaas.config", `org.apache.kafka.common.security.scram.ScramLoginModule required username="` + user + `" password="` + password + `";`,
	}
}

// answering listens as a server that has one answer to everything, and returns its address.
func answering(t testing.TB, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte(answer))
			io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// The offsets topic is what a start asks for first, so it has to tell the same.
func TestTopicStoreNotKafka(t *testing.T) {
	cfg := TopicStoreConfig{ClientConfig: ClientConfig{Properties: map[string]string{"bootstrap.servers": answering(t, "HTTP/1.1 400 Bad Request\r\n")}}, Topic: offsetsTopic}
	if s, err := OpenTopicStore(t.Context(), cfg); err == nil || Transient(err) || !strings.Contains(err.Error(), "cannot be used: a web server answers there, not Kafka") {
		t.Fatal(s, err)
	}
}

func TestPingSaysWhy(t *testing.T) {
	plain := newCluster(t)
	secured := newCluster(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "admin", "right"))
	// A real broker answers a wrong password; this one closes the connection.
	refusing := newCluster(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "admin", "right"))
	refusing.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		refusing.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		resp.ErrorMessage = kmsg.StringPtr("Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256")
		return resp, nil, true
	})
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closing.Close()
	go func() {
		for {
			conn, err := closing.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	tests := []struct {
		name       string
		properties map[string]string
		want       string
		transient  bool
	}{
		{name: "fine", properties: properties(plain)},
		{name: "login", properties: properties(secured, login("admin", "right")...)},
		{name: "nobody", properties: map[string]string{"bootstrap.servers": gone.Addr().String()}, want: "does Kafka run there?", transient: true},
		{name: "unknown name", properties: map[string]string{"bootstrap.servers": "no-such-host.invalid:9092"}, want: "", transient: true},
		{name: "wrong password", properties: properties(refusing, login("admin", "wrong")...), want: `refuses the login of user "admin"`},
		{name: "closes TLS", properties: map[string]string{"bootstrap.servers": closing.Addr().String(), "security.protocol": "SSL"}, want: "check security.protocol", transient: true},
		{name: "closes", properties: map[string]string{"bootstrap.servers": closing.Addr().String()}, want: "check security.protocol", transient: true},
		{name: "MySQL", properties: map[string]string{"bootstrap.servers": answering(t, "\x4a\x00\x00\x00\x0a9.7.0\x00")}, want: "what answers there is not Kafka; check bootstrap.servers"},
		{name: "another service", properties: map[string]string{"bootstrap.servers": answering(t, "\xff\xff\xff\xff")}, want: "what answers there is not Kafka; check bootstrap.servers"},
		{name: "a web server", properties: map[string]string{"bootstrap.servers": answering(t, "HTTP/1.1 400 Bad Request\r\n")}, want: "a web server answers there, not Kafka; check bootstrap.servers"},
		{name: "TLS", properties: map[string]string{"bootstrap.servers": answering(t, "\x15\x03\x03\x00\x02\x02\x46")}, want: "it answers in TLS; check security.protocol (SSL or SASL_SSL)"},
		{name: "silent", properties: map[string]string{"bootstrap.servers": silent.Addr().String()}, want: "does not answer in time", transient: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			err := open(t, ClientConfig{Properties: tt.properties}).Ping(ctx)
			if tt.want == "" && !tt.transient {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "wrong\"") {
				t.Errorf("error %v, want …%s…", err, tt.want)
			}
			if Transient(err) != tt.transient {
				t.Errorf("transient %v: %v", !tt.transient, err)
			}
		})
	}
}

func TestTransient(t *testing.T) {
	for err, want := range map[error]bool{
		nil:                                               false,
		errors.New("x"):                                   false,
		io.ErrUnexpectedEOF:                               true,
		context.DeadlineExceeded:                          true,
		context.Canceled:                                  false,
		kgo.ErrClientClosed:                               false,
		kerr.NotLeaderForPartition:                        true,
		kerr.NotEnoughReplicas:                            true,
		kerr.MessageTooLarge:                              false,
		kerr.TopicAuthorizationFailed:                     false,
		&net.OpError{Err: net.ErrClosed}:                  true,
		&net.DNSError{IsNotFound: true}:                   true,
		errors.Join(kerr.InvalidRequest):                  false,
		errors.Join(io.EOF, io.ErrNoProgress):             true,
		&net.OpError{Op: "read", Err: syscall.ECONNRESET}: true,
		syscall.EAGAIN:                                    false,
		&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}:       false,
		&os.LinkError{Op: "rename", Old: "x", Err: syscall.EAGAIN}:      false,
		errors.Join(&fs.PathError{Err: syscall.EINTR}, errors.New("x")): false,
	} {
		if got := Transient(err); got != want {
			t.Errorf("Transient(%v) = %v", err, got)
		}
	}
}

// A broker that is away is reported once, however often it is tried, and once when it is back.
func TestUnreachableIsSaidOnce(t *testing.T) {
	cluster := newCluster(t)
	core, logs := observer.New(zap.InfoLevel)
	var down atomic.Bool
	down.Store(true)
	client := open(t, ClientConfig{
		Properties: properties(cluster),
		Log:        zap.New(core),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if down.Load() {
				return nil, &net.OpError{Op: "dial", Err: errors.New("cut")}
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	})
	for range 5 {
		if err := client.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "cut") {
			t.Fatalf("reached: %v", err)
		}
	}
	down.Store(false)
	for range 5 {
		if err := client.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all := logs.All()
	if len(all) != 2 || !strings.Contains(all[0].Message, "cannot be reached") || !strings.Contains(all[1].Message, "can be reached again") {
		t.Fatalf("logged %v", all)
	}
	if got := all[1].ContextMap()["tries"]; got != int64(5) {
		t.Errorf("%v tries", got)
	}
}

// TestUnreachableIsSaidOnceALine: each attempt of a connector has a client of its own.
func TestUnreachableIsSaidOnceALine(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	line := new(Line)
	var up atomic.Bool
	cluster := newCluster(t)
	for i := range 4 {
		up.Store(i == 3)
		client := open(t, ClientConfig{
			Properties: properties(cluster), Line: line, Log: zap.New(core),
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if !up.Load() {
					return nil, &net.OpError{Op: "dial", Err: errors.New("cut")}
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			},
		})
		if err := client.Ping(t.Context()); (err == nil) != up.Load() {
			t.Fatal(err)
		}
		client.Close()
	}
	all := logs.All()
	if len(all) != 2 || !strings.Contains(all[0].Message, "cannot be reached") || !strings.Contains(all[1].Message, "can be reached again") || all[1].ContextMap()["tries"] != int64(3) {
		t.Errorf("logged %v", all)
	}
}

func TestClientSettings(t *testing.T) {
	client := open(t, ClientConfig{Properties: map[string]string{"bootstrap.servers": "a:1", "max.request.size": "5000000", "buffer.memory": "40000000"}, ClientID: "mine"})
	inner := client.Internal()
	if inner.MaxRecordBytes != 5_000_000 || inner.BufferBytes != 40_000_000 {
		t.Errorf("%+v", inner)
	}
	for opt, want := range map[string]struct {
		got  any
		want any
	}{
		"ClientID": {inner.Kgo.OptValue(kgo.ClientID), "mine"},
		"Acks":     {inner.Kgo.OptValue(kgo.RequiredAcks), kgo.AllISRAcks()},
		"Linger":   {inner.Kgo.OptValue(kgo.ProducerLinger), time.Duration(0)},
		"Unknown":  {inner.Kgo.OptValue(kgo.UnknownTopicRetries), int64(-1)},
		"NoIdemp":  {inner.Kgo.OptValue(kgo.DisableIdempotentWrite), false},
		"Timeout":  {inner.Kgo.OptValue(kgo.RecordDeliveryTimeout), time.Duration(0)},
		"Buffer":   {inner.Kgo.OptValue(kgo.MaxBufferedBytes), int64(40_000_000)},
	} {
		if want.got != want.want {
			t.Errorf("%s: %v (%T), want %v", opt, want.got, want.got, want.want)
		}
	}
	if _, err := NewClient(ClientConfig{Properties: map[string]string{}}); err == nil {
		t.Error("no bootstrap.servers: no error")
	}
}

// TestLine is handed to the producers of the client.
func TestLine(t *testing.T) {
	line := new(Line)
	cl := open(t, ClientConfig{Properties: map[string]string{"bootstrap.servers": "127.0.0.1:1"}, Line: line})
	if cl.Internal().Line != &line.producers {
		t.Error("has another one")
	}
}
