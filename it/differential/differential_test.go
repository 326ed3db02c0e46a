package differential_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/it"
	"github.com/tidemark-cdc/tidemark/it/differential"
)

// TestDifferential lets a real Debezium and Tidemark read one server side by side while it runs random SQL. Every record of every
// topic has to be the same, schemas, schema changes and history included, but for the listed differences.
//
//	TIDEMARK_IT_EVENTS  records compared at least (5000)
//	TIDEMARK_IT_SEED    the seed; "random" for a new one (1)
func TestDifferential(t *testing.T) { run(t, numberOf(t, "TIDEMARK_IT_EVENTS", 5000), nil) }

// TestDifferentialInAvro is the same in Avro: Debezium with Apicurio's converter, which makes the schemas of Confluent's, and one
// registry for both, so that a record has the same ids if its schemas are the same texts. Every record is decoded by goavro.
func TestDifferentialInAvro(t *testing.T) {
	registry := it.StartRegistry(t, "NONE")
	oneAtATime(t, registry)
	run(t, numberOf(t, "TIDEMARK_IT_EVENTS", 2000), registry)
}

// oneAtATime lets one request at a time through to a registry: when two clients register at one moment, Apicurio can violate the
// primary key of its contents, and Debezium's task fails with that.
func oneAtATime(t *testing.T, registry *it.Registry) {
	t.Helper()
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", registry.Port)})
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	registry.Proxy.SetTarget(server.Listener.Addr().String())
}

// run compares so many records; a registry says that they are in Avro.
func run(t *testing.T, target int, registry *it.Registry) {
	seed := seedOf(t)
	config, limits := modes(seed)
	t.Logf("TIDEMARK_IT_SEED=%d TIDEMARK_IT_EVENTS=%d %v", seed, target, config)

	rig := it.NewRig(t, "--log-bin=mysql-bin", "--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL",
		"--gtid-mode=ON", "--enforce-gtid-consistency=ON")
	rig.MySQL.Exec(t, "CREATE DATABASE sentinel", "CREATE TABLE sentinel.s (id INT PRIMARY KEY)")
	d := &duel{t: t, rig: rig, counted: map[string]int{}}
	d.open()
	round := d.begin(seed, 0, limits)

	c := rig.Connector(t, "diff", "file", ".*")
	delete(c.Config, "table.include.list")
	c.Config = c.Config.With(it.Properties{
		"include.schema.changes":                          "true",
		"topic.creation.default.partitions":               "1",
		"schema.history.internal.kafka.bootstrap.servers": rig.Kafka.Addr(),
		"schema.history.internal.kafka.topic":             historyTopic,
		"max.batch.size":                                  "4096",
		"poll.interval.ms":                                "20",
	}).With(config)
	c.Worker = c.Worker.With(it.Properties{
		"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true",
		"plugin.discovery": "only_scan", "listeners": "http://127.0.0.1:0", "offset.flush.interval.ms": "60000",
	})
	if registry != nil {
		c.Config = c.Config.With(registry.AvroConverter(t, "content4"))
		d.avro = registry.AvroDecoder("content4")
	}
	debezium := c.StandaloneConnect(t)
	debezium.Await(t, 120*time.Second, `Keepalive thread is running|Connected to binlog`)
	ours := c.Config.With(it.Properties{"database.server.id": "7301"})
	if registry != nil {
		d.tail = it.StartAvroTail(t, ours, "now", registry.URL())
	} else {
		d.tail = it.StartTail(t, ours.With(it.Properties{
			"key.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter": "org.apache.kafka.connect.json.JsonConverter",
		}), "now")
	}
	d.follow()

	compared := 0
	for n := 0; ; n++ {
		compared += d.round(round, n, min(2000, target-compared), debezium)
		if t.Failed() || compared >= target {
			break
		}
		round = d.begin(seed, n+1, limits)
	}
	d.tail.Stop()
	t.Logf("%d records compared; statements refused by the server: %d of %d; listed differences: %v", compared, d.refused, d.statements, d.counted)
}

// modes chooses settings of the connector by the seed.
func modes(seed int) (config it.Properties, limits differential.Limits) {
	all := [][]string{
		{"decimal.handling.mode", "precise", "string", "double"},
		{"bigint.unsigned.handling.mode", "long", "precise"},
		{"time.precision.mode", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"},
		{"binary.handling.mode", "bytes", "base64", "base64-url-safe", "hex"},
		{"provide.transaction.metadata", "false", "true"},
		{"include.schema.comments", "false", "true"},
		{"enable.time.adjuster", "true", "false"},
		{"tombstones.on.delete", "true", "false"},
		{"skipped.operations", "t", "none"},
		{"column.propagate.source.type", "", ".*"},
	}
	config = it.Properties{}
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	for _, setting := range all {
		value := setting[1]
		if seed > 1 { // 1: all defaults
			value = setting[1+r.IntN(len(setting)-1)]
		}
		if value != "" {
			config[setting[0]] = value
		}
	}
	mode := config["time.precision.mode"]
	return config, differential.Limits{Day: mode == "connect" || mode == "isostring", Centuries: mode == "nanoseconds"}
}

// duel is the two sides and what has come from them.
type duel struct {
	t    *testing.T
	rig  *it.Rig
	conn *client.Conn
	tail *it.Tail
	avro *it.AvroDecoder // nil: JSON

	kafka        *kgo.Client
	theirs, ours map[string][]differential.Record // by topic
	refused      int
	statements   int
	counted      map[string]int // listed differences, by title
	refusals     []string
	changes      []string // statements that have changed tables
}

// open connects to the server.
func (d *duel) open() {
	d.t.Helper()
	conn, err := client.Connect(d.rig.MySQL.Addr(), "root", "secret", "")
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	d.conn = conn
}

// begin makes the database of a round.
func (d *duel) begin(seed, n int, limits differential.Limits) *differential.Generator {
	d.t.Helper()
	g := differential.New(uint64(seed)<<16+uint64(n), fmt.Sprintf("d%d", n), limits)
	d.changes = nil
	if n > 0 {
		d.exec(fmt.Sprintf("DROP DATABASE d%d", n-1))
	}
	setup := g.Setup(8)
	for _, s := range g.Session()[:3] {
		d.must(s)
	}
	refused := map[int]bool{}
	for i, s := range setup {
		if !d.exec(s) {
			if i < 2 {
				d.t.Fatalf("refused: %s", s)
			}
			refused[i-2] = true
		}
	}
	g.Forget(func(i int) bool { return refused[i] })
	return g
}

func (d *duel) must(statement string) {
	d.t.Helper()
	if !d.exec(statement) {
		d.t.Fatalf("refused: %s: %v", statement, d.refusals)
	}
}

// exec runs a statement and says whether the server took it.
func (d *duel) exec(statement string) bool {
	d.t.Helper()
	d.statements++
	_, err := d.conn.Execute(statement)
	if err == nil {
		switch verb, _, _ := strings.Cut(statement, " "); verb {
		case "CREATE", "ALTER", "RENAME":
			d.changes = append(d.changes, statement)
		}
		return true
	}
	d.refused++
	if len(d.refusals) < 20 {
		d.refusals = append(d.refusals, fmt.Sprintf("%v in %.200s", err, statement))
	}
	return false
}

// follow begins to read Debezium's topics.
func (d *duel) follow() {
	d.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(d.rig.Kafka.Addr()), kgo.ConsumeRegex(), kgo.ConsumeTopics(`^diff(\..*)?$`, "^"+historyTopic+"$"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(100*time.Millisecond), kgo.MetadataMaxAge(300*time.Millisecond),
		kgo.FetchMaxWait(200*time.Millisecond))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(c.Close)
	d.kafka = c
	d.theirs, d.ours = map[string][]differential.Record{}, map[string][]differential.Record{}
}

// poll takes what has come to either side.
func (d *duel) poll() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	d.kafka.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
		var headers [][2]string
		for _, h := range r.Headers {
			headers = append(headers, [2]string{h.Key, string(h.Value)})
		}
		x := d.record(r.Topic, r.Key, r.Value, headers)
		if !differential.Snapshot(x) {
			d.theirs[r.Topic] = append(d.theirs[r.Topic], x)
		}
	})
	records, err := d.tail.Take()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, r := range records {
		x := differential.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers}
		if d.avro != nil && r.Topic != historyTopic {
			x = d.record(r.Topic, r.KeyBytes, r.ValueBytes, r.Headers)
		}
		d.ours[r.Topic] = append(d.ours[r.Topic], x)
	}
}

const historyTopic = "history-diff" // whose records are JSON in any case

// record is what is compared of a record's bytes.
func (d *duel) record(topic string, key, value []byte, headers [][2]string) differential.Record {
	r := differential.Record{Topic: topic, Headers: headers}
	for i, part := range []struct {
		data []byte
		text **string
	}{{key, &r.Key}, {value, &r.Value}} {
		switch {
		case part.data == nil:
		case d.avro == nil || topic == historyTopic:
			s := string(part.data)
			*part.text = &s
		default:
			*part.text = d.avro.Text(d.t, part.data)
			r.Schemas[i], _, _ = d.avro.ID(part.data) // Text has found it
		}
	}
	return r
}

// round runs statements until they have given so many records, and compares all that came.
func (d *duel) round(g *differential.Generator, n, records int, debezium *it.Process) int {
	t := d.t
	t.Helper()
	for _, s := range g.Session() {
		d.must(s)
	}
	for d.countOurs() < records {
		for range 20 {
			steps := g.Step()
			for _, s := range steps {
				if !d.exec(s) && len(steps) == 1 && !strings.HasPrefix(s, "INSERT") && !strings.HasPrefix(s, "REPLACE") &&
					!strings.HasPrefix(s, "UPDATE") && !strings.HasPrefix(s, "DELETE") {
					g.Refused()
				}
			}
		}
		d.poll()
		if debezium.Ended() {
			t.Fatalf("Debezium ended")
		}
	}
	d.must("COMMIT")
	d.must(fmt.Sprintf("INSERT INTO sentinel.s VALUES (%d)", n))
	deadline := time.Now().Add(90 * time.Second)
	for !d.settled(n) {
		if time.Now().After(deadline) {
			t.Errorf("not all records have come; statements that were refused: %v", d.refusals)
			if out := debezium.Output(); strings.Contains(out, "ERROR") {
				t.Errorf("Debezium says: %.3000s", out[strings.Index(out, "ERROR"):])
				for line := range strings.Lines(out) { // the first error may be all schema
					if strings.HasPrefix(line, "Caused by: ") {
						t.Errorf("%.1000s", line)
					}
				}
			}
			break
		}
		d.poll()
	}
	if d.statements > 200 && d.refused > d.statements/3 {
		t.Errorf("%d of %d statements were refused: %v", d.refused, d.statements, d.refusals)
	}
	return d.compare()
}

func (d *duel) countOurs() int {
	n := 0
	for _, rs := range d.ours {
		n += len(rs)
	}
	return n
}

// settled says whether both sides have the sentinel of a round and all topics are as long on both.
func (d *duel) settled(n int) bool {
	key := fmt.Sprintf(`"payload":{"id":%d}}`, n)
	for _, side := range []map[string][]differential.Record{d.theirs, d.ours} {
		rs := side["diff.sentinel.s"]
		if len(rs) == 0 || rs[len(rs)-1].Key == nil || !strings.HasSuffix(*rs[len(rs)-1].Key, key) {
			return false
		}
	}
	for _, topic := range d.topics() {
		if len(d.theirs[topic]) != len(d.ours[topic]) {
			return false
		}
	}
	return true
}

func (d *duel) topics() []string {
	names := map[string]bool{}
	for topic := range d.theirs {
		names[topic] = true
	}
	for topic := range d.ours {
		names[topic] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// compare compares all records and forgets them.
func (d *duel) compare() int {
	t := d.t
	t.Helper()
	compared, wrong := 0, 0
	said := map[string]bool{}
	for _, topic := range d.topics() {
		theirs, ours := d.theirs[topic], d.ours[topic]
		if len(theirs) != len(ours) {
			t.Errorf("%s: Debezium has %d records, Tidemark %d", topic, len(theirs), len(ours))
		}
		for i := range min(len(theirs), len(ours)) {
			titles, err := differential.Compare(theirs[i], ours[i])
			if err != nil {
				wrong++
				if what := fmt.Sprintf("%s: %v", topic, err); !said[what] && len(said) < 20 {
					said[what] = true
					t.Errorf("%s record %d: %v\n%s", topic, i, err, d.changesOf(topic))
				}
			}
			for _, title := range titles {
				d.counted[title]++
			}
			compared++
		}
	}
	if wrong > len(said) {
		t.Errorf("%d records differ", wrong)
	}
	clear(d.theirs)
	clear(d.ours)
	return compared
}

// changesOf are the statements that made the table of a topic what it is.
func (d *duel) changesOf(topic string) string {
	_, table, _ := strings.Cut(strings.TrimPrefix(topic, "diff."), ".")
	if table == "" {
		return ""
	}
	var of []string
	for _, s := range d.changes {
		if strings.Contains(s, "`"+table+"`") {
			of = append(of, s)
		}
	}
	return strings.Join(of, "\n")
}

func seedOf(t *testing.T) int {
	t.Helper()
	switch text := os.Getenv("TIDEMARK_IT_SEED"); text {
	case "":
		return 1
	case "random":
		return int(time.Now().UnixMilli() % 1_000_000_000)
	default:
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("TIDEMARK_IT_SEED=%s is not a number", text)
		}
		return n
	}
}

func numberOf(t *testing.T, name string, without int) int {
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
