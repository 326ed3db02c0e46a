package kafka

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestAgainMakesATopicAnew as topic.creation.* says.
func TestAgainMakesATopicAnew(t *testing.T) {
	c, client, logs := observed(t)
	topics := NewTopics(client, TopicSpec{Create: true, Partitions: 3, ReplicationFactor: 1})
	must(t, topics.Ensure(t.Context(), "p.shop.orders"))
	must(t, c.DeleteTopic("p.shop.orders"))
	must(t, topics.Ensure(t.Context(), "p.shop.orders")) // it remembers
	if c.TopicInfo("p.shop.orders") != nil {
		t.Fatal("made again by Ensure")
	}
	topics.Again(t.Context(), "p.shop.orders")
	if info := c.TopicInfo("p.shop.orders"); info == nil || len(c.PartitionInfos("p.shop.orders")) != 3 {
		t.Errorf("%+v", info)
	}
	if logs.FilterMessageSnippet("was deleted, and is there again").Len() != 1 {
		t.Errorf("%v", logs.All())
	}
}

// TestAgainSaysOnceWhatToDo when nobody makes the topic.
func TestAgainSaysOnceWhatToDo(t *testing.T) {
	c, client, logs := observed(t)
	must(t, c.CreateTopic("p.shop.orders", 1, nil))
	topics := NewTopics(client, TopicSpec{Create: true})
	must(t, topics.Ensure(t.Context(), "p.shop.orders"))
	must(t, c.DeleteTopic("p.shop.orders"))
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	for range 3 {
		topics.Again(t.Context(), "p.shop.orders")
	}
	said := logs.FilterMessageSnippet("cannot be made again")
	if said.Len() != 1 || !strings.Contains(fmt.Sprint(said.All()[0].ContextMap()["error"]), "kafka-acls.sh") {
		t.Errorf("%v", logs.All())
	}
	must(t, c.CreateTopic("p.shop.orders", 1, nil))
	topics.Again(t.Context(), "p.shop.orders")
	if logs.FilterMessageSnippet("is there again").Len() != 1 {
		t.Errorf("%v", logs.All())
	}
}

// TestWithdrawn tells what an operator gives and takes from what stays as it is.
func TestWithdrawn(t *testing.T) {
	for _, err := range []error{
		kerr.TopicAuthorizationFailed, fmt.Errorf("topic t: %w", kerr.ClusterAuthorizationFailed), kerr.TransactionalIDAuthorizationFailed,
		kerr.SaslAuthenticationFailed,
		x509.UnknownAuthorityError{},
		fmt.Errorf("topic t %w", errNoTopic),
	} {
		if !Withdrawn(err) || Transient(err) {
			t.Errorf("%v: withdrawn %v, transient %v", err, Withdrawn(err), Transient(err))
		}
	}
	for _, err := range []error{nil, kerr.MessageTooLarge, kerr.NotEnoughReplicas, errors.New("anything"), context.Canceled} {
		if Withdrawn(err) {
			t.Error(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// observed is a cluster without topics, a client of it, and what that logs.
func observed(t *testing.T) (*kfake.Cluster, *Client, *observer.ObservedLogs) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	must(t, err)
	t.Cleanup(c.Close)
	core, logs := observer.New(zap.InfoLevel)
	client, err := NewClient(ClientConfig{Properties: map[string]string{"bootstrap.servers": strings.Join(c.ListenAddrs(), ",")}, Log: zap.New(core)})
	must(t, err)
	t.Cleanup(client.Close)
	return c, client, logs
}
