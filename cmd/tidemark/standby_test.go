package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// Without a group there is no lock, and the connector just runs.
func TestWithoutAGroup(t *testing.T) {
	for name, w := range map[string]*config.Worker{
		"a file":      {OffsetFile: "offsets.dat", GroupID: "g"},
		"no group.id": {OffsetTopic: &config.OffsetTopic{Name: "offsets"}},
	} {
		core, logs := observer.New(zap.InfoLevel)
		s, err := newStandby(t.Context(), &config.Connector{Name: "c"}, w, new(kafka.Line), zap.New(core))
		if err != nil || s != nil {
			t.Fatal(name, s, err)
		}
		ran := false
		err = oneOfSeveral(t.Context(), s, func(_ context.Context, may func() bool) error {
			ran = may()
			return nil
		})
		if err != nil || !ran {
			t.Errorf("%s: ran and may write: %v, %v", name, ran, err)
		}
		if n := logs.FilterMessageSnippet("group.id is not set").Len(); (n == 1) != (w.GroupID == "") {
			t.Errorf("%s: said %d times that there is no standby", name, n)
		}
	}
}

// What another process of the connector does to this one is told from its own faults, however much is said around it.
func TestWhatAnotherProcessCauses(t *testing.T) {
	cfg := standbyConfig(&config.Connector{Name: "c"}, &config.Worker{GroupID: "g", OffsetTopic: &config.OffsetTopic{Name: "offsets"}}, new(kafka.Line), zap.NewNop())
	for err, want := range map[error][2]bool{
		emitter.ErrFenced: {true, false}, server.ErrReplaced: {false, true}, server.ErrServerIDInUse: {}, emitter.ErrStale: {},
	} {
		err = fmt.Errorf("connector c: %w", err)
		if got := [2]bool{cfg.Fenced(err), cfg.Replaced(err)}; got != want {
			t.Errorf("%v: fenced and replaced %v, want %v", err, got, want)
		}
	}
}

func TestLockOf(t *testing.T) {
	lock := lockOf(&config.Connector{Name: "shop"}, &config.Worker{
		GroupID: "connect", OffsetTopic: &config.OffsetTopic{Name: "connect-offsets", Partitions: 25, ReplicationFactor: 2}, StandbySession: 7 * time.Second,
		Client: map[string]string{"bootstrap.servers": "k:9092"},
	}, zap.NewNop())
	if lock.Group != "tidemark-connect-shop" || lock.Topic != "connect-offsets-locks" || lock.ReplicationFactor != 2 || lock.SessionTimeout != 7*time.Second ||
		lock.ClientID != "connect-shop-lock" || lock.Properties["bootstrap.servers"] != "k:9092" {
		t.Errorf("%+v", lock)
	}
}
