package main

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/schema"
)

// checkTables finds captured tables whose rows could not be written, before any of them comes.
func checkTables(c *config.Connector, em *emitter.Emitter, catalog *schema.Catalog) error {
	for _, database := range catalog.Databases() {
		for _, table := range catalog.Tables(database) {
			if err := checkTable(c, em, catalog.Definition(database, table)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkTable(c *config.Connector, em *emitter.Emitter, def *schema.Definition) error {
	if def == nil || !c.Filter.Captured(def.Database, def.Name) {
		return nil
	}
	names := make([]string, len(def.Columns))
	for i := range def.Columns {
		names[i] = def.Columns[i].Name
	}
	return em.CheckColumns(def.Database, def.Name, names)
}

// checkChange is checkTables for the tables of a statement.
func checkChange(c *config.Connector, em *emitter.Emitter, ev *binlog.SchemaChange) error {
	for _, change := range ev.Changes {
		for _, t := range change.Changes {
			if err := checkTable(c, em, t.Definition); err != nil {
				return fmt.Errorf("%s:%d: %w", ev.Info.File, ev.Info.Pos, err)
			}
		}
	}
	return nil
}
