// Package server asks a MySQL or MariaDB server everything that reading its binlog needs: whether it is set up for it, where its
// binlog stands, what its tables look like, whether a stored offset still holds there, and the binlog itself, as raw
// events.
//
// Every error says what was asked of which server and what to do about it. [Transient] alone decides which errors
// go away by waiting.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"go.uber.org/zap"
)

// SSLMode says whether a connection is encrypted, with Debezium's names for database.ssl.mode.
type SSLMode string

// The modes of database.ssl.mode. The first three do not find out who the server is, so they do not stop somebody who can
// change what is on the wire, unless [Config.TLS] gives authorities: then its certificate must be from one of them in the
// second and third, too, as with Debezium's binlog connection.
const (
	SSLDisabled       SSLMode = "disabled"        // never encrypt
	SSLPreferred      SSLMode = "preferred"       // encrypt when the server offers it
	SSLRequired       SSLMode = "required"        // refuse a server that does not offer it
	SSLVerifyCA       SSLMode = "verify_ca"       // and one whose certificate is from no trusted authority
	SSLVerifyIdentity SSLMode = "verify_identity" // and one whose certificate is not for Config.Host
)

// verifies says whether the mode finds out who the server is.
func (m SSLMode) verifies() bool { return m == SSLVerifyCA || m == SSLVerifyIdentity }

// Defaults of [Config].
const (
	DefaultConnectTimeout = 30 * time.Second
	DefaultHeartbeat      = 10 * time.Second
)

// Config says how to reach a server.
type Config struct {
	Host     string
	Port     int // 0: 3306
	User     string
	Password string // never part of an error or a log line

	// ReadPassword gives the password anew for each login, so that one that was replaced counts; it may block as a read of a
	// file does. Nil, and when it fails: Password.
	ReadPassword func() (string, error)

	SSLMode SSLMode // "": preferred

	// TLS gives RootCAs, the trusted authorities (nil: the system's), and Certificates, the client's own, anew for each
	// connection, so that renewed files count; it may block as a read of files does. Nil: neither.
	TLS func() (*tls.Config, error)

	// CleartextPassword permits sending the password itself to a server that TLS shows to be the right one: SSLMode must be
	// verify_ca or verify_identity. Logins by LDAP, PAM and AWS IAM need it.
	CleartextPassword bool

	// PublicKeyFile is the server's public key in PEM (driver.serverRSAPublicKeyFile), under which the password may be sent
	// over a plain connection: only who has the private key can read it.
	PublicKeyFile string

	// AllowPublicKeyRetrieval permits sending the password encrypted with a key that the server presents, when the
	// connection itself is not encrypted (driver.allowPublicKeyRetrieval). Whoever can change what is on the wire can
	// present a key of their own, so it is off by default; caching_sha2_password then needs an encrypted connection
	// for a user's first login.
	AllowPublicKeyRetrieval bool

	ConnectTimeout time.Duration // for dialling, TLS and login together; 0: DefaultConnectTimeout
	Heartbeat      time.Duration // the longest silence of a binlog stream; 0: DefaultHeartbeat

	// Dial opens the network connection; nil: a net.Dialer. Tests and proxies put theirs here.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// InitialStatements are run at the beginning of each connection that asks the server something, and not on those that
	// read its binlog (database.initial.statements). One that the server refuses is an error of the login.
	InitialStatements []string

	Log *zap.Logger // nil: none
}

// address returns host:port, the name under which errors speak of the server.
func (c *Config) address() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }

// password is that of the next login.
func (c *Config) password() string {
	if c.ReadPassword == nil {
		return c.Password
	}
	password, err := c.ReadPassword()
	if err != nil {
		c.Log.Warn("the password for MySQL cannot be read again; the one read before is used", zap.Error(err))
		return c.Password
	}
	return password
}

// String returns user and address, and never the password.
func (c Config) String() string { return c.User + "@" + c.address() }

// GoString is String, so that no way of formatting shows the password.
func (c Config) GoString() string { return c.String() }

// validate fills defaults and reports every fault of the configuration in one error.
func (c *Config) validate() error {
	var faults []error
	if c.Host == "" {
		faults = append(faults, errors.New("database.hostname is missing"))
	}
	if c.Port == 0 {
		c.Port = 3306
	}
	if c.Port < 1 || c.Port > 65535 {
		faults = append(faults, fmt.Errorf("database.port is %d, allowed are 1 to 65535", c.Port))
	}
	switch c.SSLMode {
	case "":
		c.SSLMode = SSLPreferred
	case SSLDisabled, SSLPreferred, SSLRequired, SSLVerifyCA, SSLVerifyIdentity:
	default:
		faults = append(faults, fmt.Errorf("database.ssl.mode is %q, allowed are disabled, preferred, required, verify_ca, verify_identity", c.SSLMode))
	}
	if c.CleartextPassword && !c.SSLMode.verifies() {
		faults = append(faults, fmt.Errorf("database.cleartext.password=true needs database.ssl.mode=verify_identity or verify_ca: with %s the password could go to anybody", c.SSLMode))
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = DefaultConnectTimeout
	}
	if c.ConnectTimeout < 0 {
		faults = append(faults, fmt.Errorf("the connect timeout is %v, it must be positive", c.ConnectTimeout))
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	// The server's own bounds for a heartbeat period.
	if c.Heartbeat < time.Millisecond || c.Heartbeat > 4294967*time.Second {
		faults = append(faults, fmt.Errorf("the heartbeat period is %v, it must be between 1ms and 4294967s", c.Heartbeat))
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return errors.Join(faults...)
}
