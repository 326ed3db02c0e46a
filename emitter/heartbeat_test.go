package emitter

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
)

// TestHeartbeat has the text that a Debezium run with topic.prefix dbserver6 wrote.
func TestHeartbeat(t *testing.T) {
	const key = `{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"serverName"}],"optional":false,` +
		`"name":"io.debezium.connector.common.ServerNameKey","version":1},"payload":{"serverName":"dbserver6"}}`
	const value = `{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"ts_ms"}],"optional":false,` +
		`"name":"io.debezium.connector.common.Heartbeat","version":1},"payload":{"ts_ms":1795979641839}}`
	now := time.UnixMilli(1795979641839)
	em, err := New(Config{
		Prefix: "dbserver6", ExtendedHeaders: true, Key: Converter{Schemas: true}, Value: Converter{Schemas: true},
		Clock: func() time.Time { return now },
	})
	must(t, err)
	var b Batch
	o := offset.Offset{TsSec: 1795979640, File: "mysql-bin.000001", Pos: 3103, ServerID: 1}
	must(t, em.Heartbeat(&b, o))
	r := b.Records[0]
	if r.Topic != "__debezium-heartbeat.dbserver6" || r.Partition != 0 || string(r.Key) != key || string(r.Value) != value ||
		len(r.Headers) != 0 || !r.Offset.Equal(o) {
		t.Errorf("got %s/%d %s %s %v %s", r.Topic, r.Partition, r.Key, r.Value, r.Headers, r.Offset)
	}
	now = now.Add(time.Millisecond)
	must(t, em.Heartbeat(&b, o))
	if got := string(b.Records[1].Value); !strings.HasSuffix(got, `"payload":{"ts_ms":1795979641840}}`) {
		t.Errorf("got %s", got)
	}
}

func TestHeartbeatTopic(t *testing.T) {
	for want, naming := range map[string]Naming{
		"hbprefix.p":             {HeartbeatPrefix: "hbprefix"},
		"beats":                  {HeartbeatTopic: "beats", HeartbeatPrefix: "hbprefix"},
		"__debezium-heartbeat-p": {Delimiter: "-"},
	} {
		em, err := New(Config{Prefix: "p", Naming: naming})
		must(t, err)
		var b Batch
		must(t, em.Heartbeat(&b, at(4)))
		if got := b.Records[0].Topic; got != want {
			t.Errorf("topic %s, want %s", got, want)
		}
	}
}

// TestHeartbeatInATransaction has the counts of its moment.
func TestHeartbeatInATransaction(t *testing.T) {
	em := transactional(t, Config{})
	var b Batch
	must(t, em.Transaction(&b, &binlog.Begin{ID: "u:7", Offset: at(100)}))
	insert(t, em, &b, "orders")
	must(t, em.Heartbeat(&b, at(100)))
	const want = `{"transaction_id":"u:7","file":"mysql-bin.000001","pos":100,"transaction_data_collection_order_inventory.orders":1}`
	if got := b.Records[2].Offset.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
