package server

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	fakemysql "github.com/go-mysql-org/go-mysql/server"
)

// A connection that the server has ended while nobody asked is opened again, unseen.
func TestConnIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := f.connect(t)
		f.cut()
		time.Sleep(8 * time.Hour)
		if _, err := c.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.logins != 2 {
			t.Errorf("%d logins", f.logins)
		}
		f.cut() // while in use: what only asks is asked again
		if _, err := c.Info(t.Context()); err != nil || f.logins != 3 {
			t.Errorf("cut: %v, %d logins", err, f.logins)
		}
		f.cut() // what may change something is not
		if err := c.Execute(t.Context(), "SET @a=1"); !Transient(err) {
			t.Errorf("cut: %v", err)
		}
		if err := c.Execute(t.Context(), "SET @a=1"); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Info(t.Context()); err == nil {
			t.Error("a closed connection answers")
		}
	})
}

// sessions set up what the texts of definitions depend on.
func TestSessionSetup(t *testing.T) {
	f := newFake()
	f.connect(t)
	if all := strings.Join(f.asked, "\n"); !strings.Contains(all, "SET NAMES utf8mb4") || !strings.Contains(all, "sql_mode=''") || !strings.Contains(all, "net_write_timeout=600") {
		t.Error(all)
	}
}

// TestInitialStatements: database.initial.statements are run at the beginning of each connection that asks, before our
// own settings, and not on those that read the binlog. One that is refused stops the login by its name.
func TestInitialStatements(t *testing.T) {
	f := newFake()
	f.stream = func(c *fakemysql.Conn) { io.Copy(io.Discard, c.Conn.Conn) }
	cfg := f.config()
	cfg.InitialStatements = []string{"SET SESSION wait_timeout=2000", "SET @a=1"}
	c, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	count := func(what string) (n int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, sql := range f.asked {
			if sql == what {
				n++
			}
		}
		return n
	}
	if f.asked[0] != "SET SESSION wait_timeout=2000" || f.asked[1] != "SET @a=1" || f.asked[2] != "SET NAMES utf8mb4" {
		t.Errorf("asked %q", f.asked)
	}
	s, err := c.Dump(t.Context(), DumpRequest{ServerID: 7, Identity: "c1", From: DumpFrom{File: "mysql-bin.000003", Pos: 4}})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if n := count("SET @a=1"); n != 1 {
		t.Errorf("%d times with a stream", n)
	}
	f.cut()
	if _, err := c.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count("SET @a=1"); n != 2 {
		t.Errorf("%d times after another connection", n)
	}
	f.fail["SET @a=1"] = mysql.NewError(1193, "Unknown system variable")
	if _, err := Connect(t.Context(), cfg); !errors.Is(err, ErrSetup) || Transient(err) || !strings.Contains(err.Error(), "database.initial.statements: SET @a=1") {
		t.Errorf("a statement that fails: %v", err)
	}
}

// TestServerEndedTheIdleConnection: after wait_timeout MySQL answers with error 4031 and is gone. The statement has not been begun, so even one
// that changes something is run again; a second such answer is seen.
func TestServerEndedTheIdleConnection(t *testing.T) {
	for times, transient := range map[int]bool{1: false, 2: true} {
		f := newFake()
		c := f.connect(t)
		left := times
		f.onQuery = func(f *fake, query string) {
			delete(f.fail, "SET @a")
			if strings.HasPrefix(query, "SET @a") && left > 0 {
				left--
				f.fail["SET @a"] = mysql.NewError(4031, "The client was disconnected by the server because of inactivity.")
			}
		}
		err := c.Execute(t.Context(), "SET @a=1")
		if (err != nil) != transient || Transient(err) != transient || f.logins != 2 {
			t.Errorf("%d times: %v, %d logins", times, err, f.logins)
		}
		if err := c.Execute(t.Context(), "SET @a=1"); err != nil {
			t.Errorf("%d times, afterwards: %v", times, err)
		}
	}
}

// TestPasswordIsAskedForAtEachLogin: a new password is taken up without a restart. While it cannot be read, the last one that could is tried.
func TestPasswordIsAskedForAtEachLogin(t *testing.T) {
	f := newFake()
	cfg := f.config()
	password, failed := "old", error(nil)
	cfg.ReadPassword = func() (string, error) { return password, failed }
	_, err := Connect(t.Context(), cfg)
	if !errors.Is(err, ErrAccess) || !WrongPassword(err) || strings.Contains(err.Error(), "old") {
		t.Fatalf("wrong password: %v", err)
	}
	password = "pw"
	c, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	password = "another"
	if _, err := c.Info(t.Context()); err != nil {
		t.Errorf("a connection that is there: %v", err)
	}
	f.cut()
	if _, err := c.Info(t.Context()); !WrongPassword(err) {
		t.Errorf("a new connection: %v", err)
	}
	failed = errors.New("open /run/secrets/db: no such file or directory")
	if _, err := c.Info(t.Context()); err != nil {
		t.Errorf("with the password of before: %v", err)
	}
}

// TestAddressLeadsToAnotherServer: what was proven of one server says nothing of the next one behind the same address, in a failover or by a
// balancer. No question and no stream goes to another server unseen.
func TestAddressLeadsToAnotherServer(t *testing.T) {
	for name, second := range map[string]func(c *Conn) error{
		"question": func(c *Conn) error { _, err := c.BinaryLogs(t.Context()); return err },
		"stream": func(c *Conn) error {
			_, err := c.Dump(t.Context(), DumpRequest{ServerID: 7, Identity: "c1", From: DumpFrom{File: "mysql-bin.000003", Pos: 4}})
			return err
		},
		"tip": func(c *Conn) error { _, _, err := c.Tip(t.Context()); return err },
	} {
		f := newFake()
		c := f.connect(t)
		if _, err := c.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.cut()
		if err := second(c); errors.Is(err, ErrMoved) {
			t.Errorf("%s: the same server: %v", name, err)
		}
		f.mu.Lock()
		f.vars["server_uuid"] = "00000000-0000-0000-0000-00000000000b"
		f.registered = nil
		f.mu.Unlock()
		if name != "stream" { // which is another connection in any case; the one that asks may still be the old server's
			f.cut()
		}
		if err := second(c); !errors.Is(err, ErrMoved) || !Transient(err) || !strings.Contains(err.Error(), "server_uuid 00000000-0000-0000-0000-00000000000b, before 00000000-0000-0000-0000-00000000000a") {
			t.Errorf("%s: %v", name, err)
		}
		if len(f.registered) != 0 {
			t.Errorf("%s: the other server was asked for its binlog", name)
		}
	}
}

func TestTip(t *testing.T) {
	for _, version := range []string{"9.7.0", "8.0.36"} {
		f := newFake()
		if version != "9.7.0" {
			f.fail["SHOW BINARY LOG STATUS"] = mysql.NewError(1064, "You have an error in your SQL syntax")
		}
		c := f.connect(t)
		c.Close()
		if file, pos, err := c.Tip(t.Context()); err != nil || file != "mysql-bin.000003" || pos != 900 {
			t.Errorf("%s: %s:%d %v", version, file, pos, err)
		}
	}
}
