package it

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// continuity is a source with a replica, one address that leads to either, and connectors that read there.
type continuity struct {
	rig             *Rig
	source, replica *MySQL
	rows            int // inserted into c.t so far
}

// TestContinuity takes a source and its replica through what breaks the thread of a binlog: failovers, lost transactions, purges, resets,
// with GTIDs and without. Where it can be proven that nothing is missing the stream goes on, else it stops and says what is missing. Each step
// begins where the one before has left the servers.
func TestContinuity(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	c := &continuity{rig: rig, source: rig.MySQL, replica: launchMySQL(t, append(gtidFlags, "--server-id=223355")...)}
	c.replica.wait(t)
	c.replicate(t)
	for _, step := range []struct {
		name string
		run  func(*continuity, *testing.T)
	}{
		{"a server that turns us away is waited for", (*continuity).turnedAway},
		{"a lagging replica is waited for, and one that has all goes on", (*continuity).failover},
		{"a server that lacks transactions stops the stream", (*continuity).phantoms},
		{"a file number beyond 999999", (*continuity).sevenDigits},
		{"an empty server, and a start on one with purged GTIDs", (*continuity).floor},
		{"nothing is repeated after a quiet stop", (*continuity).quietStop},
		{"what is needed is purged", (*continuity).purged},
		{"the server is reset", (*continuity).reset},
		{"GTIDs are given a second time", (*continuity).numbersAgain},
		{"without GTIDs another server is refused", (*continuity).otherServerByFile},
		{"without GTIDs a binlog that was written anew is refused", (*continuity).rewrittenFile},
	} {
		if !t.Run(strings.ReplaceAll(step.name, " ", "_"), func(t *testing.T) { step.run(c, t) }) {
			return // what follows stands on it
		}
	}
}

// replicate makes the replica one of the source.
func (c *continuity) replicate(t *testing.T) {
	t.Helper()
	address, err := c.source.container.c.ContainerIP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.source.Exec(t, "CREATE USER repl@'%' IDENTIFIED BY 'repl'", "GRANT REPLICATION SLAVE ON *.* TO repl@'%'",
		"CREATE DATABASE c", "CREATE TABLE c.t (id INT PRIMARY KEY)")
	c.replica.Exec(t, "RESET BINARY LOGS AND GTIDS",
		"CHANGE REPLICATION SOURCE TO SOURCE_HOST='"+address+"', SOURCE_PORT=3306, SOURCE_USER='repl', SOURCE_PASSWORD='repl', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
		"START REPLICA")
	c.caughtUp(t)
}

// caughtUp waits until the replica has all that the source has.
func (c *continuity) caughtUp(t *testing.T) {
	t.Helper()
	has := c.source.Query(t, "SELECT @@GLOBAL.gtid_executed")[0][0]
	if c.replica.Query(t, "SELECT WAIT_FOR_EXECUTED_GTID_SET('"+has+"', 30)")[0][0] != "0" {
		t.Fatal("the replica does not catch up")
	}
}

func (c *continuity) insert(t *testing.T, m *MySQL) {
	t.Helper()
	c.rows++
	m.Exec(t, fmt.Sprintf("INSERT INTO c.t VALUES (%d)", c.rows))
}

// leadTo has the address lead to a server, as after a failover: open connections end.
func (c *continuity) leadTo(m *MySQL) {
	c.rig.Link.SetTarget(m.Addr())
	c.rig.Link.Cut()
}

func (c *continuity) connector(t *testing.T, name string) *Connector {
	t.Helper()
	n := c.rig.Connector(t, name, "file", `c\.t`)
	n.Config["topic.creation.default.partitions"] = "1"
	n.Config["connect.keep.alive.interval.ms"] = "1000"
	return n
}

// uuid is the server's.
func uuid(t *testing.T, m *MySQL) string {
	t.Helper()
	return m.Query(t, "SELECT @@server_uuid")[0][0]
}

// refuses requires that the process ends with code 1 and says all of these, and nothing was sent meanwhile.
func refuses(t *testing.T, c *Connector, p *Process, records int, expressions ...string) {
	t.Helper()
	if code := p.Wait(t, 40*time.Second); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	out := p.Output()
	for _, e := range expressions {
		if !regexp.MustCompile(e).MatchString(out) {
			t.Errorf("it does not say %q", e)
		}
	}
	t.Log(tail(out, 1))
	if got := c.Records(t); len(got) != records {
		t.Errorf("%d records, want %d", len(got), records)
	}
}

// ids requires that a connector has sent these rows once each, in order.
func ids(t *testing.T, c *Connector, from, to int) {
	t.Helper()
	c.AwaitCount(t, time.Minute, int64(to-from+1))
	got := c.Records(t)
	if len(got) != to-from+1 {
		t.Errorf("%d records, want rows %d to %d", len(got), from, to)
	}
	for i, r := range got {
		if id := column(t, r, "id"); id != strconv.Itoa(from+i) {
			t.Fatalf("record %d is row %s, want %d: lost, repeated or reordered", i, id, from+i)
		}
	}
}

func (c *continuity) failover(t *testing.T) {
	n := c.connector(t, "failover")
	p := n.RunStreaming(t)
	first := c.rows + 1
	c.insert(t, c.source)
	c.insert(t, c.source)
	n.AwaitCount(t, time.Minute, 2)
	c.caughtUp(t)
	c.replica.Exec(t, "STOP REPLICA SQL_THREAD", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY=3600", "START REPLICA SQL_THREAD")
	c.insert(t, c.source)
	ids(t, n, first, c.rows)
	c.leadTo(c.replica)
	p.Await(t, time.Minute, `has not executed yet what the stored offset names: `+uuid(t, c.source)+`:\d+\. It is a replica of [\d.]+ that still has to apply .*the stream waits`)
	if len(n.Records(t)) != 3 {
		t.Error("something was sent meanwhile")
	}
	c.replica.Exec(t, "STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY=0", "START REPLICA")
	c.caughtUp(t)
	c.replica.Exec(t, "STOP REPLICA", "RESET REPLICA ALL") // it is promoted
	c.insert(t, c.replica)
	ids(t, n, first, c.rows)
	if got := p.Times(`still has to apply`); got != 1 {
		t.Errorf("waiting was said %d times, want once", got)
	}
	p.Terminate(t)
}

func (c *continuity) phantoms(t *testing.T) {
	n := c.connector(t, "phantoms")
	p := n.RunStreaming(t)
	first := c.rows + 1
	c.insert(t, c.replica)
	ids(t, n, first, c.rows)
	// Back to the server that has nothing of what was done since, and replicates from nobody.
	c.leadTo(c.source)
	id := uuid(t, c.replica)
	lacks := `has never executed: ` + id + `:1-\d+\..*GTID_SUBSET\('` + id + `:1-\d+', @@GLOBAL.gtid_executed\).*delete the connector's stored offset`
	refuses(t, n, p, 1, lacks)
	// It is no matter of the moment, and no storm of attempts.
	again := n.Run(t)
	refuses(t, n, again, 1, lacks)
	if got := strings.Count(again.Output(), "interrupted"); got != 0 {
		t.Errorf("%d attempts", got)
	}
	c.leadTo(c.replica)
	p = n.RunStreaming(t)
	c.insert(t, c.replica)
	ids(t, n, first, c.rows)
	p.Terminate(t)
}

func (c *continuity) sevenDigits(t *testing.T) {
	c.leadTo(c.source)
	c.source.Exec(t, "RESET BINARY LOGS AND GTIDS TO 999998")
	n := c.connector(t, "digits")
	p := n.RunStreaming(t)
	first := c.rows + 1
	for range 3 {
		c.insert(t, c.source)
		c.source.Exec(t, "FLUSH BINARY LOGS")
	}
	c.insert(t, c.source)
	ids(t, n, first, c.rows)
	n.AwaitDrained(t, time.Minute)
	if file, _ := c.source.Position(t); file != "mysql-bin.1000001" {
		t.Errorf("the binlog is in %s", file)
	}
	p.Terminate(t)
	p = n.RunStreaming(t)
	c.insert(t, c.source)
	ids(t, n, first, c.rows)
	p.Terminate(t)
}

func (c *continuity) floor(t *testing.T) {
	c.source.Exec(t, "RESET BINARY LOGS AND GTIDS")
	n := c.connector(t, "empty")
	p := n.RunStreaming(t) // gtid_executed is ''
	first := c.rows + 1
	c.insert(t, c.source)
	ids(t, n, first, c.rows)
	p.Terminate(t)
	p = n.RunStreaming(t) // exactly at the executed set
	c.insert(t, c.source)
	ids(t, n, first, c.rows)
	p.Terminate(t)

	file, _ := c.source.Position(t)
	c.source.Exec(t, "FLUSH BINARY LOGS", "PURGE BINARY LOGS TO '"+strings.Replace(file, "1", "2", 1)+"'")
	purged := c.source.Query(t, "SELECT @@GLOBAL.gtid_purged")[0][0]
	if purged == "" {
		t.Fatal("nothing is purged")
	}
	n = c.connector(t, "floor")
	n.Config["start.position"] = "oldest"
	p = n.RunStreaming(t)
	first = c.rows + 1
	c.insert(t, c.source)
	ids(t, n, first, c.rows)
	n.AwaitDrained(t, time.Minute)
	p.Terminate(t)
	if executed := c.source.Query(t, "SELECT @@GLOBAL.gtid_executed")[0][0]; !strings.Contains(n.Stored(t), executed) {
		t.Errorf("stored is %s, executed %s: the purged ones are missing", n.Stored(t), executed)
	}
	p = n.RunStreaming(t)
	c.insert(t, c.source)
	ids(t, n, first, c.rows)
	p.Terminate(t)
}

func (c *continuity) quietStop(t *testing.T) {
	n := c.connector(t, "quiet")
	p := n.RunStreaming(t)
	first := c.rows + 1
	c.rows += 3
	c.source.Exec(t, fmt.Sprintf("INSERT INTO c.t VALUES (%d),(%d),(%d)", first, first+1, first+2))
	ids(t, n, first, c.rows)
	n.AwaitDrained(t, time.Minute)
	p.Terminate(t)
	p = n.RunStreaming(t)
	time.Sleep(1500 * time.Millisecond) // some heartbeats
	ids(t, n, first, c.rows)
	p.Terminate(t)
}

func (c *continuity) purged(t *testing.T) {
	n := c.connector(t, "purged")
	p := n.RunStreaming(t)
	first := c.rows + 1
	c.insert(t, c.source)
	ids(t, n, first, c.rows)
	p.Terminate(t)
	c.insert(t, c.source)
	missing := c.source.Query(t, "SELECT @@GLOBAL.gtid_executed")[0][0]
	c.source.Exec(t, "FLUSH BINARY LOGS")
	file, _ := c.source.Position(t)
	c.source.Exec(t, "PURGE BINARY LOGS TO '"+file+"'")
	last := missing[strings.LastIndexAny(missing, "-:")+1:]
	refuses(t, n, n.Run(t), 1, `has purged binlogs with transactions that come after the stored offset: `+uuid(t, c.source)+`:`+last+`\. Choices: .*binlog_expire_logs_seconds`)
}

func (c *continuity) reset(t *testing.T) {
	n := c.connector(t, "reset")
	p := n.RunStreaming(t)
	first := c.rows + 1
	c.insert(t, c.source)
	ids(t, n, first, c.rows)
	// The stream is open. MySQL says nothing and sends nothing of what is written now, or it says that its log cannot be read.
	c.source.Exec(t, "RESET BINARY LOGS AND GTIDS")
	time.Sleep(time.Second)
	c.rig.Link.Cut()
	refuses(t, n, p, 1, `has never executed: `+uuid(t, c.source)+`:1-\d+\. It is its own uuid: .*RESET BINARY LOGS AND GTIDS`)
}

// numbersAgain: the server was reset while nobody looked, and has come beyond the stored set since. The set alone shows nothing of it.
func (c *continuity) numbersAgain(t *testing.T) {
	behind := c.connector(t, "numbers")
	p := behind.RunStreaming(t)
	first := c.rows + 1
	c.insert(t, c.source)
	ids(t, behind, first, c.rows)
	behind.AwaitDrained(t, time.Minute)
	p.Terminate(t)
	time.Sleep(1100 * time.Millisecond) // the time of a file is in seconds
	c.source.Exec(t, "RESET BINARY LOGS AND GTIDS")
	for range 6 {
		c.insert(t, c.source)
	}
	refuses(t, behind, behind.Run(t), 1, `begun at .*(twice|second time)`)
}

func (c *continuity) otherServerByFile(t *testing.T) {
	for _, m := range []*MySQL{c.source, c.replica} {
		m.Exec(t, "SET GLOBAL gtid_mode=ON_PERMISSIVE", "SET GLOBAL gtid_mode=OFF_PERMISSIVE", "SET GLOBAL gtid_mode=OFF", "RESET BINARY LOGS AND GTIDS")
	}
	n := c.connector(t, "byfile")
	p := n.RunStreaming(t)
	first := c.rows + 1
	c.insert(t, c.source)
	ids(t, n, first, c.rows)
	for range 3 { // the same file, and longer than the position
		c.insert(t, c.replica)
	}
	c.leadTo(c.replica)
	refuses(t, n, p, 1, `is from the server with server_uuid `+uuid(t, c.source)+`; MySQL at [\d.:]+ is `+uuid(t, c.replica)+`, and without GTIDs`)
	c.leadTo(c.source)
}

func (c *continuity) rewrittenFile(t *testing.T) {
	n := c.connector(t, "rewritten")
	c.source.Exec(t, "RESET BINARY LOGS AND GTIDS")
	p := n.RunStreaming(t)
	first := c.rows + 1
	c.insert(t, c.source)
	ids(t, n, first, c.rows)
	n.AwaitDrained(t, time.Minute)
	_, pos := c.source.Position(t)
	p.Terminate(t)
	time.Sleep(1100 * time.Millisecond)
	c.source.Exec(t, "RESET BINARY LOGS AND GTIDS")
	c.insert(t, c.source)
	if _, now := c.source.Position(t); now != pos {
		t.Fatalf("the position is %d, and was %d", now, pos)
	}
	c.insert(t, c.source)
	refuses(t, n, n.Run(t), 1, `binlog file mysql-bin.000001 was begun at .*and the one of the stored offset at .*RESET BINARY LOGS AND GTIDS`)
}

// turnedAway disturbs a running connector by what a server says to its logins and to its connections. It waits, says once why, and goes on by
// itself.
func (c *continuity) turnedAway(t *testing.T) {
	m, rig := c.source, c.rig
	n := c.connector(t, "away")
	p := n.RunStreaming(t)
	first := c.rows + 1
	insert := func(t *testing.T) {
		t.Helper()
		c.insert(t, m)
	}
	cut := func(t *testing.T) {
		t.Helper()
		if rig.Link.Cut() == 0 {
			t.Error("there was no connection to cut")
		}
	}
	insert(t)
	ids(t, n, first, c.rows)
	for _, trouble := range []struct {
		name string
		said string // "": nothing has to be
		make func(t *testing.T)
		mend func(t *testing.T)
	}{
		{"the account is locked", "the account is locked: ALTER USER", func(t *testing.T) {
			m.Exec(t, "ALTER USER tide@'%' ACCOUNT LOCK")
			cut(t)
		}, func(t *testing.T) { m.Exec(t, "ALTER USER tide@'%' ACCOUNT UNLOCK") }},
		{"the password has expired", "the password has expired: ALTER USER", func(t *testing.T) {
			m.Exec(t, "ALTER USER tide@'%' PASSWORD EXPIRE")
			cut(t)
		}, func(t *testing.T) { m.Exec(t, "ALTER USER tide@'%' IDENTIFIED BY 'tide'") }},
		{"a privilege is revoked", "lacks the privilege REPLICATION SLAVE", func(t *testing.T) {
			m.Exec(t, "REVOKE REPLICATION SLAVE ON *.* FROM tide@'%'")
			cut(t)
		}, func(t *testing.T) { m.Exec(t, "GRANT REPLICATION SLAVE ON *.* TO tide@'%'") }},
		{"there are too many connections", "Too many connections", func(t *testing.T) {
			root, err := m.connect(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { root.Close() })
			if _, err := root.Execute("SET GLOBAL max_connections=1"); err != nil {
				t.Fatal(err)
			}
			cut(t)
			eventually(t, time.Minute, "an attempt", func() error {
				if !strings.Contains(p.Output(), "Too many connections") {
					return errors.New("none")
				}
				return nil
			})
			if _, err := root.Execute("SET GLOBAL max_connections=151"); err != nil {
				t.Fatal(err)
			}
		}, func(*testing.T) {}},
		{"the server ends the stream", "", func(t *testing.T) {
			for _, id := range m.Query(t, "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'") {
				m.Exec(t, "KILL "+id[0])
			}
		}, func(*testing.T) {}},
		{"the process is stopped for longer than three heartbeats", "", func(t *testing.T) {
			p.Signal(t, syscall.SIGSTOP)
			insert(t)
			time.Sleep(4 * time.Second)
		}, func(t *testing.T) { p.Signal(t, syscall.SIGCONT) }},
	} {
		t.Run(strings.ReplaceAll(trouble.name, " ", "_"), func(t *testing.T) {
			from := len(p.Output())
			trouble.make(t)
			if trouble.said != "" {
				eventually(t, time.Minute, "saying why", func() error {
					if p.Ended() || !strings.Contains(p.Output()[from:], trouble.said) {
						return fmt.Errorf("ended: %v; it said last:\n%s", p.Ended(), tail(p.Output()[from:], 3))
					}
					return nil
				})
			}
			trouble.mend(t)
			insert(t)
			ids(t, n, first, c.rows)
			said := strings.TrimSpace(p.Output()[from:])
			if n := strings.Count(said, "\n") + 1; n > 5 {
				t.Errorf("%d lines about one trouble:\n%s", n, said)
			}
		})
	}
	p.Terminate(t)
	// At the start nobody is changing anything, and the mistake is told at once.
	wrong := c.connector(t, "wrong")
	wrong.Config["database.password"] = "mistyped"
	refuses(t, wrong, wrong.Run(t), 0, `refuses the login of user 'tide' \(check database.user and database.password`)
	// A replica has our server id: its stream is left alone, and it is named.
	p = n.RunStreaming(t)
	other := c.connector(t, "clash")
	other.Config["database.server.id"] = n.Config["database.server.id"]
	refuses(t, other, other.Run(t), 0, `database.server.id \d+ is in use on MySQL at [\d.:]+ by another replica \(report host "away", uuid`)
	insert(t)
	ids(t, n, first, c.rows)
	p.Terminate(t)
}
