package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// soon is a context that ends when a call has waited in vain.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A topic of definitions that is deleted under its writer is made again, and neither a write nor the next attempt waits for it for ever.
func TestI11_SchemaTopicDeletedUnderItsWriter(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]func(*testing.T, *SchemaTopic){
		"a write": func(t *testing.T, s *SchemaTopic) {
			err := s.Save(soon(t), "inventory", "shop", []schema.StoredTable{storedTable("d", "orders", 2, 3)})
			if err == nil || !Transient(err) {
				t.Fatal(err)
			}
		},
		"nothing": func(*testing.T, *SchemaTopic) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t)
			s := fencedSchemas(t, cluster)
			saveSchemas(t, s, storedTable("d", "orders", 1, 3))
			must(t, cluster.DeleteTopic(s.topic))
			during(t, s)
			must(t, s.Fence(soon(t), "inventory", "shop", transactionID+"-schemas"))
			wantSchemas(t, s, "inventory", "shop")
			saveSchemas(t, s, storedTable("d", "orders", 3, 3))
			wantSchemas(t, s, "inventory", "shop", storedTable("d", "orders", 3, 3))
			compactedIs(t, cluster, s.topic)
		})
	}
}

// The same of the offsets topic: the offset is stored again, which nobody else has written.
func TestI5_OffsetsTopicDeletedUnderItsWriter(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	s := openStore(t, storeConfig(cluster))
	fenceAndLoad(t, s)
	save(t, s, inventory, at(7))
	must(t, cluster.DeleteTopic(offsetsTopic))
	ctx := soon(t)
	var err error
	for range 3 { // as at each flush interval
		if err = s.Save(ctx, inventory, at(8)); err == nil {
			break
		}
		t.Log(err)
	}
	must(t, err)
	wantLoad(t, openStore(t, storeConfig(cluster)), inventory, at(8))
	compactedIs(t, cluster, offsetsTopic)
}

// A delivery that writes offsets, too, makes their topic again as it was, and not as it makes those of records.
func TestAgainMakesTheOffsetsTopicAsItWas(t *testing.T) {
	cluster := newCluster(t)
	s := openStore(t, storeConfig(cluster))
	topics := NewTopics(s.client, TopicSpec{Create: true, Partitions: 3, ReplicationFactor: 1})
	topics.Keep(s)
	must(t, cluster.DeleteTopic(offsetsTopic))
	topics.Again(t.Context(), offsetsTopic)
	compactedIs(t, cluster, offsetsTopic)
	if n := len(cluster.PartitionInfos(offsetsTopic)); n == 3 {
		t.Errorf("%d partitions", n)
	}
	topics.Again(t.Context(), "p.shop.orders")
	if n := len(cluster.PartitionInfos("p.shop.orders")); n != 3 {
		t.Errorf("%d partitions of a topic of records", n)
	}
}

// What was in a topic that was deleted is not taken for what is in the one that was made instead, read before or only written.
func TestI5_OffsetsTopicMadeAnewIsEmpty(t *testing.T) {
	for name, before := range map[string]func(*testing.T, *TopicStore){
		"written": func(*testing.T, *TopicStore) {},
		"read":    func(t *testing.T, s *TopicStore) { wantLoad(t, s, inventory, at(7)) },
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t)
			s := openStore(t, storeConfig(cluster))
			save(t, s, inventory, at(7))
			before(t, s)
			must(t, cluster.DeleteTopic(offsetsTopic))
			must(t, s.again(t.Context()))
			wantLoad(t, s, inventory, offset.Offset{})
			save(t, openStore(t, storeConfig(cluster)), inventory, at(9))
			wantLoad(t, s, inventory, at(9))
		})
	}
}

func compactedIs(t *testing.T, cluster *kfake.Cluster, topic string) {
	t.Helper()
	if info := cluster.TopicInfo(topic); info == nil || info.Configs["cleanup.policy"] == nil || *info.Configs["cleanup.policy"] != "compact" {
		t.Errorf("topic %s: %+v", topic, info)
	}
}
