package binlog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/schema"
)

// definitions is what the reader knows of tables beyond TABLE_MAP, at the position that the stream has come to. The zero
// value knows nothing.
type definitions struct {
	catalog *schema.Catalog                                                               // to be changed by way of change
	changes int                                                                           // how often it may have changed: as long as this is the same, definitions are the same
	ask     func(ctx context.Context, database, table string) (*schema.Definition, error) // Config.Refresh
	history bool                                                                          // a schema history was given
	fold    bool                                                                          // Config.IgnoreCase

	lost map[tableName]lostDDL // tables that a statement has changed in a way that nobody can tell
	// unchanged reads ahead and says whether nothing has changed a table from the present position up to the end of the
	// server's binlog. Nil: that cannot be said.
	unchanged func(ctx context.Context, database, table string) (bool, error)
}

// lostDDL is a statement that could not be understood.
type lostDDL struct {
	where, sql string
	err        error
}

// key is a table's name as maps have it.
func (d *definitions) key(database, table string) tableName {
	if d.fold {
		return tableName{strings.ToLower(database), strings.ToLower(table)}
	}
	return tableName{database, table}
}

// known says that somebody could tell definitions. If nobody can, their absence is no surprise.
func (d *definitions) known() bool { return d.history || d.ask != nil }

// at is the table's definition at this position, nil when it is not known. The pointer is the same as long as no
// statement has changed the table.
func (d *definitions) at(database, table string) *schema.Definition {
	if d.catalog == nil {
		return nil
	}
	return d.catalog.Definition(database, table)
}

// change is the catalog for somebody who changes it.
func (d *definitions) change() *schema.Catalog {
	d.changes++
	return d.catalog
}

// refresh asks for the table as it is now, which may be later than this position: nil when it is gone, or when nobody can
// be asked. The catalog stays as it is.
func (d *definitions) refresh(ctx context.Context, database, table string) (*schema.Definition, error) {
	if d.ask == nil {
		return nil, nil
	}
	return d.ask(ctx, database, table)
}

// recover finds the definition at this position of a table of which a statement was not understood, when the binlog does
// not name its columns: the present one, if nothing has changed the table since. It returns nil when there was no such
// statement.
func (d *definitions) recover(ctx context.Context, database, table string) (*schema.Definition, error) {
	ddl, lost := d.lost[d.key(database, table)]
	if !lost {
		return nil, nil
	}
	const ways = "Choices: SET PERSIST binlog_row_metadata=FULL, take a new snapshot of the table and start behind this position " + howToStart +
		"; or name a schema history that has the statement (schema.history.internal.*); " +
		"or schema.history.internal.skip.unparseable.ddl=true, if the statement did not change the table's columns"
	stop := func(why string) error {
		return fmt.Errorf("the columns of the table are not known here%w, because the binlog does not name them (binlog_row_metadata=MINIMAL) and a statement at %s was not understood: %s (%w), and %s. %s",
			errUntold, ddl.where, abridge(ddl.sql), ddl.err, why, ways)
	}
	if d.ask == nil || d.unchanged == nil {
		return nil, stop("there is no server to ask")
	}
	def, err := d.ask(ctx, database, table)
	if err != nil {
		return nil, err
	}
	if def == nil {
		return nil, stop("the table is gone by now")
	}
	switch same, err := d.unchanged(ctx, database, table); {
	case err != nil:
		return nil, err
	case !same:
		return nil, stop("the table was changed again since, so what it is now does not tell")
	}
	d.adopt(database, table, def)
	return def, nil
}

// errUntold is in the errors of recover that say that nobody can tell. It has no text of its own.
var errUntold = errors.New("")

// adopt takes a definition for that of this position; nil: it is not known.
func (d *definitions) adopt(database, table string, def *schema.Definition) {
	if d.catalog != nil {
		d.change().Set(database, table, def)
	}
	delete(d.lost, d.key(database, table))
}

// lose notes that a statement has changed a table in a way that nobody can tell.
func (d *definitions) lose(t tableName, ddl lostDDL) {
	d.adopt(t.database, t.table, nil)
	if d.lost == nil {
		d.lost = make(map[tableName]lostDDL)
	}
	d.lost[d.key(t.database, t.table)] = ddl
}

// tables names the tables of a database that have a definition, in no order.
func (d *definitions) tables(database string) []string {
	if d.catalog == nil {
		return nil
	}
	return d.catalog.Tables(database)
}

// abridge cuts a statement for a message.
func abridge(sql string) string {
	const most = 300
	if len(sql) <= most {
		return sql
	}
	cut := most
	for cut > 0 && sql[cut]&0xc0 == 0x80 {
		cut--
	}
	return sql[:cut] + "…"
}
