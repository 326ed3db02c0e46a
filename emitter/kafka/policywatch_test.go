package kafka

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/offset"
)

// TestOffsetsTopicIsNotCompactedAnyMore is said once, with the command, when somebody has changed it while offsets are stored, and
// when it is put right. Offsets are stored all the while.
func TestOffsetsTopicIsNotCompactedAnyMore(t *testing.T) {
	c, client, _ := observed(t)
	core, logs := observer.New(zap.InfoLevel)
	s, err := OpenTopicStore(t.Context(), TopicStoreConfig{
		ClientConfig: ClientConfig{Properties: map[string]string{"bootstrap.servers": strings.Join(c.ListenAddrs(), ",")}, Log: zap.New(core)},
		Topic:        "offsets", Partitions: 1, ReplicationFactor: 1,
	})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	pos := int64(4)
	save := func() {
		pos++
		must(t, s.Save(t.Context(), offset.Key{Connector: "orders", Server: "shop"}, offset.Offset{File: "mysql-bin.000001", Pos: pos}))
	}
	later := func() {
		s.policy.mu.Lock()
		defer s.policy.mu.Unlock()
		s.policy.next = time.Now().Add(-time.Second)
	}
	save()
	setPolicy(t, client.inner.Kgo, "delete")
	save()
	if logs.Len() != 0 {
		t.Errorf("looked at each save: %v", logs.All())
	}
	for range 3 {
		later()
		save()
	}
	said := logs.FilterMessageSnippet("not compacted any more").All()
	if len(said) != 1 || !strings.Contains(said[0].ContextMap()["error"].(string), "kafka-configs.sh") {
		t.Errorf("%v", logs.All())
	}
	setPolicy(t, client.inner.Kgo, "compact")
	later()
	save()
	if logs.FilterMessageSnippet("compacted again").Len() != 1 {
		t.Errorf("%v", logs.All())
	}
	o, err := s.Load(context.Background(), offset.Key{Connector: "orders", Server: "shop"})
	if err != nil || o.Pos != pos {
		t.Errorf("%v, %v", o, err)
	}
}

func setPolicy(t *testing.T, cl *kgo.Client, policy string) {
	t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, "offsets"
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "cleanup.policy", &policy
	resource.Configs = append(resource.Configs, config)
	req.Resources = append(req.Resources, resource)
	_, err := req.RequestWith(t.Context(), cl)
	must(t, err)
}
