package it

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Rig is a MySQL, a Kafka, proxies in front of both, and what is needed to run Tidemark between them.
type Rig struct {
	MySQL *MySQL
	Kafka *Kafka
	Link  *Proxy // in front of MySQL; the one in front of Kafka is Kafka.Proxy; nil on the host itself
}

// NewRig starts both servers, MySQL with these flags.
func NewRig(t testing.TB, flags ...string) *Rig {
	t.Helper()
	return newRigWith(t, broker{}, flags...)
}

// newRigWith is NewRig with another broker than the usual one.
func newRigWith(t testing.TB, b broker, flags ...string) *Rig {
	t.Helper()
	Binary(t)
	Image(t, "engine")
	r := &Rig{MySQL: launchMySQL(t, flags...), Kafka: b.launch(t)}
	r.MySQL.wait(t)
	r.Kafka.wait(t)
	r.Link = NewProxy(t, r.MySQL.Addr())
	return r
}

// NewRigOnHost starts both servers, MySQL with these flags, so that they can be measured with: on the host's own network, without
// proxies, and Kafka with a usual JVM and its log in memory. They keep nothing over a restart.
func NewRigOnHost(t testing.TB, flags ...string) *Rig {
	t.Helper()
	Binary(t)
	Image(t, "engine")
	r := &Rig{MySQL: launchMySQLOnHost(t, flags...), Kafka: launchKafkaOnHost(t)}
	r.MySQL.wait(t)
	r.Kafka.wait(t)
	return r
}

// Connector is one connector with its worker: files in a folder of its own.
type Connector struct {
	rig    *Rig
	Name   string
	Prefix string
	Folder string
	Store  string // "file" or "topic"
	Worker Properties
	Config Properties
}

// Connector makes the files for a connector that captures these tables ("db.table", a regular expression list) and keeps its offset
// in a file or a topic of its own. Both servers are reached through their proxies, where they have any. Events are JSON without
// schemas.
func (r *Rig) Connector(t testing.TB, name, store, tables string) *Connector {
	t.Helper()
	c := &Connector{rig: r, Name: name, Prefix: name, Folder: t.TempDir(), Store: store}
	port, brokers := r.MySQL.Port, r.Kafka.Addr()
	if r.Link != nil {
		port, brokers = r.Link.Port(), r.Kafka.Proxy.Addr()
	}
	c.Worker = Properties{
		"bootstrap.servers":              brokers,
		"key.converter":                  "org.apache.kafka.connect.json.JsonConverter",
		"value.converter":                "org.apache.kafka.connect.json.JsonConverter",
		"key.converter.schemas.enable":   "false",
		"value.converter.schemas.enable": "false",
	}
	switch store {
	case "file":
		c.Worker["offset.storage.file.filename"] = c.OffsetFile()
	case "topic":
		c.Worker["offset.storage.topic"] = c.OffsetTopic()
		c.Worker["offset.storage.partitions"] = "5"
		c.Worker["offset.storage.replication.factor"] = "1"
		c.Worker["group.id"] = name
	default:
		t.Fatalf("store %q", store)
	}
	c.Config = Properties{
		"connector.class":                           "io.debezium.connector.mysql.MySqlConnector",
		"tasks.max":                                 "1",
		"database.hostname":                         "127.0.0.1",
		"database.port":                             strconv.Itoa(port),
		"database.user":                             "tide",
		"database.password":                         "tide",
		"database.server.id":                        strconv.Itoa(1000 + int(crc32.ChecksumIEEE([]byte(name))%1_000_000_000)),
		"topic.prefix":                              c.Prefix,
		"table.include.list":                        tables,
		"snapshot.mode":                             "no_data",
		"include.schema.changes":                    "false",
		"topic.creation.default.partitions":         "3",
		"topic.creation.default.replication.factor": "1",
	}
	return c
}

// OffsetFile is the path of the connector's offset file.
func (c *Connector) OffsetFile() string { return filepath.Join(c.Folder, "offsets.dat") }

// OffsetTopic is the name of the connector's offsets topic.
func (c *Connector) OffsetTopic() string { return "offsets-" + c.Name }

// Files writes the worker's and the connector's file and returns their paths.
func (c *Connector) Files(t testing.TB) (worker, connector string) {
	t.Helper()
	return c.Worker.WriteProperties(t, filepath.Join(c.Folder, "worker.properties")),
		c.Config.WriteConnector(t, filepath.Join(c.Folder, c.Name+".json"), c.Name)
}

// Run starts "tidemark run" with the connector's files.
func (c *Connector) Run(t testing.TB) *Process {
	t.Helper()
	worker, connector := c.Files(t)
	return Run(t, "run", worker, connector)
}

// RunStreaming starts it and waits until it says that it streams.
func (c *Connector) RunStreaming(t testing.TB) *Process {
	t.Helper()
	p := c.Run(t)
	p.Await(t, 60*time.Second, streaming)
	return p
}

// streaming is what Tidemark says when a connector has begun to read.
const streaming = `"msg":"streaming"`

// Stored is the connector's offset as it is in its store now, as text; "" when there is none.
func (c *Connector) Stored(t testing.TB) string {
	t.Helper()
	if c.Store == "file" {
		entries, err := ReadOffsetFile(c.OffsetFile())
		if err != nil {
			t.Fatal(err)
		}
		return entries[OffsetKey(c.Name, c.Prefix)]
	}
	all := c.StoredOnTopic(t)
	if len(all) == 0 {
		return ""
	}
	return string(all[len(all)-1].Value)
}

// StoredOnTopic is every offset that was ever stored on the connector's offsets topic.
func (c *Connector) StoredOnTopic(t testing.TB) []Message {
	t.Helper()
	var mine []Message
	for _, m := range c.rig.Kafka.Read(t, c.OffsetTopic()) {
		if string(m.Key) == OffsetKey(c.Name, c.Prefix) {
			mine = append(mine, m)
		}
	}
	return mine
}

// PutStored puts an offset into the connector's store, as an operator or another program would while Tidemark is down.
func (c *Connector) PutStored(t testing.TB, offset string) {
	t.Helper()
	if c.Store == "file" {
		WriteOffsetFile(t, c.OffsetFile(), OffsetKey(c.Name, c.Prefix), offset)
		return
	}
	c.rig.Kafka.Produce(t, c.OffsetTopic(), []byte(OffsetKey(c.Name, c.Prefix)), []byte(offset))
}

// AwaitDrained waits until the stored offset is the end of the server's binlog, which nothing may write to meanwhile: everything
// before it is then acknowledged by Kafka (I1), filtered rows and empty transactions included (I8).
func (c *Connector) AwaitDrained(t testing.TB, timeout time.Duration) {
	t.Helper()
	file, pos := c.rig.MySQL.Position(t)
	eventually(t, timeout, "draining "+c.Name, func() error {
		text := c.Stored(t)
		if text == "" {
			return errors.New("no offset is stored")
		}
		s, err := ParseStored([]byte(text), time.Time{})
		if err != nil {
			return err
		}
		if s.File != file || s.Pos != pos || s.Event != 0 || s.Row != 0 {
			return fmt.Errorf("stored is %s, the binlog's end is %s:%d", text, file, pos)
		}
		return nil
	})
}

// Records are the connector's data records.
func (c *Connector) Records(t testing.TB) []Message { return c.rig.Kafka.Read(t, c.Prefix+".") }

// AwaitCount waits until the connector's topics hold at least n records.
func (c *Connector) AwaitCount(t testing.TB, timeout time.Duration, n int64) {
	t.Helper()
	admin := c.rig.Kafka.admin(t)
	defer admin.Close()
	eventually(t, timeout, fmt.Sprintf("%d records in %s.*", n, c.Prefix), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		topics, err := admin.ListTopics(ctx)
		if err != nil {
			return err
		}
		var names []string
		for _, name := range topics.Names() {
			if len(name) > len(c.Prefix) && name[:len(c.Prefix)+1] == c.Prefix+"." {
				names = append(names, name)
			}
		}
		var have int64
		if len(names) > 0 {
			ends, err := admin.ListEndOffsets(ctx, names...)
			if err != nil {
				return err
			}
			for _, partitions := range ends {
				for _, p := range partitions {
					have += max(p.Offset, 0)
				}
			}
		}
		if have < n {
			return fmt.Errorf("there are %d", have)
		}
		return nil
	})
}

// number is an integer from the environment, or what it is without.
func number(t testing.TB, name string, without int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return without
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s is not a number", name, text)
	}
	return n
}

// column is a member of a record's after image (before image of a delete) as text.
func column(t testing.TB, m Message, name string) string {
	t.Helper()
	var v struct{ Before, After map[string]json.RawMessage }
	if err := json.Unmarshal(payload(m.Value), &v); err != nil {
		t.Fatalf("%s/%d@%d: %v in %q", m.Topic, m.Partition, m.Offset, err, m.Value)
	}
	row := v.After
	if row == nil {
		row = v.Before
	}
	return string(row[name])
}
