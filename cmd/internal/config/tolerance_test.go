package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTolerance reads what becomes of records that cannot be written.
func TestTolerance(t *testing.T) {
	for name, test := range map[string]struct {
		set  []string
		want *Tolerance
		warn string
	}{
		"by default": {nil, nil, ""},
		"none":       {[]string{"errors.tolerance=NONE"}, nil, ""},
		"all":        {[]string{"errors.tolerance=all"}, &Tolerance{ReplicationFactor: 3}, ""},
		"with a topic": {
			[]string{"errors.tolerance=ALL", "errors.deadletterqueue.topic.name=dead", "errors.deadletterqueue.topic.replication.factor=-1", "errors.deadletterqueue.context.headers.enable=true"},
			&Tolerance{Topic: "dead", ReplicationFactor: -1, ContextHeaders: true}, "",
		},
		"a topic alone": {[]string{"errors.deadletterqueue.topic.name=dead"}, nil, "nothing goes there: errors.tolerance is none"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := load(t, workerText, connectorJSON(test.set...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, cfg.Connectors[0].Tolerance); diff != "" {
				t.Error(diff)
			}
			said := ""
			for _, w := range cfg.Warnings {
				said += w.String() + "\n"
			}
			if test.warn == "" && strings.Contains(said, "errors.") || !strings.Contains(said, test.warn) {
				t.Errorf("warnings: %s", said)
			}
		})
	}
}

// TestTopicOfDeadLettersIsItsOwn: a topic that has another purpose is refused.
func TestTopicOfDeadLettersIsItsOwn(t *testing.T) {
	worker := "bootstrap.servers=k1:9092\noffset.storage.topic=offsets\n"
	for topic, refused := range map[string]bool{
		"offsets": true, "offsets-schemas": true, "offsets-locks": true, "own": true, "history": true, "dead": false, "-locks": false,
	} {
		_, err := load(t, worker, connectorJSON("errors.tolerance=all", "errors.deadletterqueue.topic.name="+topic, "offsets.storage.topic=own",
			"schema.history.internal.kafka.topic=history", "schema.history.internal.kafka.bootstrap.servers=a:1"))
		if refused && !slices.Equal(keysOf(err), []string{"errors.deadletterqueue.topic.name"}) || !refused && err != nil {
			t.Errorf("%s: %v", topic, err)
		}
	}
}
