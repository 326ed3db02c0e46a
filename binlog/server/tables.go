package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// TableID names a table.
type TableID struct{ Database, Name string }

// String returns db.table.
func (t TableID) String() string { return t.Database + "." + t.Name }

// TableText is a table and its SHOW CREATE TABLE text.
type TableText struct {
	TableID
	SQL string
}

// Tables returns the base tables that keep accepts, by database and name. Tables on which the user has no privilege at
// all are not to be seen.
func (c *Conn) Tables(ctx context.Context, keep func(database, table string) bool) ([]TableID, error) {
	res, err := c.query(ctx, "SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t FROM information_schema.TABLES "+
		"WHERE TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED') AND TABLE_SCHEMA NOT IN ('mysql','sys','information_schema','performance_schema') ORDER BY 1, 2")
	if err != nil {
		return nil, err
	}
	var tables []TableID
	for i := range res.rows() {
		if t := (TableID{res.text(i, "s"), res.text(i, "t")}); keep(t.Database, t.Name) {
			tables = append(tables, t)
		}
	}
	return tables, nil
}

// ShowCreate returns the SHOW CREATE TABLE text of a table as it is now. A table that is gone is an [ErrNoTable].
func (c *Conn) ShowCreate(ctx context.Context, database, table string) (string, error) {
	res, err := c.query(ctx, "SHOW CREATE TABLE "+quoteName(database)+"."+quoteName(table))
	switch code(err) {
	case 1049, 1051, 1146:
		return "", &fault{text: fmt.Sprintf("table %s.%s", database, table), kind: ErrNoTable, cause: err}
	case 1044, 1142, 1143, 1227:
		return "", &fault{
			text: fmt.Sprintf("user '%s' may not see the definition of table %s.%s (GRANT SELECT ON %s.* TO '%s'@'%%')",
				c.cfg.User, database, table, quoteName(database), c.cfg.User),
			kind: ErrAccess, cause: err,
		}
	}
	if err != nil {
		return "", err
	}
	sql := res.text(0, "Create Table")
	if sql == "" {
		return "", faultf(ErrNoTable, "%s.%s is a view, not a table", database, table)
	}
	return sql, nil
}

// definitionRounds is how often the definitions are read again before DDL without end is an error.
const definitionRounds = 5

// Definitions returns the definitions of all tables that keep accepts and the position at which they hold. Those that
// need does not accept are left out when they cannot be had: the user may not see them, or they change all the time.
//
// They are read between two looks at the binlog's position; if it did not move, nothing was changed meanwhile. A
// server that never rests is met otherwise: everything is read twice, and a table counts whose text was the same both
// times, which was then its text at the position between the two readings. A table that is altered at each look is an
// error.
func (c *Conn) Definitions(ctx context.Context, keep, need func(database, table string) bool) ([]TableText, Position, error) {
	before, err := c.Position(ctx)
	if err != nil {
		return nil, Position{}, err
	}
	var last []TableText
	for round := 0; ; round++ {
		texts, err := c.readDefinitions(ctx, keep, need)
		if err != nil {
			return nil, Position{}, err
		}
		after, err := c.Position(ctx)
		if err != nil {
			return nil, Position{}, err
		}
		if after == before {
			return texts, before, nil
		}
		if round > 0 {
			moved := changed(last, texts)
			needed := slices.ContainsFunc(moved, func(t TableID) bool { return need(t.Database, t.Name) })
			switch {
			case len(moved) == 0:
				return texts, before, nil
			case round < definitionRounds:
			case needed:
				return nil, Position{}, faultf(nil, "the tables of %s change faster than their definitions can be read (%s); start again when the DDL is done",
					c.name(), join(moved))
			default:
				return slices.DeleteFunc(texts, func(t TableText) bool { return slices.Contains(moved, t.TableID) }), before, nil
			}
		}
		last, before = texts, after
	}
}

func (c *Conn) readDefinitions(ctx context.Context, keep, need func(database, table string) bool) ([]TableText, error) {
	ids, err := c.Tables(ctx, keep)
	if err != nil {
		return nil, err
	}
	texts := make([]TableText, 0, len(ids))
	for _, id := range ids {
		sql, err := c.ShowCreate(ctx, id.Database, id.Name)
		switch {
		case isKind(err, ErrNoTable): // dropped since the list was made
			continue
		case isKind(err, ErrAccess) && !need(id.Database, id.Name):
			continue
		case err != nil:
			return nil, err
		}
		texts = append(texts, TableText{id, sql})
	}
	return texts, nil
}

// changed returns the tables that are not the same in both.
func changed(a, b []TableText) []TableID {
	was := make(map[TableID]string, len(a))
	for _, t := range a {
		was[t.TableID] = withoutCounter(t.SQL)
	}
	var tables []TableID
	for _, t := range b {
		if sql, ok := was[t.TableID]; !ok || sql != withoutCounter(t.SQL) {
			tables = append(tables, t.TableID)
		}
		delete(was, t.TableID)
	}
	for id := range was {
		tables = append(tables, id)
	}
	return tables
}

func join(tables []TableID) string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.String()
	}
	return strings.Join(names, ", ")
}

// withoutCounter takes the AUTO_INCREMENT counter out of the table options, which inserts move.
func withoutCounter(sql string) string {
	const option = " AUTO_INCREMENT="
	end := strings.LastIndex(sql, "\n)")
	if end < 0 {
		return sql
	}
	i := strings.Index(sql[end:], option)
	if i < 0 {
		return sql
	}
	i += end
	j := i + len(option)
	for j < len(sql) && sql[j] >= '0' && sql[j] <= '9' {
		j++
	}
	return sql[:i] + sql[j:]
}
