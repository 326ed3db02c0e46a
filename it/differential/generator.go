// Package differential makes random SQL from a seed: tables of all types, rows with edge values, and DDL in between. The tests of
// this package let one server run it while a Debezium connector and Tidemark read the same binlog, and compare every record.
package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Generator makes SQL for one database. Its statements depend on the seed and on nothing else. Not safe for concurrent use.
type Generator struct {
	r        *rand.Rand
	database string
	kinds    []kind
	tables   []*table
	before   []*table // as they were before the last change of a table
	made     int      // tables and columns named so far
}

type table struct {
	name    string
	columns []column
	key     []string // of the primary key or unique key
}

type column struct {
	name, sql string
	kind      kind
	generated bool
	required  bool // NOT NULL without a default
}

// Limits keep values out at which Debezium stops in some time precision modes, when the column is NOT NULL.
type Limits struct {
	Day       bool // TIME stays between 0 and 24 hours: connect, isostring
	Centuries bool // DATETIME stays between 1678 and 2261: nanoseconds
}

// New makes a generator.
func New(seed uint64, database string, limits Limits) *Generator {
	return &Generator{r: rand.New(rand.NewPCG(seed, 0x7469_6465)), database: database, kinds: kinds(limits)}
}

// chance is true once in n times.
func (g *Generator) chance(n int) bool { return g.r.IntN(n) == 0 }

func (g *Generator) pick() *table { return g.tables[g.r.IntN(len(g.tables))] }

// Setup returns the statements that make the database with so many tables.
func (g *Generator) Setup(tables int) []string {
	statements := []string{
		"CREATE DATABASE " + g.database + " CHARACTER SET " + []string{"utf8mb4", "utf8mb4", "latin1"}[g.r.IntN(3)], "USE " + g.database,
	}
	for range tables {
		statements = append(statements, g.create())
	}
	return statements
}

// Forget drops the tables whose CREATE statement, the i-th of those that Setup returned, was refused.
func (g *Generator) Forget(refused func(i int) bool) {
	var kept []*table
	for i, t := range g.tables {
		if !refused(i) {
			kept = append(kept, t)
		}
	}
	g.tables = kept
}

// Session returns the statements that a connection runs first.
func (g *Generator) Session() []string {
	return []string{"SET NAMES utf8mb4", "SET SESSION sql_mode=''", "SET SESSION time_zone='+00:00'", "USE " + g.database}
}

func (g *Generator) name(prefix string) string {
	g.made++
	return fmt.Sprintf("%s_%d", prefix, g.made)
}

// column makes a column; its definition is without the name.
func (g *Generator) column() column {
	k := g.kinds[g.r.IntN(len(g.kinds))]
	c := column{name: g.name(k.name), sql: k.sql(g.r), kind: k}
	if k.text && g.chance(3) {
		c.sql += " CHARACTER SET " + charsets[g.r.IntN(len(charsets))]
	}
	return c
}

// definition is what follows a column's name. It also decides whether the column is required.
func (g *Generator) definition(c *column) string {
	sql := c.sql
	null := g.chance(2)
	c.required = !null
	if null {
		sql += " NULL"
	} else {
		sql += " NOT NULL"
	}
	if !c.kind.plain && g.chance(3) {
		value := c.kind.value(g.r, c.sql)
		if c.kind.name == "enum" || c.kind.name == "set" {
			value = "'a'"
		}
		// Zero dates and what a client may not write in a default stay out: the statement would be refused.
		if !strings.Contains(value, "0000-00-00") && !strings.Contains(value, "-00-") {
			sql += " DEFAULT " + value
			c.required = false
		}
	}
	// Debezium stops at a comment on geometry with include.schema.comments.
	if g.chance(6) && c.kind.name != "point" && c.kind.name != "geometry" {
		sql += " COMMENT " + quote(fmt.Sprintf("about %s; it's \"%d\"", c.name, g.r.IntN(100)))
	}
	if g.chance(15) && !c.required {
		sql += " INVISIBLE"
	}
	return sql
}

// create makes a table with a key of any kind, or none.
func (g *Generator) create() string {
	t := &table{name: g.name("t")}
	var parts []string
	for range 3 + g.r.IntN(9) {
		c := g.column()
		parts = append(parts, "`"+c.name+"` "+g.definition(&c))
		t.columns = append(t.columns, c)
	}
	var keys []int
	for i, c := range t.columns {
		if c.kind.key && len(keys) < 3 && !strings.Contains(parts[i], "INVISIBLE") && g.chance(2) {
			keys = append(keys, i)
		}
	}
	g.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	switch style := g.r.IntN(6); {
	case style == 0 || len(keys) == 0 && style < 4:
		t.columns = append([]column{{name: "id", sql: "INT", generated: true}}, t.columns...)
		parts = append([]string{"`id` INT NOT NULL AUTO_INCREMENT PRIMARY KEY"}, parts...)
		t.key = []string{"id"}
	case len(keys) == 0:
	default:
		for _, i := range keys {
			t.key = append(t.key, t.columns[i].name)
			if style < 4 {
				parts[i] = strings.Replace(parts[i], " NULL", " NOT NULL", 1)
				parts[i] = strings.Replace(parts[i], "NOT NOT", "NOT", 1)
			}
		}
		kind := "PRIMARY KEY"
		if style >= 4 {
			kind = "UNIQUE KEY u"
		}
		parts = append(parts, fmt.Sprintf("%s (`%s`)", kind, strings.Join(t.key, "`,`")))
	}
	if g.chance(5) {
		name := g.name("gen")
		parts = append(parts, fmt.Sprintf("`%s` INT AS (%d+1) %s", name, g.r.IntN(100), []string{"VIRTUAL", "STORED"}[g.r.IntN(2)]))
		t.columns = append(t.columns, column{name: name, sql: "INT", generated: true})
	}
	sql := fmt.Sprintf("CREATE TABLE `%s` (%s)", t.name, strings.Join(parts, ", "))
	if g.chance(4) {
		sql += " DEFAULT CHARSET=" + charsets[g.r.IntN(3)]
	}
	if g.chance(8) {
		sql += " COMMENT='a table'"
	}
	g.tables = append(g.tables, t)
	return sql
}

// Refused tells the generator that the server has refused the change of a table that was its last step.
func (g *Generator) Refused() { g.tables = g.before }

// keep remembers the tables.
func (g *Generator) keep() {
	g.before = nil
	for _, t := range g.tables {
		copied := *t
		copied.columns = append([]column(nil), t.columns...)
		g.before = append(g.before, &copied)
	}
}

// Step returns the statements of one step: rows in or out of a transaction, or a change of a table, which is one statement.
func (g *Generator) Step() []string {
	g.keep()
	switch n := g.r.IntN(40); {
	case n == 0 && len(g.tables) < 30:
		return []string{g.create()}
	case n < 3:
		return []string{g.alter()}
	case n == 3 && len(g.tables) > 5:
		return []string{g.drop()}
	case n < 10:
		statements := []string{"BEGIN"}
		for range 1 + g.r.IntN(5) {
			statements = append(statements, g.rows())
		}
		if g.chance(5) {
			return append(statements, "ROLLBACK")
		}
		return append(statements, "COMMIT")
	default:
		return []string{g.rows()}
	}
}

func (g *Generator) value(c column) string {
	if !c.required && g.chance(6) {
		return []string{"NULL", "DEFAULT"}[g.r.IntN(2)]
	}
	return c.kind.value(g.r, c.sql)
}

// rows is a statement that changes rows.
func (g *Generator) rows() string {
	t := g.pick()
	set := func() string {
		var parts []string
		for _, c := range t.columns {
			if !c.generated && (len(parts) == 0 || g.chance(3)) {
				parts = append(parts, fmt.Sprintf("`%s`=%s", c.name, g.value(c)))
			}
		}
		return strings.Join(parts, ", ")
	}
	some := fmt.Sprintf(" ORDER BY RAND(%d) LIMIT %d", g.r.IntN(1000), 1+g.r.IntN(4))
	switch n := g.r.IntN(10); {
	case n < 2:
		return fmt.Sprintf("UPDATE `%s` SET %s%s", t.name, set(), some)
	case n == 2:
		return fmt.Sprintf("DELETE FROM `%s`%s", t.name, some)
	default:
		var names, rows []string
		for _, c := range t.columns {
			if !c.generated {
				names = append(names, c.name)
			}
		}
		for range 1 + g.r.IntN(6) {
			var values []string
			for _, c := range t.columns {
				if !c.generated {
					values = append(values, g.value(c))
				}
			}
			rows = append(rows, "("+strings.Join(values, ",")+")")
		}
		verb := "INSERT IGNORE"
		if n == 3 {
			verb = "REPLACE"
		}
		return fmt.Sprintf("%s INTO `%s` (`%s`) VALUES %s", verb, t.name, strings.Join(names, "`,`"), strings.Join(rows, ","))
	}
}

// alter changes a table.
func (g *Generator) alter() string {
	t := g.pick()
	i := g.r.IntN(len(t.columns))
	c := &t.columns[i]
	inKey := false
	for _, k := range t.key {
		inKey = inKey || k == c.name
	}
	switch n := g.r.IntN(8); {
	case n < 3 || c.generated || inKey:
		added := g.column()
		sql := fmt.Sprintf("ALTER TABLE `%s` ADD COLUMN `%s` %s", t.name, added.name, g.definition(&added))
		switch g.r.IntN(3) {
		case 0:
			t.columns = append([]column{added}, t.columns...)
			return sql + " FIRST"
		case 1:
			after := t.columns[i].name
			t.columns = append(t.columns[:i+1:i+1], append([]column{added}, t.columns[i+1:]...)...)
			return sql + " AFTER `" + after + "`"
		}
		t.columns = append(t.columns, added)
		return sql
	case n == 3 && len(t.columns) > 3:
		name := c.name
		t.columns = append(t.columns[:i:i], t.columns[i+1:]...)
		return fmt.Sprintf("ALTER TABLE `%s` DROP COLUMN `%s`", t.name, name)
	case n == 4:
		old := c.name
		c.name = g.name(c.kind.name)
		return fmt.Sprintf("ALTER TABLE `%s` RENAME COLUMN `%s` TO `%s`", t.name, old, c.name)
	case n == 5:
		old := c.name
		c.name = g.name(c.kind.name)
		return fmt.Sprintf("ALTER TABLE `%s` CHANGE COLUMN `%s` `%s` %s", t.name, old, c.name, g.definition(c))
	case n == 6:
		return fmt.Sprintf("ALTER TABLE `%s` MODIFY COLUMN `%s` %s", t.name, c.name, g.definition(c))
	default:
		old := t.name
		t.name = g.name("t")
		return fmt.Sprintf("RENAME TABLE `%s` TO `%s`", old, t.name)
	}
}

func (g *Generator) drop() string {
	i := g.r.IntN(len(g.tables))
	name := g.tables[i].name
	g.tables = append(g.tables[:i:i], g.tables[i+1:]...)
	return "DROP TABLE `" + name + "`"
}
