package main

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
)

// TestLeftOutIsSaid record by record with its place, but of many only the first ones in a minute; the others are counted, and none
// is not.
func TestLeftOutIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		p := newPoison(&config.Connector{Name: "orders", Tolerance: &config.Tolerance{Topic: "dead"}}, &registries{}, zap.New(core))
		leave := func(n int) {
			for i := range n {
				p.Told(&emitter.LeftOut{Topic: "p.shop.orders", Database: "shop", Table: "orders", Key: fmt.Append(nil, i), Size: 7, File: "mysql-bin.000001", Pos: 4, Err: errors.New("too large")})
			}
		}
		leave(25)
		said := logs.FilterMessageSnippet("a record is left out").All()
		if len(said) != saidOneByOne {
			t.Fatalf("%d of 25 are said", len(said))
		}
		for key, want := range map[string]any{
			"topic": "p.shop.orders", "table": "shop.orders", "key": "0", "size": int64(7), "file": "mysql-bin.000001", "pos": int64(4), "error": "too large", "dead_letters": "dead",
		} {
			if got := said[0].ContextMap()[key]; got != want {
				t.Errorf("%s: %v, want %v", key, got, want)
			}
		}
		time.Sleep(sayPeriod + time.Second)
		leave(12)
		p.close()
		leave(1)
		p.close()
		total := logs.FilterMessageSnippet("a record is left out").Len()
		for _, sum := range logs.FilterMessageSnippet("more records were left out").All() {
			total += int(sum.ContextMap()["records"].(int64))
		}
		if total != 38 || logs.Len() != 2*saidOneByOne+3 {
			t.Errorf("%d of 38 are said, in %d lines", total, logs.Len())
		}
	})
}

// TestNothingIsLeftOutByDefault.
func TestNothingIsLeftOutByDefault(t *testing.T) {
	p := newPoison(&config.Connector{}, &registries{}, zap.NewNop())
	cfg := emitter.DeliveryConfig{}
	if err := p.add(t.Context(), nil, &cfg); err != nil || cfg.Poison != nil || p.rows() != nil {
		t.Errorf("%v, %+v", err, cfg)
	}
	p.close()
}
