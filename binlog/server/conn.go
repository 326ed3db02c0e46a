package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"
)

const (
	// queryTimeout bounds a statement whose context has no earlier deadline: without it a half-open connection would
	// block for ever.
	queryTimeout = 2 * time.Minute
	// idleCheck is the idle time after which a connection is asked for a sign of life before it is used: the server
	// ends idle ones after wait_timeout, and a restart of the server ends all.
	idleCheck = 5 * time.Second
	// pingTimeout bounds that question.
	pingTimeout = 5 * time.Second
)

// Conn asks a MySQL server. It holds one connection, opened again when it has died between two questions. It is safe
// for concurrent use; questions wait for each other. Its methods block until the answer is there, ctx ends or two
// minutes have passed.
type Conn struct {
	cfg   Config
	maria atomic.Bool // the server is a MariaDB, as far as it has said
	who   identity

	mu struct {
		sync.Mutex
		sess   *session // nil: none is open
		closed bool
	}
}

// session is one logged-in connection.
type session struct {
	*client.Conn
	wire  *wire
	guard *guard
	name  string // of the server, in error texts
	used  time.Time
}

// Connect logs in and returns a connection. The error tells a server that cannot be reached ([Transient]) from one
// that refuses.
func Connect(ctx context.Context, cfg Config) (*Conn, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Conn{cfg: cfg}
	sess, err := c.login(ctx, true)
	if err != nil {
		return nil, err
	}
	c.mu.sess = sess
	return c, nil
}

// Close ends the connection. Streams that [Conn.Dump] returned have their own and stay open.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.closed = true
	if c.mu.sess == nil {
		return nil
	}
	sess := c.mu.sess
	c.mu.sess = nil
	sess.wire.SetDeadline(time.Now().Add(time.Second))
	if err := sess.Quit(); err != nil {
		return sess.wire.Close()
	}
	return nil
}

// Address returns the server's host:port as configured.
func (c *Conn) Address() string { return c.cfg.address() }

// name is what error texts call the server.
func (c *Conn) name() string {
	if c.maria.Load() {
		return "MariaDB at " + c.cfg.address()
	}
	return "MySQL at " + c.cfg.address()
}

// login opens a connection of its own and sets it up for reading definitions. The statements of
// database.initial.statements are for connections that ask, not for those that read the binlog.
func (c *Conn) login(ctx context.Context, asks bool) (*session, error) {
	cfg := &c.cfg
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
	defer cancel()

	nc, err := cfg.Dial(ctx, "tcp", cfg.address())
	if err != nil {
		if whole.Err() != nil {
			return nil, whole.Err()
		}
		return nil, networkFault(c.name()+" cannot be reached", err)
	}
	w := &wire{Conn: nc}
	nc.SetDeadline(time.Now().Add(cfg.ConnectTimeout)) // the end of ctx closes it, too
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()

	sess, err := c.handshake(ctx, w, asks)
	if err == nil && !stop() { // cancelled meanwhile, and so closed
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, c.loginError(whole, ctx.Err() != nil, w, err)
	}
	nc.SetDeadline(time.Time{})
	return sess, nil
}

func (c *Conn) handshake(ctx context.Context, w *wire, asks bool) (sess *session, err error) {
	// The client library indexes into the server's packets without looking at their length.
	defer func() {
		if r := recover(); r != nil {
			err = faultf(nil, "the server's login packets make no sense (%v)", r)
		}
	}()
	if err := w.greeting(); err != nil {
		return nil, err
	}
	encrypt := c.cfg.SSLMode != SSLDisabled && (c.cfg.SSLMode != SSLPreferred || w.offersTLS)
	if encrypt && !w.offersTLS && !w.refused {
		return nil, faultf(ErrAccess, "the server offers no TLS, which database.ssl.mode=%s asks for; "+
			"give the server a certificate (mysqld makes its own unless started with --auto-generate-certs=OFF or --tls-version=''), or use database.ssl.mode=preferred", c.cfg.SSLMode)
	}
	var secure *tls.Config
	if encrypt {
		if secure, err = c.cfg.tls(); err != nil {
			return nil, err
		}
	}
	g, err := newGuard(ctx, w, &c.cfg, secure)
	if err != nil {
		return nil, err
	}
	options := []client.Option{func(cc *client.Conn) error {
		cc.SetAttributes(map[string]string{"program_name": "tidemark"})
		return nil
	}}
	given := func(context.Context, string, string) (net.Conn, error) { return g, nil }
	cc, err := client.ConnectWithDialer(ctx, g.network(), c.cfg.address(), c.cfg.User, c.cfg.password(), "", given, options...)
	if err != nil {
		return nil, err
	}
	g.done()
	c.maria.Store(isMariaDB(cc.GetServerVersion()))
	sess = &session{Conn: cc, wire: w, guard: g, name: c.name(), used: time.Now()}
	if asks {
		for _, sql := range c.cfg.InitialStatements {
			if _, err := sess.Execute(sql); isServerError(err) {
				return nil, &fault{text: "database.initial.statements: " + shorten(sql), kind: ErrSetup, cause: err}
			} else if err != nil {
				return nil, err
			}
		}
	}
	// SHOW CREATE TABLE's text must not depend on the server's sql_mode (ANSI_QUOTES, NO_BACKSLASH_ESCAPES).
	if _, err := sess.Execute("SET NAMES utf8mb4"); err != nil {
		return nil, err
	}
	if _, err := sess.Execute("SET SESSION sql_mode='', sql_quote_show_create=1, net_write_timeout=600, net_read_timeout=600"); err != nil {
		return nil, err
	}
	return sess, nil
}

// loginError puts a failed login into words; ctx is the caller's, and late says that the time for a login is over.
func (c *Conn) loginError(ctx context.Context, late bool, w *wire, err error) error {
	name := c.name()
	if network := w.failure(); network != nil && !isServerError(err) {
		err = network
	}
	var f *fault
	if errors.As(err, &f) {
		return &fault{text: "login to " + name, kind: f.kind, cause: err}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if late || errors.Is(err, os.ErrDeadlineExceeded) {
		return &fault{text: fmt.Sprintf("%s did not complete the login within %v", name, c.cfg.ConnectTimeout), cause: os.ErrDeadlineExceeded}
	}
	var my *mysql.MyError
	if !errors.As(err, &my) {
		return networkFault("login to "+name+" failed", err)
	}
	text, kind := fmt.Sprintf("%s refuses the login of user '%s'", name, c.cfg.User), ErrAccess
	switch my.Code {
	case 1045, 1698:
		text += " (check database.user and database.password; a new password: ALTER USER '" + c.cfg.User + "'@'%' IDENTIFIED BY '…')"
		if w.anonymous {
			text += "; an account that REQUIREs X509 needs the client's certificate in database.ssl.keystore"
		}
	case 1130:
		text += " (no user of this server may come from this host: CREATE USER '" + c.cfg.User + "'@'%' IDENTIFIED BY '…')"
	case 1129:
		text += " (too many failed connections from this host; on the server: TRUNCATE TABLE performance_schema.host_cache)"
	case 1862, 1820:
		text += " (the password has expired: ALTER USER '" + c.cfg.User + "'@'%' IDENTIFIED BY '…')"
	case 3118, 4151: // the second one is a MariaDB's
		text += " (the account is locked: ALTER USER '" + c.cfg.User + "'@'%' ACCOUNT UNLOCK)"
	case 3955:
		text += " (the account is locked for a time because of wrong passwords; check database.password, then ALTER USER '" + c.cfg.User + "'@'%' ACCOUNT UNLOCK)"
	case 3159:
		text += " (the server wants TLS: database.ssl.mode=required)"
	default:
		text, kind = name+" does not take the connection", nil
	}
	return &fault{text: text, kind: kind, cause: my}
}

func isServerError(err error) bool {
	var my *mysql.MyError
	return errors.As(err, &my)
}

// query runs one statement and returns its result. If the connection turns out to be dead and another one answers, that is
// seen only where running the statement twice could make a difference.
func (c *Conn) query(ctx context.Context, sql string) (*result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	res, used, err := c.ask(ctx, sql)
	if used && repeatable(sql, err) && ctx.Err() == nil {
		c.cfg.Log.Debug("connection to MySQL has died, asking again on another one", zap.String("server", c.cfg.address()), zap.Error(err))
		res, _, err = c.ask(ctx, sql)
	}
	return res, err
}

// repeatable says that a statement may be run again after an error: the connection was lost, and the statement was not begun
// (4031: the server had ended the connection for being idle) or changes nothing.
func repeatable(sql string, err error) bool {
	if code(err) == 4031 {
		return true
	}
	reads := strings.HasPrefix(sql, "SHOW ") || strings.HasPrefix(sql, "SELECT ")
	return reads && lost(err) && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrCorrupt)
}

// lost says that nothing more can be asked on a connection after an error.
func lost(err error) bool {
	switch code(err) {
	case 1053, 1152, 1158, 1159, 1160, 1161, 1184, 2006, 2013, 3169, 4031:
		return true
	}
	return err != nil && !isServerError(err)
}

// ask runs a statement on the connection, or on a new one if there is none. used says that it was there before.
func (c *Conn) ask(ctx context.Context, sql string) (res *result, used bool, err error) {
	if c.mu.closed {
		return nil, false, &fault{text: c.name(), cause: errClosed}
	}
	if c.mu.sess != nil && time.Since(c.mu.sess.used) > idleCheck {
		if err := c.mu.sess.run(ctx, pingTimeout, func() error { return c.mu.sess.Ping() }); err != nil {
			c.mu.sess.wire.Close()
			c.mu.sess = nil
			if ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
			c.cfg.Log.Debug("connection to MySQL has died while idle, opening it again", zap.String("server", c.cfg.address()), zap.Error(err))
		}
	}
	used = c.mu.sess != nil
	if !used {
		sess, err := c.login(ctx, true)
		if err != nil {
			return nil, false, err
		}
		if err := c.recognise(ctx, sess); err != nil {
			sess.wire.Close()
			return nil, false, err
		}
		c.mu.sess = sess
	}
	res, err = c.mu.sess.query(ctx, sql)
	if lost(err) {
		c.mu.sess.wire.Close()
		c.mu.sess = nil
	}
	return res, used, err
}

// query runs one statement on this connection. After an error that is not the server's the connection is of no use.
func (s *session) query(ctx context.Context, sql string) (*result, error) {
	var res *result
	err := s.run(ctx, queryTimeout, func() error {
		r, err := s.Execute(sql)
		if err == nil {
			res = &result{r}
		}
		return err
	})
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil, err
		}
		text := s.name + ": " + shorten(sql)
		switch {
		case isServerError(err):
			return nil, &fault{text: text, cause: err}
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded): // it is there, and busy
			return nil, &fault{text: text + ": no answer came in time", cause: err, plain: true}
		}
		return nil, networkFault(text, err)
	}
	return res, nil
}

// run calls f, which talks to the server, and ends it when ctx ends or the time is over.
func (s *session) run(ctx context.Context, timeout time.Duration, f func() error) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	defer func() {
		if r := recover(); r != nil {
			err = faultf(ErrCorrupt, "the server's answer makes no sense (%v)", r)
		}
	}()
	s.wire.SetDeadline(time.Now().Add(timeout))
	stop := context.AfterFunc(ctx, func() { s.wire.Close() })
	err = f()
	if !stop() {
		return ctx.Err()
	}
	s.wire.SetDeadline(time.Time{})
	s.used = time.Now()
	if err != nil && !isServerError(err) {
		if network := s.wire.failure(); network != nil {
			err = network
		}
	}
	return err
}

// result is the rows of a statement.
type result struct{ *mysql.Result }

func (r *result) rows() int {
	if r.Resultset == nil {
		return 0
	}
	return r.RowNumber()
}

// text returns the cell of a row by column name, in whatever case the server writes it; "" for NULL and for a column
// that is not there.
func (r *result) text(row int, columns ...string) string {
	for _, column := range columns {
		for name, i := range r.FieldNames {
			if strings.EqualFold(name, column) {
				s, err := r.GetString(row, i)
				if err != nil {
					return ""
				}
				return strings.Clone(s)
			}
		}
	}
	return ""
}

// number is text as an unsigned number, 0 when it is none.
func (r *result) number(row int, columns ...string) uint64 {
	n, _ := strconv.ParseUint(r.text(row, columns...), 10, 64)
	return n
}

// shorten cuts a statement for an error text.
func shorten(sql string) string {
	const most = 200
	if len(sql) <= most {
		return sql
	}
	return sql[:most] + "…"
}

// quote returns s as a string literal; sessions run without NO_BACKSLASH_ESCAPES.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// quoteName returns s as an identifier.
func quoteName(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }
