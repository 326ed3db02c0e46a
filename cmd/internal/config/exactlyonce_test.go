package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Either file can ask for exactly-once delivery.
func TestExactlyOnce(t *testing.T) {
	const topic = "bootstrap.servers=k:9092\noffset.storage.topic=t\ngroup.id=g\n"
	file := "bootstrap.servers=k:9092\noffset.storage.file.filename=f\ngroup.id=g\n"
	for name, tt := range map[string]struct {
		worker    string
		connector []string
		want      *ExactlyOnce
		warned    []string
	}{
		"nobody asks": {worker: topic},
		"requested":   {worker: topic, connector: []string{"exactly.once.support=requested"}},
		"preparing":   {worker: topic + "exactly.once.source.support=preparing\n"},
		"required":    {topic, []string{"exactly.once.support=REQUIRED"}, &ExactlyOnce{"poll", time.Second, time.Minute}, nil},
		"enabled":     {topic + "exactly.once.source.support=enabled\n", nil, &ExactlyOnce{"poll", time.Second, time.Minute}, nil},
		"the interval is the worker's": {
			topic + "offset.flush.interval.ms=5000\n",
			[]string{"exactly.once.support=required", "transaction.boundary=interval"},
			&ExactlyOnce{"interval", 5 * time.Second, time.Minute}, nil,
		},
		"the interval leaves little time": {
			topic,
			[]string{"exactly.once.support=required", "transaction.boundary=interval", "transaction.boundary.interval.ms=30001"},
			&ExactlyOnce{"interval", 30_001 * time.Millisecond, time.Minute},
			[]string{"transaction.boundary.interval.ms"},
		},
		"half of the time": {
			topic,
			[]string{"exactly.once.support=required", "transaction.boundary=interval", "transaction.boundary.interval.ms=30000"},
			&ExactlyOnce{"interval", 30 * time.Second, time.Minute}, nil,
		},
		"all that can be set": {
			topic,
			[]string{"exactly.once.support=required", "transaction.boundary=Source", "transaction.boundary.interval.ms=20", "producer.override.transaction.timeout.ms=900000"},
			&ExactlyOnce{"source", 20 * time.Millisecond, 15 * time.Minute}, nil,
		},
		"connector": {
			topic,
			[]string{"exactly.once.support=required", "transaction.boundary=connector"},
			&ExactlyOnce{"connector", time.Second, time.Minute},
			[]string{"transaction.boundary"},
		},
		"the worker's producers": {
			topic + "exactly.once.source.support=enabled\nproducer.transaction.timeout.ms=120000\n", nil, &ExactlyOnce{"poll", time.Second, 2 * time.Minute}, nil,
		},
		"a topic of its own beside a file": {
			file, []string{"exactly.once.support=required", "offsets.storage.topic=own"}, &ExactlyOnce{"poll", time.Second, time.Minute}, nil,
		},
		"without it the keys mean nothing": {worker: file, connector: []string{"transaction.boundary=connector", "producer.override.transaction.timeout.ms=120000"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := load(t, tt.worker, connectorJSON(tt.connector...))
			if err != nil {
				t.Fatal(err)
			}
			c := cfg.Connectors[0]
			if diff := cmp.Diff(tt.want, c.ExactlyOnce); diff != "" {
				t.Error(diff)
			}
			if c.TransactionalID != "g-orders-0" {
				t.Errorf("transactional id %q", c.TransactionalID)
			}
			var warned []string
			for _, w := range cfg.Warnings {
				warned = append(warned, w.Key)
			}
			if !slices.Equal(warned, tt.warned) {
				t.Errorf("warnings %v", cfg.Warnings)
			}
		})
	}
	cfg, err := load(t, strings.ReplaceAll(topic, "group.id=g\n", ""), connectorJSON())
	if err != nil || cfg.Connectors[0].TransactionalID != "" {
		t.Errorf("without group.id: %v, %v", cfg, err)
	}
}
