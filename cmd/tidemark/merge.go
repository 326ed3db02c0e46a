package main

import (
	"context"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// merge makes one of an adopted history, whose tables at an offset are in the catalog, and the store. What the history
// does not have comes from the store: the history may have been begun after it. What it has goes into the store, which so
// is whole if the history is not named any more one day.
func (s *schemas) merge(ctx context.Context, opts schema.CatalogOptions, catalog *schema.Catalog, at offset.Offset) error {
	stored, err := s.store.Load(ctx, s.c.Name, s.c.Prefix)
	if err != nil {
		return err
	}
	own := schema.NewCatalog(opts)
	own.Load(stored, binlog.Reached(at))
	texts := map[schema.TableName]string{}
	var more []schema.StoredTable
	for _, t := range own.All() {
		name := schema.TableName{Database: t.Database, Table: t.Table}
		texts[name] = string(t.Append(nil))
		if catalog.Version(name) == (schema.StoredVersion{}) {
			more = append(more, t)
		}
	}
	catalog.Load(more, func(*schema.StoredVersion) bool { return true })
	var changed []schema.StoredTable
	for _, t := range catalog.All() {
		if texts[schema.TableName{Database: t.Database, Table: t.Table}] == string(t.Append(nil)) {
			continue
		}
		v := &t.Versions[0]
		v.File, v.Pos = at.File, at.Pos
		if !at.GTIDs.IsAbsent() {
			v.GTIDs = at.GTIDs.String()
		}
		changed = append(changed, t)
	}
	if len(changed) == 0 {
		return nil
	}
	return s.store.Save(ctx, s.c.Name, s.c.Prefix, changed)
}
