package kafka

import (
	"reflect"
	"strings"
	"testing"
)

func TestTopicGroups(t *testing.T) {
	hasPrefix := func(p string) func(string) bool { return func(s string) bool { return strings.HasPrefix(s, p) } }
	byDefault := TopicSpec{Create: true, Partitions: 3, ReplicationFactor: 2, Settings: map[string]string{"retention.ms": "1", "cleanup.policy": "delete"}}
	topics := NewTopics(nil, byDefault,
		TopicGroup{Name: "nothing"},
		TopicGroup{Name: "compacted", Include: hasPrefix("shop.inv."), Exclude: hasPrefix("shop.inv.log"), Spec: TopicSpec{Settings: map[string]string{"cleanup.policy": "compact"}}},
		TopicGroup{Name: "all of shop", Include: hasPrefix("shop."), Spec: TopicSpec{Partitions: 9, ReplicationFactor: -1}},
		TopicGroup{Name: "too late", Include: hasPrefix("shop.x"), Spec: TopicSpec{Partitions: 1}},
	)
	for topic, want := range map[string]TopicSpec{
		"shop.inv.orders":           {Create: true, Partitions: 3, ReplicationFactor: 2, Settings: map[string]string{"cleanup.policy": "compact"}},
		"shop.inv.log1":             {Create: true, Partitions: 9, ReplicationFactor: -1},
		"shop.x":                    {Create: true, Partitions: 9, ReplicationFactor: -1},
		"shop":                      byDefault, // schema changes
		"__debezium-heartbeat.shop": byDefault,
	} {
		if got := topics.specOf(topic); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", topic, got, want)
		}
	}
	// Without a default group nothing is made here, whatever groups there are.
	none := NewTopics(nil, TopicSpec{}, TopicGroup{Include: hasPrefix(""), Spec: TopicSpec{Create: true, Partitions: 1}})
	if got := none.specOf("shop.x"); got.Create {
		t.Errorf("got %+v", got)
	}
}

func TestEnsureMakesTopicsOfAGroup(t *testing.T) {
	cluster := newCluster(t)
	client := open(t, ClientConfig{Properties: properties(cluster)})
	topics := NewTopics(client, TopicSpec{Create: true, Partitions: 1, ReplicationFactor: 1},
		TopicGroup{Name: "wide", Include: func(s string) bool { return s == "wide" }, Spec: TopicSpec{Partitions: 4, Settings: map[string]string{"cleanup.policy": "compact"}}})
	for topic, want := range map[string]int{"wide": 4, "narrow": 1} {
		if err := topics.Ensure(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		details, err := open(t, ClientConfig{Properties: properties(cluster)}).admin.ListTopics(t.Context(), topic)
		if err != nil || len(details[topic].Partitions) != want {
			t.Errorf("%s: %v, %v", topic, details, err)
		}
	}
	if settings, err := client.topicSettings(t.Context(), "wide"); err != nil || settings["cleanup.policy"] != "compact" {
		t.Errorf("%v, %v", settings, err)
	}
}
