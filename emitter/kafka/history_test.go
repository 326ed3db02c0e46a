package kafka

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/schema"
)

const historyTopic = "_schemahistory.shop"

// captured are the records that Debezium wrote in a reference capture.
func captured(t testing.TB) [][]byte {
	t.Helper()
	f, err := os.Open("testdata/history.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	if err := json.NewDecoder(z).Decode(&texts); err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, text := range texts {
		out = append(out, []byte(text))
	}
	return out
}

func historyConfig(c *kfake.Cluster) HistoryConfig {
	return HistoryConfig{ClientConfig: ClientConfig{Properties: properties(c)}, Topic: historyTopic}
}

func openHistory(t testing.TB, cfg HistoryConfig) *History {
	t.Helper()
	h, err := OpenHistory(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// manual writes records as somebody else would.
func manual(t testing.TB, c *kfake.Cluster, records ...*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, r := range records {
		r.Topic = historyTopic
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is written is what Debezium wrote, in a topic that is as it makes it; and it is read back.
func TestI11_HistoryIsWrittenAndReadAsDebeziumDoes(t *testing.T) {
	cluster := newCluster(t)
	texts := captured(t)
	h := openHistory(t, historyConfig(cluster))
	if entries, found, err := h.Read(t.Context()); err != nil || found || entries != nil {
		t.Fatalf("no topic: %v, %v, %v", entries, found, err)
	}
	if err := h.Append(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Append(t.Context(), texts[:2]...); err != nil {
		t.Fatal(err)
	}
	if err := openHistory(t, historyConfig(cluster)).Append(t.Context(), texts[2:]...); err != nil {
		t.Fatal(err)
	}

	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics(historyTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for i := 0; i < len(texts); {
		cl.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			if r.Key != nil || len(r.Headers) != 0 || r.Partition != 0 || r.Offset != int64(i) || string(r.Value) != string(texts[i]) {
				t.Errorf("record %d: partition %d, offset %d, key %q, headers %v, value %s", i, r.Partition, r.Offset, r.Key, r.Headers, r.Value)
			}
			i++
		})
	}
	details, err := h.client.admin.ListTopics(t.Context(), historyTopic)
	if err != nil || len(details[historyTopic].Partitions) != 1 {
		t.Errorf("%v, %v", details, err)
	}
	settings, err := h.client.topicSettings(t.Context(), historyTopic)
	for name, want := range map[string]string{"cleanup.policy": "delete", "retention.ms": "9223372036854775807", "retention.bytes": "-1"} {
		if err != nil || settings[name] != want {
			t.Errorf("%s=%s, %v", name, settings[name], err)
		}
	}

	want, err := schema.ReadHistory(strings.NewReader(string(slices.Concat(texts...))))
	if err != nil {
		t.Fatal(err)
	}
	entries, found, err := h.Read(t.Context())
	if err != nil || !found || len(entries) != len(want) || len(want) != len(texts) {
		t.Fatalf("%d entries of %d, %v, %v", len(entries), len(want), found, err)
	}
	for i := range want {
		if entries[i].DDL != want[i].DDL || entries[i].Pos != want[i].Pos || len(entries[i].Changes) != len(want[i].Changes) {
			t.Errorf("%d: got %+v, want %+v", i, entries[i], want[i])
		}
	}
}

func TestHistoryLeavesOthersOut(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, historyTopic))
	core, logs := observer.New(zap.WarnLevel)
	cfg := historyConfig(cluster)
	cfg.Log, cfg.Server = zap.New(core), "shop"
	record := func(server, ddl string) *kgo.Record {
		return &kgo.Record{Value: []byte(`{"source":{"server":"` + server + `"},"position":{"file":"b.1","pos":4},"databaseName":"d","ddl":"` + ddl + `","tableChanges":[]}`)}
	}
	manual(t, cluster, record("other", "A"), &kgo.Record{}, &kgo.Record{Value: []byte(" ")})
	if entries, found, err := openHistory(t, cfg).Read(t.Context()); err != nil || found || len(entries) != 0 {
		t.Errorf("%v, %v, %v", entries, found, err)
	}
	manual(t, cluster, record("shop", "B"), record("other", "C"), record("shop", "D"))
	entries, found, err := openHistory(t, cfg).Read(t.Context())
	if err != nil || !found || len(entries) != 2 || entries[0].DDL != "B" || entries[1].DDL != "D" {
		t.Errorf("%v, %v, %v", entries, found, err)
	}
	if n := logs.FilterMessageSnippet("records of other connectors").Len(); n != 2 {
		t.Errorf("%d warnings in %v", n, logs.All())
	}
}

func TestHistoryRefuses(t *testing.T) {
	const record = `{"source":{"server":"shop"},"position":{"file":"b.1","pos":4},"ddl":"X","tableChanges":[]}`
	for _, tt := range []struct {
		name       string
		partitions int32
		settings   map[string]string
		records    []*kgo.Record
		want       string // of Read
		warning    string
		append     string // of Append
	}{
		{name: "compacted", settings: map[string]string{"cleanup.policy": "compact"}, want: "cleanup.policy=compact", append: "--add-config cleanup.policy=delete"},
		{name: "compacted as well", settings: map[string]string{"cleanup.policy": "compact,delete"}, want: "cleanup.policy=compact,delete", append: "have no keys"},
		{name: "records in the second partition", partitions: 2, records: []*kgo.Record{{Value: []byte(record)}, {Partition: 1, Value: []byte(record)}}, want: "partition 1 has records"},
		{name: "a second partition", partitions: 2, records: []*kgo.Record{{Value: []byte(record)}}, warning: "should have one partition"},
		{name: "no JSON", records: []*kgo.Record{{Value: []byte(record)}, {Value: []byte("history!")}}, want: "the record at offset 1 of partition 0 is not Debezium's"},
		{name: "another's records", records: []*kgo.Record{{Value: []byte(`{"op":"c"}`)}}, want: "the record at offset 0 of partition 0 is not Debezium's"},
		{name: "retention", settings: map[string]string{"retention.ms": "604800000"}, records: []*kgo.Record{{Value: []byte(record)}}, warning: "set retention.ms=-1"},
		{name: "retention in bytes", settings: map[string]string{"retention.bytes": "1000000"}, records: []*kgo.Record{{Value: []byte(record)}}, warning: "set retention.bytes=-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cluster := newCluster(t)
			core, logs := observer.New(zap.WarnLevel)
			cfg := historyConfig(cluster)
			cfg.Log = zap.New(core)
			h := openHistory(t, cfg)
			settings := map[string]*string{"retention.ms": kadm.StringPtr("-1")}
			for name, value := range tt.settings {
				settings[name] = &value
			}
			if _, err := h.client.admin.CreateTopic(t.Context(), max(tt.partitions, 1), 1, settings, historyTopic); err != nil {
				t.Fatal(err)
			}
			manual(t, cluster, tt.records...)
			entries, found, err := h.Read(t.Context())
			if tt.want == "" {
				if err != nil || !found || len(entries) != 1 {
					t.Errorf("%v, %v, %v", entries, found, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "schema history topic "+historyTopic) || entries != nil || found {
				t.Errorf("%v, %v, error %v, want …%s…", entries, found, err, tt.want)
			}
			if all := logs.All(); tt.warning == "" && len(all) != 0 || tt.warning != "" && (len(all) != 1 || !strings.Contains(all[0].Message, tt.warning)) {
				t.Errorf("logged %v, want …%s…", all, tt.warning)
			}
			if err := h.Append(t.Context(), []byte(record)); tt.append == "" && err != nil || tt.append != "" && (err == nil || !strings.Contains(err.Error(), tt.append)) {
				t.Errorf("Append: %v, want …%s…", err, tt.append)
			}
		})
	}
	if _, err := OpenHistory(HistoryConfig{}); err == nil || !strings.Contains(err.Error(), "schema.history.internal.kafka.topic is empty") {
		t.Errorf("no topic: %v", err)
	}
	cfg := HistoryConfig{ClientConfig: ClientConfig{Properties: map[string]string{"bootstrap.servers": "a:1", "acks": "1"}}, Topic: historyTopic}
	if _, err := OpenHistory(cfg); err == nil || !strings.Contains(err.Error(), "schema.history.internal.producer.*: Kafka client property acks=1") {
		t.Errorf("acks: %v", err)
	}
	cfg.Consumer = map[string]string{"bootstrap.servers": "a"}
	if _, err := OpenHistory(cfg); err == nil || !strings.Contains(err.Error(), "schema.history.internal.consumer.*: Kafka client property bootstrap.servers") {
		t.Errorf("servers: %v", err)
	}
}

func TestHistoryWhoseBeginningIsGone(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, historyTopic))
	core, logs := observer.New(zap.WarnLevel)
	cfg := historyConfig(cluster)
	cfg.Log = zap.New(core)
	h := openHistory(t, cfg)
	texts := captured(t)
	if err := h.Append(t.Context(), texts[:3]...); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.admin.DeleteRecords(t.Context(), kadm.Offsets{historyTopic: {0: {Topic: historyTopic, At: 2}}}); err != nil {
		t.Fatal(err)
	}
	entries, found, err := h.Read(t.Context())
	if err != nil || !found || len(entries) != 1 {
		t.Errorf("%v, %v, %v", entries, found, err)
	}
	if logs.FilterMessageSnippet("first records of the schema history topic are gone").Len() != 1 {
		t.Errorf("logged %v", logs.All())
	}
}

// A record of the history that is not acknowledged is not written, and those behind it are not begun.
func TestI11_HistoryWaitsForEachAcknowledgement(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, historyTopic))
	refuse := newRefuser(cluster)
	refuse.set(0)
	h := openHistory(t, historyConfig(cluster))
	texts := captured(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := h.Append(ctx, texts[:2]...); err == nil || !strings.Contains(err.Error(), "no acknowledgement") {
		t.Fatalf("written: %v", err)
	}
	refuse.set(-1)
	if err := h.Append(t.Context(), texts[2]); err != nil {
		t.Fatal(err)
	}
	// The first was on its way and keeps its place; the second was never sent.
	entries, _, err := h.Read(t.Context())
	if err != nil || len(entries) != 2 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	first, err := schema.ReadHistory(strings.NewReader(string(texts[0])))
	if err != nil || entries[0].DDL != first[0].DDL {
		t.Errorf("%v, %v", entries[0], err)
	}
}

func TestHistoryRecordThatIsTooLarge(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, historyTopic))
	h := openHistory(t, historyConfig(cluster))
	if err := h.Append(t.Context(), []byte(strings.Repeat("x", 2<<20))); err == nil || !strings.Contains(err.Error(), "schema.history.internal.producer.max.request.size") {
		t.Error(err)
	}
}

func TestHistoryNotAllowed(t *testing.T) {
	cluster := newCluster(t)
	cluster.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		topic := kmsg.NewCreateTopicsResponseTopic()
		topic.Topic, topic.ErrorCode = historyTopic, kerr.TopicAuthorizationFailed.Code
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	err := openHistory(t, historyConfig(cluster)).Append(t.Context(), []byte("x"))
	if err == nil || !strings.Contains(err.Error(), "schema history topic "+historyTopic) || !strings.Contains(err.Error(), "kafka-acls.sh") {
		t.Error(err)
	}
}

func TestCheckConsumerProperties(t *testing.T) {
	warnings, err := CheckConsumerProperties(map[string]string{
		"bootstrap.servers": "a:1", "client.id": "x", "security.protocol": "PLAINTEXT", "request.timeout.ms": "5000",
		"auto.offset.reset": "earliest", "fetch.min.bytes": "1", "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer", "nonsense": "1",
		"acks": "1",
	})
	want := []string{"acks is unknown", "auto.offset.reset has no effect", "fetch.min.bytes has no effect", "nonsense is unknown"}
	if err != nil || len(warnings) != len(want) {
		t.Fatalf("%q, %v", warnings, err)
	}
	for i, w := range want {
		if !strings.Contains(warnings[i], w) {
			t.Errorf("%q, want …%s…", warnings[i], w)
		}
	}
	if _, err := CheckConsumerProperties(map[string]string{"security.protocol": "X"}); err == nil || !strings.Contains(err.Error(), "bootstrap.servers is missing") || !strings.Contains(err.Error(), "security.protocol=X") {
		t.Error(err)
	}
	if _, err := CheckConsumerProperties(map[string]string{"bootstrap.servers": "a:1", "sasl.nonsense": "X"}); err == nil || !strings.Contains(err.Error(), "about security") {
		t.Error(err)
	}
}
