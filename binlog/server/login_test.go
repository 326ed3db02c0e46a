package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// greetingPacket is what a server says first.
func greetingPacket(plugin string, tls bool) []byte {
	capability := uint32(mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_PLUGIN_AUTH | mysql.CLIENT_LONG_PASSWORD)
	if tls {
		capability |= mysql.CLIENT_SSL
	}
	p := append([]byte{10}, "9.7.0\x00"...)
	p = append(p, 1, 0, 0, 0)
	p = append(p, "12345678\x00"...)
	p = append(p, byte(capability), byte(capability>>8), 255, 2, 0, byte(capability>>16), byte(capability>>24), 21)
	p = append(p, make([]byte, 10)...)
	p = append(p, "abcdefghijkl\x00"...)
	return append(append(p, plugin...), 0)
}

// record is what a scripted server got; it is whole when done is closed.
type record struct {
	bytes.Buffer
	done chan struct{}
}

// script is a server that sends the given payloads in turn, one after each packet it gets, and keeps what it gets.
func script(got *record, payloads ...[]byte) func(context.Context, string, string) (net.Conn, error) {
	got.done = make(chan struct{})
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer close(got.done)
			defer theirs.Close()
			seq := byte(0)
			for i, p := range payloads {
				if i > 0 {
					var h [4]byte
					if _, err := io.ReadFull(theirs, h[:]); err != nil {
						return
					}
					b := make([]byte, int(h[0])|int(h[1])<<8)
					io.ReadFull(theirs, b)
					got.Write(b)
					seq = h[3] + 1
				}
				theirs.Write(append([]byte{byte(len(p)), byte(len(p) >> 8), byte(len(p) >> 16), seq}, p...))
				seq++
			}
			io.Copy(&got.Buffer, theirs)
		}()
		return ours, nil
	}
}

func TestLoginGuard(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := append([]byte{1}, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
	switchTo := func(plugin string) []byte {
		return append(append([]byte{0xfe}, plugin...), "\x00abcdefghijklmnopqrst\x00"...)
	}
	fullLogin := []byte{1, 4}
	denied := append([]byte{0xff, 0x15, 0x04}, "#28000Access denied"...)
	tests := []struct {
		name     string
		allowKey bool
		payloads [][]byte
		insecure bool
		want     string
	}{
		{"switch to clear text", false, [][]byte{greetingPacket("caching_sha2_password", false), switchTo("mysql_clear_password")}, true, `login method "mysql_clear_password"`},
		{"switch to clear text although keys are allowed", true, [][]byte{greetingPacket("mysql_native_password", false), switchTo("mysql_clear_password")}, true, `login method "mysql_clear_password"`},
		{"switch to dialog", false, [][]byte{greetingPacket("mysql_native_password", false), switchTo("dialog")}, true, `login method "dialog"`},
		{"full login", false, [][]byte{greetingPacket("caching_sha2_password", false), fullLogin, public, denied}, true, "driver.allowPublicKeyRetrieval=true"},
		{"full login after a switch", false, [][]byte{greetingPacket("mysql_native_password", false), switchTo("caching_sha2_password"), fullLogin, public, denied}, true, "driver.allowPublicKeyRetrieval=true"},
		{"key of sha256_password", false, [][]byte{greetingPacket("sha256_password", false), public, denied}, true, "driver.allowPublicKeyRetrieval=true"},
		{"switch to sha256_password", false, [][]byte{greetingPacket("mysql_native_password", false), switchTo("sha256_password"), public, denied}, true, "sha256_password"},
		{"full login allowed", true, [][]byte{greetingPacket("caching_sha2_password", false), fullLogin, public, denied}, false, "refuses the login of user 'u'"},
		{"wrong password", false, [][]byte{greetingPacket("caching_sha2_password", false), denied}, false, "check database.user and database.password"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got record
			cfg := Config{Host: "db.example", User: "u", Password: "s3cr3t", AllowPublicKeyRetrieval: tt.allowKey, Dial: script(&got, tt.payloads...)}
			_, err := Connect(t.Context(), cfg)
			if err == nil || Transient(err) || errors.Is(err, ErrInsecure) != tt.insecure || !errors.Is(err, ErrInsecure) && !errors.Is(err, ErrAccess) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error shows the password: %v", err)
			}
			<-got.done
			if bytes.Contains(got.Bytes(), []byte("s3cr3t")) {
				t.Error("the server got the password")
			}
			if tt.insecure && got.Len() > 300 {
				t.Errorf("the server got %d bytes", got.Len())
			}
		})
	}
}

func TestLoginErrors(t *testing.T) {
	says := func(code uint16, text string) []byte {
		return append([]byte{0xff, byte(code), byte(code >> 8)}, text...) // without SQL state, as before the handshake
	}
	tests := []struct {
		name      string
		mode      SSLMode
		payloads  [][]byte
		transient bool
		want      string
	}{
		{"no TLS to be had", SSLRequired, [][]byte{greetingPacket("caching_sha2_password", false)}, false, "the server offers no TLS"},
		{"too many connections", SSLPreferred, [][]byte{says(1040, "Too many connections")}, true, "does not take the connection"},
		{"too many connections, TLS required", SSLRequired, [][]byte{says(1040, "Too many connections")}, true, "does not take the connection"},
		{"host blocked", SSLPreferred, [][]byte{says(1129, "Host is blocked")}, false, "performance_schema.host_cache"},
		{"account locked", SSLPreferred, [][]byte{says(3118, "Access denied for user 'u'. Account is locked.")}, false, "ACCOUNT UNLOCK"},
		{"account locked, MariaDB", SSLPreferred, [][]byte{says(4151, "Access denied, this account is locked")}, false, "ACCOUNT UNLOCK"},
		{"account locked for wrong passwords", SSLPreferred, [][]byte{says(3955, "Access denied. Account is blocked for 2 day(s) (2 day(s) remaining) due to 3 consecutive failed logins.")}, false, "because of wrong passwords"},
		{"password expired", SSLPreferred, [][]byte{says(1862, "Your password has expired.")}, false, "the password has expired: ALTER USER"},
		{"user has its maximum of connections", SSLPreferred, [][]byte{says(1226, "User 'u' has exceeded the 'max_user_connections' resource")}, true, "does not take the connection"},
		{"the server shuts down", SSLPreferred, [][]byte{says(1053, "Server shutdown in progress")}, true, "does not take the connection"},
		{"the server is offline", SSLPreferred, [][]byte{says(3032, "The server is currently in offline mode")}, true, "does not take the connection"},
		{"host unknown", SSLPreferred, [][]byte{says(1130, "Host is not allowed")}, false, "no user of this server may come from this host"},
		{"another protocol", SSLPreferred, [][]byte{[]byte("SSH-2.0-OpenSSH_9.2p1\r\n")}, false, "invalid protocol version"},
		{"nonsense", SSLPreferred, [][]byte{{10, 'x', 0, 1}}, false, "make no sense"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got record
			_, err := Connect(t.Context(), Config{Host: "db.example", User: "u", Password: "s3cr3t", SSLMode: tt.mode, Dial: script(&got, tt.payloads...)})
			if err == nil || Transient(err) != tt.transient || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "db.example:3306") {
				t.Fatalf("transient %v: %v", Transient(err), err)
			}
		})
	}
	t.Run("not MySQL", func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { theirs.Write([]byte("HTTP/1.1 400 Bad Request\r\n")); theirs.Close() }()
			return ours, nil
		}
		_, err := Connect(t.Context(), Config{Host: "db.example", Dial: dial})
		if err == nil || Transient(err) || !strings.Contains(err.Error(), "this is no MySQL server") {
			t.Fatal(err)
		}
	})
}

// A failed connection is told in plain words, with the system's own in parentheses behind them.
func TestUnreachableSaysWhy(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"refused": {
			dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
			"nothing accepts connections there; does MySQL run, and are database.hostname and database.port right? (dial tcp: connect: connection refused)",
		},
		"no such name": {
			dial(&net.DNSError{Err: "no such host", Name: "db.example", IsNotFound: true}),
			"no computer has the name db.example; check database.hostname (dial tcp: lookup db.example: no such host)",
		},
		"lookup":    {dial(&net.DNSError{Err: "server misbehaving", Name: "db.example", IsTemporary: true}), "the name db.example cannot be looked up just now (dial tcp"},
		"timed out": {dial(os.ErrDeadlineExceeded), "no answer came in time; check database.hostname and database.port, and whether a firewall is in between (dial tcp: i/o timeout)"},
		"no route":  {dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "there is no way to it in the network; check database.hostname, routes and firewalls (dial tcp"},
		"no descriptor": {
			dial(os.NewSyscallError("socket", syscall.EMFILE)),
			"no file descriptor is left, of this process or of the whole computer; see ulimit -n (LimitNOFILE= of a systemd unit) (dial tcp: socket: too many open files)",
		},
		"reset": {dial(os.NewSyscallError("read", syscall.ECONNRESET)), "the server, or something in between, ended the connection (dial tcp"},
		"other": {dial(errors.New("connect: something new")), "dial tcp: connect: something new"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Connect(t.Context(), Config{Host: "db.example", Dial: func(context.Context, string, string) (net.Conn, error) { return nil, tt.err }})
			if !Transient(err) || !strings.HasPrefix(fmt.Sprint(err), "MySQL at db.example:3306 cannot be reached: "+tt.want) {
				t.Fatal(err)
			}
		})
	}
}

// A server that says nothing, and one that the caller gives up.
func TestLoginTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { io.Copy(io.Discard, theirs); theirs.Close() }()
			return ours, nil
		}
		cfg := Config{Host: "db.example", ConnectTimeout: 20 * time.Second, Dial: dial}
		begin := time.Now()
		_, err := Connect(t.Context(), cfg)
		if !Transient(err) || !strings.Contains(fmt.Sprint(err), "within 20s") || time.Since(begin) != 20*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err = Connect(ctx, cfg); !errors.Is(err, context.Canceled) || Transient(err) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

func TestConfig(t *testing.T) {
	_, err := Connect(t.Context(), Config{Port: 70000, SSLMode: "verified", CleartextPassword: true, ConnectTimeout: -1, Heartbeat: time.Microsecond, Password: "s3cr3t"})
	for _, want := range []string{"database.hostname", "database.port is 70000", `database.ssl.mode is "verified"`, "database.cleartext.password=true needs database.ssl.mode=verify_identity", "connect timeout", "heartbeat"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	cfg := Config{Host: "db.example", Port: 3306, User: "u", Password: "s3cr3t"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, cfg); strings.Contains(text, "s3cr3t") {
			t.Errorf("%s shows the password: %s", format, text)
		}
	}
}
