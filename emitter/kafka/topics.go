package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TopicSpec says how topics are made that do not exist.
type TopicSpec struct {
	// Create is whether we make them, as Connect does when topic.creation.default.* is set. Otherwise the brokers may do
	// so (auto.create.topics.enable).
	Create            bool
	Partitions        int32             // topic.creation.default.partitions; 0 and -1: the brokers' default
	ReplicationFactor int16             // topic.creation.default.replication.factor; 0 and -1: the brokers' default
	Settings          map[string]string // topic.creation.default.<setting> by the topic's own names, such as cleanup.policy
}

// TopicGroup is a group of topic.creation.groups: topics whose names match are made in another way.
type TopicGroup struct {
	Name string
	// Include and Exclude match a whole name: topic.creation.<group>.include and .exclude. A topic belongs to the group if
	// Include takes it and Exclude does not. A nil one takes nothing.
	Include, Exclude func(topic string) bool
	// Spec is how the group's topics are made. Partitions and ReplicationFactor that are 0 are those of the default group;
	// settings are the group's own alone, as in Connect.
	Spec TopicSpec
}

// Topics makes sure that topics exist before something is written to them. It is safe for concurrent use.
type Topics struct {
	client *Client
	spec   TopicSpec
	groups []TopicGroup
	store  *TopicStore // whose topic is made in its own way; nil: there is none

	mu    sync.Mutex
	known map[string]bool
	lost  map[string]bool // are gone, and cannot be made again: it is said
}

// NewTopics returns a Topics that has seen no topic yet. A topic is made as the first of the groups says that it belongs
// to, and by spec, the default group, if it belongs to none. Without spec.Create there are no groups in Connect, and none
// here.
func NewTopics(client *Client, spec TopicSpec, groups ...TopicGroup) *Topics {
	return &Topics{client: client, spec: spec, groups: groups, known: make(map[string]bool), lost: make(map[string]bool)}
}

// Keep has the topic of a store, if it is deleted while it is written to, made again as the store makes it. It is to be called before use.
func (t *Topics) Keep(store *TopicStore) { t.store = store }

// specOf is how a topic is made.
func (t *Topics) specOf(topic string) TopicSpec {
	if t.store != nil && topic == t.store.topic {
		return t.store.spec
	}
	if !t.spec.Create {
		return t.spec
	}
	for _, g := range t.groups {
		if g.Include == nil || !g.Include(topic) || g.Exclude != nil && g.Exclude(topic) {
			continue
		}
		spec := g.Spec
		spec.Create = true
		if spec.Partitions == 0 {
			spec.Partitions = t.spec.Partitions
		}
		if spec.ReplicationFactor == 0 {
			spec.ReplicationFactor = t.spec.ReplicationFactor
		}
		return spec
	}
	return t.spec
}

// Ensure returns when the topic exists. It asks the cluster once for each topic, then remembers. While the cluster
// cannot be reached it waits, until ctx ends. It is an error, with what to do, if the topic does not exist and cannot be
// made, or if we may not write to it.
func (t *Topics) Ensure(ctx context.Context, topic string) error {
	t.mu.Lock()
	defer t.mu.Unlock() // also so that two do not make the same topic
	if t.known[topic] {
		return nil
	}
	if err := t.client.EnsureTopic(ctx, topic, t.specOf(topic)); err != nil {
		return err
	}
	t.known[topic] = true
	return nil
}

// EnsureTopic returns when the topic exists, making it by spec if need be; an existing one is left as it is. While the
// cluster cannot be reached it waits, until ctx ends.
func (c *Client) EnsureTopic(ctx context.Context, topic string, spec TopicSpec) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := c.ensureTopic(ctx, topic, spec)
		if err == nil || ctx.Err() != nil || !Transient(err) {
			return err
		}
		if err := pause(ctx, wait, err); err != nil {
			return err
		}
	}
}

func (c *Client) ensureTopic(ctx context.Context, topic string, spec TopicSpec) error {
	exists, err := c.topicExists(ctx, topic)
	if err != nil || exists {
		return err
	}
	if spec.Create {
		return c.createTopic(ctx, topic, spec)
	}
	return c.letBrokersCreate(ctx, topic)
}

func (c *Client) topicExists(ctx context.Context, topic string) (bool, error) {
	code, err := c.askForTopic(ctx, topic, false)
	switch {
	case err != nil:
		return false, err
	case code == nil, errors.Is(code, kerr.LeaderNotAvailable):
		return true, nil
	case errors.Is(code, kerr.UnknownTopicOrPartition):
		return false, nil
	}
	return false, c.topicError("asking for", topic, code)
}

// askForTopic asks a broker, not what the client remembers. The first result is the broker's verdict on the topic.
func (c *Client) askForTopic(ctx context.Context, topic string, create bool) (code, err error) {
	t, err := c.askBroker(ctx, topic, create)
	if err != nil {
		return nil, err
	}
	return kerr.ErrorForCode(t.ErrorCode), nil
}

func (c *Client) askBroker(ctx context.Context, topic string, create bool) (*kmsg.MetadataResponseTopic, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = create
	want := kmsg.NewMetadataRequestTopic()
	want.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, want)
	resp, err := req.RequestWith(ctx, c.inner.Kgo)
	if err != nil {
		return nil, fmt.Errorf("asking for topic %s: %w", topic, c.unreachable(err))
	}
	if len(resp.Topics) != 1 {
		return nil, fmt.Errorf("asking for topic %s: the answer names %d topics", topic, len(resp.Topics))
	}
	return &resp.Topics[0], nil
}

func (c *Client) createTopic(ctx context.Context, topic string, spec TopicSpec) error {
	partitions, replicas := spec.Partitions, spec.ReplicationFactor
	if partitions == 0 {
		partitions = -1
	}
	if replicas == 0 {
		replicas = -1
	}
	settings := make(map[string]*string, len(spec.Settings))
	for name, value := range spec.Settings {
		settings[name] = &value
	}
	resp, err := c.admin.CreateTopic(ctx, partitions, replicas, settings, topic)
	if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
		return c.awaitLeaders(ctx, topic)
	}
	return c.topicError("making", topic, &brokerError{err, resp.ErrMessage})
}

// awaitLeaders returns when the partitions of a topic that was made a moment ago have leaders, or soon. Writing needs them,
// and a client that asks too early waits much longer before it asks again.
func (c *Client) awaitLeaders(ctx context.Context, topic string) error {
	const most = 250 * time.Millisecond
	for wait := 5 * time.Millisecond; wait < most; wait *= 2 {
		t, err := c.askBroker(ctx, topic, false)
		if err != nil || led(t) {
			return err
		}
		if err := pause(ctx, wait, nil); err != nil {
			return err
		}
	}
	return nil
}

func led(t *kmsg.MetadataResponseTopic) bool {
	return t.ErrorCode == 0 && len(t.Partitions) > 0 &&
		!slices.ContainsFunc(t.Partitions, func(p kmsg.MetadataResponseTopicPartition) bool { return p.ErrorCode != 0 || p.Leader < 0 })
}

// letBrokersCreate asks for the topic as a Java producer does, upon which brokers with auto.create.topics.enable make it.
func (c *Client) letBrokersCreate(ctx context.Context, topic string) error {
	const tries = 20
	var code error
	for range tries {
		var err error
		if code, err = c.askForTopic(ctx, topic, true); err != nil {
			return err
		}
		switch {
		case code == nil, errors.Is(code, kerr.LeaderNotAvailable): // just made
			return nil
		case !errors.Is(code, kerr.UnknownTopicOrPartition) && !kerr.IsRetriable(code):
			return c.topicError("asking for", topic, code)
		}
		if err := pause(ctx, 150*time.Millisecond, code); err != nil {
			return err
		}
	}
	// Not marked as transient: brokers that have not made it by now do not do so.
	return fmt.Errorf("topic %s %w and the brokers do not make it (%v). Make it (kafka-topics.sh --bootstrap-server %s --create --topic '%s'), or let Tidemark do so: "+
		"set topic.creation.default.partitions and topic.creation.default.replication.factor in the connector", topic, errNoTopic, code, c.seeds[0], topic)
}

// topicError adds what to do about an answer of the cluster.
func (c *Client) topicError(doing, topic string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		hint = ". Allow it: " + c.acl(topic)
	case errors.Is(err, kerr.InvalidReplicationFactor):
		hint = ". The cluster has too few brokers for it: set the replication factor lower (topic.creation.default.replication.factor, offset.storage.replication.factor, errors.deadletterqueue.topic.replication.factor; -1: the brokers' default)"
	case errors.Is(err, kerr.InvalidTopicException):
		hint = ". The name is not allowed: letters, digits, '.', '_' and '-', at most 249; topic.prefix is its beginning"
	}
	return fmt.Errorf("%s topic %s: %w%s", doing, topic, &brokerError{err, ""}, hint)
}

// brokerError is an error of a broker with its own words, if it had some, instead of the code's.
type brokerError struct {
	cause   error
	message string
}

func (e *brokerError) Error() string {
	if code, ok := errors.AsType[*kerr.Error](e.cause); ok && e.message != "" {
		return code.Message + ": " + strings.TrimRight(e.message, ". ")
	}
	return words(e.cause)
}

func (e *brokerError) Unwrap() error { return e.cause }

// acl is the command that allows what is needed on a topic.
func (c *Client) acl(topic string) string {
	return fmt.Sprintf("%s --operation Create --operation Describe --operation Write --operation Read --topic '%s'", c.allow(), topic)
}

// allow begins a command that allows this client something.
func (c *Client) allow() string {
	user := c.user
	if user == "" {
		user = "ANONYMOUS"
	}
	return fmt.Sprintf("kafka-acls.sh --bootstrap-server %s --add --allow-principal User:%s", c.seeds[0], user)
}
