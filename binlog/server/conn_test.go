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
		f.cut() // while in use: the error is seen, the next question works
		if _, err := c.Info(t.Context()); !Transient(err) {
			t.Errorf("cut: %v", err)
		}
		if _, err := c.Info(t.Context()); err != nil {
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
	if _, err := c.Info(t.Context()); err == nil {
		t.Error("the connection is still there")
	}
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
