package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// An adopted history and the store complete each other: a restart without the history knows every table as it was, and one
// with a history that was begun late knows those that it does not have.
func TestMerge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offsets.dat.schemas")
	store, err := schema.OpenFileStore(path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	table := func(sql string) *schema.Definition {
		def, err := schema.ParseCreateTable("d", sql)
		if err != nil {
			t.Fatal(err)
		}
		return def
	}
	ctx := context.Background()
	s := &schemas{c: &config.Connector{Name: "shop", Prefix: "shop1"}, store: store}
	if err := store.Save(ctx, "shop", "shop1", []schema.StoredTable{
		{Database: "d", Table: "stored", Versions: []schema.StoredVersion{{Definition: table("CREATE TABLE stored (a INT)")}}},
		{Database: "d", Table: "both", Versions: []schema.StoredVersion{{Definition: table("CREATE TABLE both (a INT)")}}},
	}); err != nil {
		t.Fatal(err)
	}
	at := offset.Offset{File: "mysql-bin.000002", Pos: 700}
	for range 2 {
		catalog := schema.NewCatalog(schema.CatalogOptions{})
		catalog.Set("d", "both", table("CREATE TABLE both (a INT, b BOOL)"))
		catalog.Set("d", "adopted", table("CREATE TABLE adopted (a BOOL)"))
		catalog.SetServer("latin1")
		if err := s.merge(ctx, schema.CatalogOptions{}, catalog, at); err != nil {
			t.Fatal(err)
		}
		if def := catalog.Definition("d", "stored"); def == nil {
			t.Error("a table that only the store has is not known")
		}
		if def := catalog.Definition("d", "both"); len(def.Columns) != 2 {
			t.Error("the store wins over the history")
		}
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := store.Load(ctx, "shop", "shop1")
	if err != nil {
		t.Fatal(err)
	}
	alone := schema.NewCatalog(schema.CatalogOptions{})
	alone.Load(tables, func(v *schema.StoredVersion) bool { return v.Pos <= at.Pos })
	for name, columns := range map[string]int{"stored": 1, "both": 2, "adopted": 1} {
		if def := alone.Definition("d", name); def == nil || len(def.Columns) != columns {
			t.Errorf("in the store %s is %v, want %d columns", name, def, columns)
		}
	}
	if v := alone.Version(schema.TableName{}); v.ServerCharset != "latin1" {
		t.Errorf("the store has the server's character set %q", v.ServerCharset)
	}
	if err := s.merge(ctx, schema.CatalogOptions{}, alone, at); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || after.Size() != before.Size() {
		t.Errorf("what the store has already is written again: %d bytes, then %d (%v)", before.Size(), after.Size(), err)
	}
}

// What a store has of an offset that was given up must not count at another start.
func TestReplaceStored(t *testing.T) {
	store, err := schema.OpenFileStore(filepath.Join(t.TempDir(), "offsets.dat.schemas"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := &schemas{c: &config.Connector{Name: "shop", Prefix: "shop1"}, store: store}
	table := func(name string, pos int64) schema.StoredTable {
		return schema.StoredTable{Database: "d", Table: name, Versions: []schema.StoredVersion{{File: "mysql-bin.000001", Pos: pos, Definition: &schema.Definition{Database: "d", Name: name}}}}
	}
	if err := store.Save(t.Context(), "other", "shop1", []schema.StoredTable{table("a", 1)}); err != nil {
		t.Fatal(err)
	}
	for _, tables := range [][]schema.StoredTable{{table("a", 1), table("b", 1)}, {table("b", 2), table("c", 2)}, nil} {
		if err := s.replaceStored(t.Context(), tables); err != nil {
			t.Fatal(err)
		}
		got, err := store.Load(t.Context(), "shop", "shop1")
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b schema.StoredTable) int { return strings.Compare(a.Table, b.Table) })
		if len(got) != len(tables) {
			t.Fatalf("the store has %v, want %v", got, tables)
		}
		for i := range got {
			if got[i].Table != tables[i].Table || got[i].Versions[0].Pos != tables[i].Versions[0].Pos {
				t.Errorf("the store has %v, want %v", got[i], tables[i])
			}
		}
	}
	if got, err := store.Load(t.Context(), "other", "shop1"); err != nil || len(got) != 1 {
		t.Errorf("of another connector it has %v (%v)", got, err)
	}
}
