package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/schema"
)

// definitions are the tables' definitions as a compacted topic has them, for all processes: of each table what was written last.
type definitions struct {
	mu    sync.Mutex
	text  map[schema.TableName][]byte
	owner int // number of the process that may write; 0: each one
}

// fence has only p write from now on, as kafka.SchemaTopic.Fence does.
func (d *definitions) fence(p *process) {
	time.Sleep(2 * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owner = p.number
}

// definitionsOf are those of all as one process uses them.
type definitionsOf struct {
	*definitions
	p *process
}

var _ schema.Store = definitionsOf{}

// Load implements [schema.Store].
func (d definitionsOf) Load(context.Context, string, string) ([]schema.StoredTable, error) {
	time.Sleep(2 * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []schema.StoredTable
	for _, text := range d.text {
		t, err := schema.ParseStoredTable(text)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// Save implements [schema.Store]. A table without versions is forgotten.
func (d definitionsOf) Save(_ context.Context, _, _ string, tables []schema.StoredTable) error {
	time.Sleep(2 * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owner != 0 && d.owner != d.p.number {
		return fmt.Errorf("storing definitions: %w", emitter.ErrFenced)
	}
	if d.text == nil {
		d.text = make(map[schema.TableName][]byte)
	}
	for i := range tables {
		name := schema.TableName{Database: tables[i].Database, Table: tables[i].Table}
		if len(tables[i].Versions) == 0 {
			delete(d.text, name)
			continue
		}
		d.text[name] = slices.Clone(tables[i].Append(nil))
	}
	return nil
}

// Close implements [schema.Store].
func (d definitionsOf) Close() error { return nil }
