package bench

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/it"
)

var toolNames = []string{"tidemark", exactly, "debezium", "canal", "floor"}

// exactly is Tidemark with exactly-once delivery. What is counted and read of it is what is committed.
const exactly = "exactly-once"

// measures says whether a tool takes part: the program by hand writes only JSON, and exactly-once is compared where it costs the most.
func measures(tool string, c cell) bool {
	switch tool {
	case "canal":
		return c.format == "json"
	case exactly:
		return c.format == "json" && (c.what == "W1" || c.what == "W2" || strings.HasPrefix(c.what, "W5 ") && c.what != atMost)
	}
	return true
}

// atMost is W5 at a rate that depends on the tool.
const atMost = "W5 at 80 %"

// stage is what all runs share.
type stage struct {
	options  Options
	mysql    *it.MySQL
	kafka    *it.Kafka
	rig      *it.Rig
	registry *it.Registry // nil without Avro
	programs string       // folder of the built programs canal and floor
	runs     int
	warm     bool // the broker has been warmed
	report   *Report
}

// cell is what a line of the table is about, but for the tool.
type cell struct {
	workload    *workload
	what        string // the workload's name with what is special, as "W4 SIGTERM"
	format      string
	compression string
}

// line is the line of a tool.
func (c cell) line(tool string) line { return line{c.what, c.format, c.compression, tool} }

// attempt is a tool that is set up for one run.
type attempt struct {
	tool      string
	prefix    string
	topics    *topics
	connector *it.Connector               // nil for the program by hand
	launch    func(t testing.TB) *process // starts it; a second time where it was stopped
}

// prepare sets a tool up to read a workload from a position, into topics of its own, which keep the whole of it or only what came last.
func (s *stage) prepare(t testing.TB, tool string, c cell, from position, whole bool) *attempt {
	t.Helper()
	s.runs++
	a := &attempt{tool: tool, prefix: tool + strconv.Itoa(s.runs)}
	// What exactly-once writes is read and counted, without what ends transactions. So everything of the cell is kept: memory that a broker
	// fills anew costs it more than what it has just emptied.
	whole = whole || slices.Contains(s.options.Tools, exactly) && measures(exactly, c) && len(c.workload.tables) == 1
	partitions := s.options.Partitions
	if len(c.workload.tables) > 1 {
		partitions = 1
	}
	names := make([]string, len(c.workload.tables))
	for i, table := range c.workload.tables {
		names[i] = a.prefix + "." + c.workload.database + "." + table
	}
	a.topics = newTopics(t, s.kafka, partitions, names, whole)
	switch tool {
	case "tidemark", exactly:
		a.connector = s.connector(t, a.prefix, c)
		if tool == exactly {
			a.connector.Config = a.connector.Config.With(it.Properties{"exactly.once.support": "required", "offsets.storage.topic": "bench-offsets"})
		}
		a.launch = s.tidemark(t, a.connector, from)
	case "debezium":
		a.connector = s.connector(t, a.prefix, c)
		a.launch = s.debezium(t, a.connector, c, from)
	case "canal":
		a.launch = s.canal(t, a.prefix, c, from)
	default:
		t.Fatalf("no tool %q", tool)
	}
	return a
}

// connector is the configuration that Tidemark and Debezium share.
func (s *stage) connector(t testing.TB, prefix string, c cell) *it.Connector {
	t.Helper()
	k := s.rig.Connector(t, prefix, "file", "")
	delete(k.Config, "table.include.list")
	k.Config = k.Config.With(it.Properties{
		"database.include.list":              c.workload.database,
		"producer.override.compression.type": c.compression,
	})
	switch c.format {
	case "json":
	case "json-schema":
		k.Worker = k.Worker.With(it.Properties{"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"})
	case "avro":
		k.Config = k.Config.With(s.registry.AvroConverter(t, "content4"))
	default:
		t.Fatalf("no format %q", c.format)
	}
	return k
}

func (s *stage) tidemark(t testing.TB, k *it.Connector, from position) func(testing.TB) *process {
	t.Helper()
	k.Config["start.position"] = from.file + ":" + strconv.FormatInt(from.pos, 10)
	k.Worker["group.id"] = k.Name // for exactly-once
	k.Config = k.Config.With(s.options.Tidemark)
	worker, connector := k.Files(t)
	return func(t testing.TB) *process {
		t.Helper()
		return start(t, "tidemark", it.Binary(t), "run", worker, connector)
	}
}

// debezium is a standalone Connect worker. It begins where its offset file says, which is written here as Connect writes it. To an
// offset belongs a schema history, and there is none of a stretch that no connector has read; snapshot.mode=recovery makes one from the
// tables as they are now, which is how they were at the offset, since each workload's tables are made before it, and streams from the
// offset on. That happens long before the half of the records that counts.
func (s *stage) debezium(t testing.TB, k *it.Connector, c cell, from position) func(testing.TB) *process {
	t.Helper()
	k.Config = k.Config.With(it.Properties{
		"snapshot.mode": "recovery",
		"schema.history.internal.kafka.bootstrap.servers": s.kafka.Addr(),
		"schema.history.internal.kafka.topic":             "history-" + k.Prefix,
		// What its manual and Connect's say about throughput: larger batches and queues, and batches of a megabyte.
		"max.batch.size":               "8192",
		"max.queue.size":               "32768",
		"producer.override.batch.size": "1048576",
	}).With(s.options.Debezium)
	k.Worker = k.Worker.With(it.Properties{"plugin.discovery": "only_scan", "listeners": "http://127.0.0.1:0"})
	it.WriteOffsetFile(t, k.OffsetFile(), it.OffsetKey(k.Name, k.Prefix), from.offset())
	worker, connector := k.Files(t)
	classes := []string{filepath.Join(it.Image(t, "connect"), "*")}
	if c.format == "avro" {
		classes = append(classes, it.Image(t, "avro-java"))
	}
	return func(t testing.TB) *process {
		t.Helper()
		// The flags are those of connect-standalone.sh.
		return start(t, "debezium", "java", "-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
			"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
			"-Dorg.slf4j.simpleLogger.showDateTime=true", "-cp", strings.Join(classes, string(filepath.ListSeparator)),
			"org.apache.kafka.connect.cli.ConnectStandalone", worker, connector)
	}
}

func (s *stage) canal(t testing.TB, prefix string, c cell, from position) func(testing.TB) *process {
	t.Helper()
	command := []string{
		filepath.Join(s.programs, "canal"),
		"-mysql", s.mysql.Addr(), "-user", "tide", "-password", "tide", "-server-id", strconv.Itoa(5000 + s.runs),
		"-kafka", s.kafka.Addr(), "-prefix", prefix, "-database", c.workload.database, "-compression", c.compression,
		"-file", from.file, "-pos", strconv.FormatInt(from.pos, 10), "-state", filepath.Join(t.TempDir(), "position"),
	}
	return func(t testing.TB) *process {
		t.Helper()
		return start(t, "canal", command...)
	}
}

// build builds the programs canal and floor into a folder and returns it.
func build(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	const path = "github.com/tidemark-cdc/tidemark/it/bench/"
	if out, err := exec.Command("go", "build", "-o", folder, path+"canal", path+"floor").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return folder
}
