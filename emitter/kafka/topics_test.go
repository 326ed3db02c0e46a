package kafka

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestEnsureTopicMakesItBySpec(t *testing.T) {
	cluster := newCluster(t)
	client := open(t, ClientConfig{Properties: properties(cluster)})
	topics := NewTopics(client, TopicSpec{Create: true, Partitions: 3, ReplicationFactor: 1, Settings: map[string]string{"retention.ms": "1234"}})
	for range 2 {
		if err := topics.Ensure(t.Context(), "shop.db.orders"); err != nil {
			t.Fatal(err)
		}
	}
	details, err := open(t, ClientConfig{Properties: properties(cluster)}).admin.ListTopics(t.Context(), "shop.db.orders")
	if err != nil || len(details["shop.db.orders"].Partitions) != 3 {
		t.Fatalf("%v, %v", details, err)
	}
	configs, err := client.admin.DescribeTopicConfigs(t.Context(), "shop.db.orders")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range configs[0].Configs {
		found = found || c.Key == "retention.ms" && *c.Value == "1234"
	}
	if !found {
		t.Errorf("settings %v", configs)
	}
	// One that exists is left as it is.
	if err := client.EnsureTopic(t.Context(), "shop.db.orders", TopicSpec{Create: true, Partitions: 9}); err != nil {
		t.Error(err)
	}
}

func TestEnsureTopicThatBrokersMake(t *testing.T) {
	cluster := newCluster(t, kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(2))
	client := open(t, ClientConfig{Properties: properties(cluster)})
	if err := client.EnsureTopic(t.Context(), "t", TopicSpec{}); err != nil {
		t.Fatal(err)
	}
	if details, err := open(t, ClientConfig{Properties: properties(cluster)}).admin.ListTopics(t.Context(), "t"); err != nil || len(details["t"].Partitions) != 2 {
		t.Fatalf("%v, %v", details, err)
	}
}

func TestEnsureTopicThatNobodyMakes(t *testing.T) {
	client := open(t, ClientConfig{Properties: properties(newCluster(t))})
	err := client.EnsureTopic(t.Context(), "shop.db.orders", TopicSpec{})
	if err == nil || !strings.Contains(err.Error(), "topic shop.db.orders does not exist") || !strings.Contains(err.Error(), "topic.creation.default.partitions") {
		t.Fatal(err)
	}
}

func TestEnsureTopicErrors(t *testing.T) {
	for _, tt := range []struct {
		code *kerr.Error
		want string
	}{
		{kerr.TopicAuthorizationFailed, "--allow-principal User:ANONYMOUS"},
		{kerr.InvalidReplicationFactor, "too few brokers"},
		{kerr.InvalidReplicationFactor, "errors.deadletterqueue.topic.replication.factor"},
		{kerr.PolicyViolation, "not in our house"},
		{kerr.InvalidTopicException, "at most 249"},
	} {
		cluster := newCluster(t)
		cluster.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
			topic := kmsg.NewCreateTopicsResponseTopic()
			topic.Topic, topic.ErrorCode, topic.ErrorMessage = "t", tt.code.Code, kmsg.StringPtr("not in our house")
			resp.Topics = append(resp.Topics, topic)
			return resp, nil, true
		})
		client := open(t, ClientConfig{Properties: properties(cluster)})
		err := client.EnsureTopic(t.Context(), "t", TopicSpec{Create: true})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "topic t") {
			t.Errorf("%s: %v, want …%s…", tt.code.Message, err, tt.want)
		}
	}
}

func TestEnsureTopicNotAllowed(t *testing.T) {
	cluster := newCluster(t, kfake.EnableACLs(), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "admin", "a"), kfake.User("SCRAM-SHA-256", "tide", "t"))
	client := open(t, ClientConfig{Properties: properties(cluster, login("tide", "t")...)})
	err := client.EnsureTopic(t.Context(), "shop.db.orders", TopicSpec{Create: true})
	if err == nil || !strings.Contains(err.Error(), "kafka-acls.sh --bootstrap-server 127.0.0.1:") ||
		!strings.Contains(err.Error(), "--allow-principal User:tide") || !strings.Contains(err.Error(), "--topic 'shop.db.orders'") {
		t.Fatal(err)
	}
}

func TestEnsureTopicWaitsForTheCluster(t *testing.T) {
	cluster := newCluster(t)
	refusals := 0
	cluster.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if refusals++; refusals > 2 {
			return nil, nil, false
		}
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		topic := kmsg.NewCreateTopicsResponseTopic()
		topic.Topic, topic.ErrorCode = "t", kerr.NotController.Code
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	client := open(t, ClientConfig{Properties: properties(cluster)})
	if err := client.EnsureTopic(t.Context(), "t", TopicSpec{Create: true}); err != nil {
		t.Fatal(err)
	}
	down := open(t, ClientConfig{Properties: map[string]string{"bootstrap.servers": "127.0.0.1:1"}})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := down.EnsureTopic(ctx, "t", TopicSpec{Create: true}); err == nil || ctx.Err() == nil {
		t.Errorf("did not wait: %v", err)
	}
}
