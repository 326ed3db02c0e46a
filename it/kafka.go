package it

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Kafka is a real broker (one node, KRaft) in a container. It has two listeners: one that tests use, and one behind Proxy that
// processes under test use. Since a client goes where the broker tells it to, the second one advertises the proxy's address. A third
// one is for the broker itself, which goes the way of other brokers with transactions and cannot reach the host's ports. All
// topics have the time at which the broker appended a record, so that records and offsets are on one clock.
type Kafka struct {
	container *container
	Port      int
	Proxy     *Proxy // nil on the host itself
}

const kafkaScript = `set -e
cd /tmp
cat >server.properties <<X
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9095
listeners=DIRECT://0.0.0.0:9092,PROXIED://0.0.0.0:9094,ITSELF://localhost:9093,CONTROLLER://localhost:9095
advertised.listeners=DIRECT://127.0.0.1:%d,PROXIED://127.0.0.1:%d,ITSELF://localhost:9093
listener.security.protocol.map=DIRECT:PLAINTEXT,PROXIED:PLAINTEXT,ITSELF:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=ITSELF
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
log.dirs=/tmp/kafka-data
log.message.timestamp.type=LogAppendTime
log.cleaner.min.compaction.lag.ms=86400000
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
auto.create.topics.enable=false
%s
X
[ -d kafka-data ] || java -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*' kafka.tools.StorageTool format -t TidemarkTestTestTestTes -c server.properties
exec java -Xmx512m -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*' kafka.Kafka server.properties`

// broker says what kind of broker to start.
type broker struct {
	version    string   // new or old (images/kafka); empty: what TIDEMARK_IT_KAFKA says
	properties []string // besides the usual ones
}

// launch starts it without waiting for it.
func (b broker) launch(t testing.TB) *Kafka {
	t.Helper()
	var version []string
	if b.version != "" {
		version = []string{b.version}
	}
	name := Image(t, "kafka", version...)
	k := &Kafka{Port: freePort(t)}
	proxied := freePort(t)
	k.Proxy = NewProxy(t, fmt.Sprintf("127.0.0.1:%d", proxied))
	k.container = run(t, name, fmt.Sprintf(kafkaScript, k.Port, k.Proxy.Port(), strings.Join(b.properties, "\n")),
		map[int]int{9092: k.Port, 9094: proxied})
	return k
}

// kafkaOnHostScript is a broker for measurements: no proxy, no authorizer, the JVM as it is by itself but for a heap of fixed size, and
// a log that no disk slows down, nor fills up: what a topic keeps is looked at often.
const kafkaOnHostScript = `set -e
cd /tmp
cat >server.properties <<X
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[2]d
listeners=DIRECT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=DIRECT://127.0.0.1:%[1]d
listener.security.protocol.map=DIRECT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=DIRECT
log.dirs=%[3]s/kafka-data
log.message.timestamp.type=LogAppendTime
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=500
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
X
java -cp '/opt/kafka/libs/*' kafka.tools.StorageTool format -t TidemarkTestTestTestTes -c server.properties
exec java -Xms1g -Xmx1g -cp '/opt/kafka/libs/*' kafka.Kafka server.properties`

// launchKafkaOnHost starts a broker for measurements, which listens on the host itself, without waiting for it.
func launchKafkaOnHost(t testing.TB) *Kafka {
	t.Helper()
	name := Image(t, "kafka")
	k := &Kafka{Port: freePort(t)}
	k.container = runOnHost(t, name, fmt.Sprintf(kafkaOnHostScript, k.Port, freePort(t), memory))
	return k
}

// Versions are those of the broker and of its Java.
func (k *Kafka) Versions(t testing.TB) (broker, java string) {
	t.Helper()
	jars := k.container.output(t, "sh", "-c", "ls /opt/kafka/libs")
	if m := regexp.MustCompile(`kafka_2\.13-([0-9.]+[0-9])`).FindStringSubmatch(jars); m != nil {
		broker = m[1]
	}
	if m := regexp.MustCompile(`"([^"]+)"`).FindStringSubmatch(k.container.output(t, "java", "-version")); m != nil {
		java = m[1]
	}
	return broker, java
}

// Addr is the address that tests use.
func (k *Kafka) Addr() string { return "127.0.0.1:" + strconv.Itoa(k.Port) }

// Stop ends the broker, with SIGTERM (clean) or SIGKILL.
func (k *Kafka) Stop(t testing.TB, clean bool) {
	t.Helper()
	grace := time.Duration(0)
	if clean {
		grace = 30 * time.Second
	}
	k.container.stop(t, grace)
}

// Start starts a stopped broker again and waits until it answers.
func (k *Kafka) Start(t testing.TB) {
	t.Helper()
	k.container.start(t)
	k.wait(t)
}

func (k *Kafka) wait(t testing.TB) {
	t.Helper()
	admin := k.admin(t)
	defer admin.Close()
	eventually(t, 90*time.Second, "Kafka", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, err := admin.BrokerMetadata(ctx)
		return err
	})
}

func (k *Kafka) admin(t testing.TB) *kadm.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()), kgo.RetryTimeout(10*time.Second), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	return kadm.NewClient(c)
}

// openTransactions says which transactions the partitions of topics are in, and what the coordinators know of transactions: one that only a
// partition knows hangs there.
func (k *Kafka) openTransactions(t testing.TB, topics []string) string {
	t.Helper()
	admin := k.admin(t)
	defer admin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var all kadm.TopicsSet
	for _, topic := range topics {
		all.Add(topic)
	}
	var b strings.Builder
	in, err := admin.DescribeProducers(ctx, all)
	fmt.Fprintf(&b, "partitions in transactions (%v):\n", err)
	in.EachProducer(func(p kadm.DescribedProducer) {
		if p.CurrentTxnStartOffset >= 0 {
			fmt.Fprintf(&b, "  %s-%d: producer %d, epoch %d, since offset %d, last written %v\n",
				p.Topic, p.Partition, p.ProducerID, p.ProducerEpoch, p.CurrentTxnStartOffset, time.UnixMilli(p.LastTimestamp).UTC())
		}
	})
	known, err := admin.DescribeTransactions(ctx)
	fmt.Fprintf(&b, "what the coordinators know (%v):\n", err)
	for _, x := range known.Sorted() {
		fmt.Fprintf(&b, "  %s: %s, producer %d, epoch %d, timeout %d ms, since %v, %v\n",
			x.TxnID, x.State, x.ProducerID, x.ProducerEpoch, x.TimeoutMillis, time.UnixMilli(x.StartTimestamp).UTC(), x.Topics)
	}
	return b.String()
}

// DenyWrite adds an ACL that forbids everybody to write to a topic or to create it.
func (k *Kafka) DenyWrite(t testing.TB, topic string) {
	t.Helper()
	admin := k.admin(t)
	defer admin.Close()
	rules := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).
		Deny("User:ANONYMOUS").DenyHosts("*").Operations(kadm.OpWrite, kadm.OpCreate)
	results, err := admin.CreateACLs(context.Background(), rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

// Message is one record of a topic as a consumer sees it.
type Message struct {
	Topic     string
	Partition int32
	Offset    int64
	Time      time.Time // when the broker appended it
	Key       []byte    // nil for null
	Value     []byte    // nil for null
	Headers   map[string]string

	// understood is what the checker has made of it, kept for when it is checked again. Nobody who changes a message keeps it.
	understood *record
}

// Topics are the names of the topics that start with prefix.
func (k *Kafka) Topics(t testing.TB, prefix string) []string {
	t.Helper()
	admin := k.admin(t)
	defer admin.Close()
	details, err := admin.ListTopics(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range details.Names() {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// Count is the number of records in the topics that start with prefix.
func (k *Kafka) Count(t testing.TB, prefix string) int64 {
	t.Helper()
	topics := k.Topics(t, prefix)
	if len(topics) == 0 {
		return 0
	}
	admin := k.admin(t)
	defer admin.Close()
	ends, err := admin.ListEndOffsets(context.Background(), topics...)
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err == nil {
			n += o.Offset
		}
	})
	return n
}

// Read returns all records that the topics starting with prefix hold now, each partition in order: what a consumer with
// isolation.level=read_committed gets. It waits for transactions that are open.
func (k *Kafka) Read(t testing.TB, prefix string) []Message {
	t.Helper()
	return k.read(t, prefix, kgo.ReadCommitted())
}

// read is Read for a consumer with this isolation level.
func (k *Kafka) read(t testing.TB, prefix string, level kgo.IsolationLevel) []Message {
	t.Helper()
	topics := k.Topics(t, prefix)
	if len(topics) == 0 {
		return nil
	}
	admin := k.admin(t)
	defer admin.Close()
	listed, err := admin.ListEndOffsets(context.Background(), topics...)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]map[int32]int64{}
	start := map[string]map[int32]kgo.Offset{}
	open := 0
	listed.Each(func(o kadm.ListedOffset) {
		if o.Err != nil {
			t.Fatalf("%s/%d: %v", o.Topic, o.Partition, o.Err)
		}
		if o.Offset == 0 {
			return
		}
		if left[o.Topic] == nil {
			left[o.Topic], start[o.Topic] = map[int32]int64{}, map[int32]kgo.Offset{}
		}
		left[o.Topic][o.Partition] = o.Offset
		start[o.Topic][o.Partition] = kgo.NewOffset().AtStart()
		open++
	})
	if open == 0 {
		return nil
	}
	// Control records are kept because the last one of a partition may be one.
	c, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()), kgo.ConsumePartitions(start), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.FetchMaxBytes(8<<20), kgo.FetchIsolationLevel(level), kgo.KeepControlRecords())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var all []Message
	for open > 0 {
		fetches := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("reading %s*: %v, %d records read, missing the end of %d partitions\n%s", prefix, err, len(all), open, k.openTransactions(t, topics))
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end := left[r.Topic][r.Partition]
			if r.Offset >= end {
				return
			}
			if r.Offset == end-1 {
				open--
			}
			if r.Attrs.IsControl() {
				return
			}
			m := Message{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp, Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				if m.Headers == nil {
					m.Headers = map[string]string{}
				}
				m.Headers[h.Key] = string(h.Value)
			}
			all = append(all, m)
		})
	}
	slices.SortStableFunc(all, func(a, b Message) int {
		if c := strings.Compare(a.Topic, b.Topic); c != 0 {
			return c
		}
		return int(a.Partition - b.Partition)
	})
	return all
}

// Produce writes one record, as an operator's own tool would.
func (k *Kafka) Produce(t testing.TB, topic string, key, value []byte) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Key: key, Value: value}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
