package kafka

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A topic that was made is written to when it has leaders: a client that finds none waits long before it asks again.
func TestEnsureTopicWaitsForLeaders(t *testing.T) {
	for name, broken := range map[string]func(*kmsg.MetadataResponseTopic){
		"not known yet": func(topic *kmsg.MetadataResponseTopic) { topic.ErrorCode = kerr.UnknownTopicOrPartition.Code },
		"no partitions": func(topic *kmsg.MetadataResponseTopic) { topic.ErrorCode = kerr.LeaderNotAvailable.Code },
		"no leader": func(topic *kmsg.MetadataResponseTopic) {
			p := kmsg.NewMetadataResponseTopicPartition()
			p.ErrorCode, p.Leader = kerr.LeaderNotAvailable.Code, -1
			topic.Partitions = append(topic.Partitions, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t)
			var made atomic.Bool
			var early, late atomic.Int32
			cluster.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				made.Store(true)
				return nil, nil, false
			})
			cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				metadata := req.(*kmsg.MetadataRequest)
				if !made.Load() || len(metadata.Topics) != 1 {
					return nil, nil, false
				}
				if early.Load() == 2 {
					late.Add(1)
					return nil, nil, false
				}
				early.Add(1)
				resp := req.ResponseKind().(*kmsg.MetadataResponse)
				topic := kmsg.NewMetadataResponseTopic()
				topic.Topic = metadata.Topics[0].Topic
				broken(&topic)
				resp.Topics = append(resp.Topics, topic)
				return resp, nil, true
			})
			client := open(t, ClientConfig{Properties: properties(cluster)})
			if err := client.EnsureTopic(t.Context(), "t", TopicSpec{Create: true, Partitions: 1, ReplicationFactor: 1}); err != nil {
				t.Fatal(err)
			}
			if late.Load() != 1 {
				t.Errorf("asked %d times while there is no leader, and %d times with one; want 2 and 1", early.Load(), late.Load())
			}
		})
	}
}
