package it

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// badInput is a case of TestBadInput: something is wrong, and the message has to say what, in words that lead to the way out.
type badInput struct {
	name    string
	prepare func(t *testing.T, c *Connector) // makes it wrong; undone by t.Cleanup
	says    []string                         // regular expressions, each of which the output has to match
	waits   bool                             // it is no reason to give up: the message comes and the process runs on
	args    func(c *Connector) []string      // other arguments than "run worker connector"
}

// TestBadInput makes every mistake that a user can make and prints what Tidemark says to it.
func TestBadInput(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	m := rig.MySQL
	m.Exec(t, "CREATE DATABASE bad", "CREATE TABLE bad.t (id INT PRIMARY KEY, v INT)", "INSERT INTO bad.t VALUES (1,1)",
		"CREATE USER nothing@'%' IDENTIFIED BY 'x'", "GRANT SELECT ON *.* TO nothing@'%'",
		"CREATE USER noselect@'%' IDENTIFIED BY 'x'", "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO noselect@'%'")
	uuid := m.Query(t, "SELECT @@server_uuid")[0][0]
	file, pos := m.Position(t)
	global := func(name, value, restore string) func(t *testing.T, c *Connector) {
		return func(t *testing.T, _ *Connector) {
			m.Exec(t, "SET GLOBAL "+name+"="+value)
			t.Cleanup(func() { m.Exec(t, "SET GLOBAL "+name+"="+restore) })
		}
	}
	config := func(key, value string) func(t *testing.T, c *Connector) {
		return func(_ *testing.T, c *Connector) { c.Config[key] = value }
	}
	worker := func(key, value string) func(t *testing.T, c *Connector) {
		return func(_ *testing.T, c *Connector) { c.Worker[key] = value }
	}
	stored := func(text string) func(t *testing.T, c *Connector) {
		return func(t *testing.T, c *Connector) { c.PutStored(t, text) }
	}
	cases := []badInput{
		// The server.
		{name: "wrong password", prepare: config("database.password", "wrong"), says: []string{`(?i)access denied`, `tide`}},
		{name: "MySQL down", waits: true, prepare: config("database.port", strconv.Itoa(freePort(t))), says: []string{`refused`}},
		{name: "row format off", prepare: global("binlog_format", "STATEMENT", "ROW"), says: []string{`binlog_format`, `STATEMENT`, `SET (GLOBAL|PERSIST) binlog_format`}},
		{name: "row image not full", prepare: global("binlog_row_image", "MINIMAL", "FULL"), says: []string{`binlog_row_image`, `MINIMAL`, `SET (GLOBAL|PERSIST) binlog_row_image`}},
		{name: "metadata minimal", waits: true, prepare: global("binlog_row_metadata", "MINIMAL", "FULL"), says: []string{`binlog_row_metadata`, `MINIMAL`, `SET (GLOBAL|PERSIST) binlog_row_metadata`, streaming}},
		{name: "missing replication grants", prepare: func(_ *testing.T, c *Connector) {
			c.Config["database.user"], c.Config["database.password"] = "nothing", "x"
		}, says: []string{`REPLICATION SLAVE`, `REPLICATION CLIENT`, `GRANT`}},
		{name: "missing select grant", prepare: func(_ *testing.T, c *Connector) {
			c.Config["database.user"], c.Config["database.password"] = "noselect", "x"
		}, says: []string{`SELECT`, `GRANT`}},
		{name: "server id in use", prepare: func(t *testing.T, c *Connector) {
			other := rig.Connector(t, "first-user", "file", "bad\\.t")
			other.RunStreaming(t)
			c.Config["database.server.id"] = other.Config["database.server.id"]
		}, says: []string{`database\.server\.id|server id`, `first-user`}},
		{name: "a session with a row image of its own", prepare: func(t *testing.T, c *Connector) {
			// Not refused at the start, but at the row: the session has turned columns off.
			c.Config["start.position"] = fmt.Sprintf("%s:%d", file, pos)
			m.Exec(t, "SET SESSION binlog_row_image=MINIMAL", "UPDATE bad.t SET v=2 WHERE id=1")
			t.Cleanup(func() { m.Exec(t, "FLUSH BINARY LOGS") })
		}, says: []string{`bad\.t`, `binlog_row_image`, regexp.QuoteMeta(file)}},

		// Kafka.
		{name: "Kafka down", waits: true, prepare: worker("bootstrap.servers", fmt.Sprintf("127.0.0.1:%d", freePort(t))), says: []string{`(?i)kafka`, `refused`}},
		{name: "topic not allowed", prepare: func(t *testing.T, c *Connector) {
			rig.Kafka.DenyWrite(t, c.Prefix+".bad.t")
			c.Config["start.position"] = "oldest"
		}, says: []string{`(?i)authoriz`, `bad\.t`, `(?i)kafka-acls|ACL`}},
		{name: "no bootstrap servers", prepare: func(_ *testing.T, c *Connector) { delete(c.Worker, "bootstrap.servers") }, says: []string{`bootstrap\.servers`}},

		// Stored offsets.
		{name: "corrupt offset file", prepare: func(t *testing.T, c *Connector) {
			write(t, c.OffsetFile(), []byte("\xac\xed\x00\x05sr\x00\x11java.util.HashMap"))
		}, says: []string{`offsets\.dat`, `\.bak|restore|remove|delete`}},
		{
			name: "offset from another server", prepare: stored(`{"file":"mysql-bin.000002","pos":157,"gtids":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23"}`),
			says: []string{`3e11fa47-71ca-11e1-9e33-c80aa9429562`, `(?i)another server|other server|lost|not on this server`},
		},
		{name: "offset ahead of the server", prepare: stored(fmt.Sprintf(`{"file":"%s","pos":157,"gtids":"%s:1-999999"}`, file, uuid)), says: []string{`999999`}},
		{name: "offset of a file that is gone", prepare: stored(`{"file":"mysql-bin.000900","pos":157}`), says: []string{`mysql-bin\.000900`}},
		{name: "offset inside an event", prepare: stored(fmt.Sprintf(`{"file":"%s","pos":%d}`, file, pos-3)), says: []string{regexp.QuoteMeta(fmt.Sprintf("%s:%d", file, pos-3))}},
		{name: "offset of a running snapshot", prepare: stored(`{"file":"mysql-bin.000001","pos":157,"snapshot":"INITIAL"}`), says: []string{`(?i)snapshot`, `Debezium`}},
		{
			name: "no place for offsets", prepare: func(_ *testing.T, c *Connector) { delete(c.Worker, "offset.storage.file.filename") },
			says: []string{`offset\.storage\.file\.filename`, `offset\.storage\.topic`},
		},
		{name: "two places for offsets", prepare: worker("offset.storage.topic", "somewhere"), says: []string{`offset\.storage\.file\.filename`, `offset\.storage\.topic`}},

		// The configuration.
		{name: "malformed values", prepare: func(_ *testing.T, c *Connector) {
			c.Config["database.port"], c.Config["tombstones.on.delete"], c.Config["database.ssl.mode"] = "many", "perhaps", "sometimes"
		}, says: []string{`database\.port`, `many`, `tombstones\.on\.delete`, `perhaps`, `database\.ssl\.mode`, `sometimes`, `preferred`}},
		{name: "a misspelt key", waits: true, prepare: config("table.includ.list", "bad.t"), says: []string{`table\.includ\.list`, `table\.include\.list`}},
		{name: "no topic prefix", prepare: func(_ *testing.T, c *Connector) { delete(c.Config, "topic.prefix") }, says: []string{`topic\.prefix`}},
		{name: "a mode that is not built", prepare: config("snapshot.mode", "initial"), says: []string{`snapshot\.mode`, `initial`, `no_data`}},
		{name: "an option that is not built", prepare: config("post.processors", "reselect"), says: []string{`post\.processors`, `reselect`}},
		{name: "a pattern that RE2 cannot take", prepare: config("table.include.list", `bad\.(?!x).*`), says: []string{`table\.include\.list`, regexp.QuoteMeta(`(?!x)`)}},
		{name: "both include and exclude", prepare: config("table.exclude.list", "bad.x"), says: []string{`table\.include\.list`, `table\.exclude\.list`}},
		{name: "another connector class", prepare: config("connector.class", "io.debezium.connector.postgresql.PostgresConnector"), says: []string{`connector\.class`, `PostgresConnector`}},
		{name: "a connector file that is not there", args: func(c *Connector) []string {
			return []string{"run", filepath.Join(c.Folder, "worker.properties"), filepath.Join(c.Folder, "missing.json")}
		}, says: []string{`missing\.json`}},
		{name: "a connector file that is not JSON", prepare: func(t *testing.T, c *Connector) {
			write(t, filepath.Join(c.Folder, "torn.json"), []byte(`{"name": "x", "config": {`))
		}, args: func(c *Connector) []string {
			return []string{"run", filepath.Join(c.Folder, "worker.properties"), filepath.Join(c.Folder, "torn.json")}
		}, says: []string{`torn\.json`}},
	}
	for i, b := range cases {
		t.Run(strings.ReplaceAll(b.name, " ", "_"), func(t *testing.T) { b.run(t, rig, i) })
	}
	// Last, since they need the server in another state.
	t.Run("binlog_purged", func(t *testing.T) {
		m.Exec(t, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS", "INSERT INTO bad.t VALUES (9,9)", "FLUSH BINARY LOGS")
		now, _ := m.Position(t)
		m.Exec(t, "PURGE BINARY LOGS TO '"+now+"'")
		badInput{prepare: stored(fmt.Sprintf(`{"file":"%s","pos":157,"gtids":"%s:1"}`, file, uuid)), says: []string{`(?i)purged`, uuid}}.run(t, rig, 900)
	})
	t.Run("binlog_off", func(t *testing.T) {
		off := StartMySQL(t, "--skip-log-bin")
		off.Exec(t, "CREATE DATABASE bad", "CREATE TABLE bad.t (id INT PRIMARY KEY)")
		badInput{prepare: config("database.port", strconv.Itoa(off.Port)), says: []string{`log_bin|log-bin|binary log`}}.run(t, rig, 901)
	})
}

func (b badInput) run(t *testing.T, rig *Rig, i int) {
	c := rig.Connector(t, fmt.Sprintf("bad%d", i), "file", "bad\\.t")
	if b.prepare != nil {
		b.prepare(t, c)
	}
	worker, connector := c.Files(t)
	arguments := []string{"run", worker, connector}
	if b.args != nil {
		arguments = b.args(c)
	}
	before, _ := os.ReadFile(c.OffsetFile())
	p := Run(t, arguments...)
	if b.waits {
		for _, says := range b.says {
			p.Await(t, time.Minute, says)
		}
		time.Sleep(3 * time.Second) // several attempts
		if p.Ended() {
			t.Errorf("it ended with code %d; waiting would have healed this", p.code)
		}
		if n := strings.Count(strings.TrimSpace(p.Output()), "\n") + 1; n > 12 {
			t.Errorf("%d lines about it within seconds", n)
		}
		p.Kill()
	} else if code := p.Wait(t, time.Minute); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	said := p.Output()
	t.Logf("says:\n%s", said)
	for _, says := range b.says {
		if !regexp.MustCompile(says).MatchString(said) {
			t.Errorf("it does not say %q", says)
		}
	}
	for _, noise := range []string{"panic:", "goroutine ", "%!"} {
		if strings.Contains(said, noise) {
			t.Errorf("it says %q", noise)
		}
	}
	if secret := c.Config["database.password"]; len(secret) > 3 && secret != "tide" && strings.Contains(said, secret+`"`) {
		t.Errorf("it tells the password")
	}
	if after, _ := os.ReadFile(c.OffsetFile()); len(before) > 0 && string(after) != string(before) {
		t.Errorf("a refused start has changed the offset file")
	}
}
