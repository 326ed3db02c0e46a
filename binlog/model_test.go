package binlog

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// modelLog is a binlog made by chance: transactions of captured and other tables, XA transactions of one and of two phases
// that overlap with all of it, DDL, and statements that change nothing. The same seed gives the same changes, in other
// positions and cut into other events if elsewhere is set, as a replica has them.
func modelLog(seed uint64, gtids, named, elsewhere bool) *binlogBuilder {
	random := rand.New(rand.NewPCG(seed, 1))
	b := newBinlog("mysql-bin.000001")
	b.previous()
	if elsewhere {
		b.add(evIgnorable, flagIgnorable, make([]byte, 77))
	}
	if gtids {
		b.numbered = 1
	}
	columns, id := []string{"id", "a"}, uint16(0)
	b.ddl("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT NOT NULL)")
	write := func(ids []uint16, last bool) {
		body := []byte{9, 0, 0, 0, 0, 0, 0, 0, 2, 0, byte(len(columns)), 0xff}
		if last {
			body[6] = 1
		}
		for _, id := range ids {
			body = append(body, 0)
			for c := range columns {
				body = append(body, byte(id), byte(id>>8), byte(c), 0)
			}
		}
		b.add(evWrite, 0, body)
	}
	statements := func(n int) {
		for range n {
			rows := 1 + random.IntN(3)
			if random.IntN(3) == 0 {
				b.insert("other", make([]uint32, rows)...)
				continue
			}
			var ids []uint16
			for range rows {
				id++
				ids = append(ids, id)
			}
			b.mapped(9, "t", named, columns...)
			if !elsewhere {
				write(ids, true)
				continue
			}
			for i := range ids {
				write(ids[i:i+1], i == len(ids)-1)
			}
		}
	}
	var prepared []string
	for step := range 4 + random.IntN(8) {
		switch random.IntN(8) {
		case 0:
			if len(prepared) > 0 {
				break // a prepared transaction locks its tables
			}
			columns = slices.Clone(columns)
			last := &columns[len(columns)-1]
			if name := fmt.Sprintf("c%d", step); random.IntN(2) == 0 && len(columns) < 7 {
				columns = append(columns, name)
				b.ddl("ALTER TABLE t ADD COLUMN " + name + " INT NOT NULL")
			} else {
				b.ddl("ALTER TABLE t RENAME COLUMN " + *last + " TO " + name)
				*last = name
			}
		case 1, 2:
			name, onePhase := fmt.Sprintf("x%d", step), random.IntN(4) == 0
			b.xa(name, onePhase, func() { statements(random.IntN(3)) })
			if !onePhase {
				prepared = append(prepared, name)
			}
		case 3, 4:
			if len(prepared) > 0 {
				i := random.IntN(len(prepared))
				b.decide([]string{"COMMIT", "COMMIT", "ROLLBACK"}[random.IntN(3)], prepared[i])
				prepared = slices.Delete(prepared, i, i+1)
			}
		case 5:
			b.ddl("CREATE USER u")
		default:
			b.transaction(func() { statements(random.IntN(4)) })
		}
	}
	for _, name := range prepared {
		b.decide("COMMIT", name)
	}
	return b
}

// modelPoint is an offset that may be stored, and how many rows come before it.
type modelPoint struct {
	offset offset.Offset
	rows   int
}

// modelRead reads a binlog from an offset, or from its beginning: the rows, where a restart may begin, and what a schema store
// would have.
func modelRead(t testing.TB, b *binlogBuilder, server string, from *offset.Offset, stored map[string]schema.StoredTable, way jump) (rows []string, points []modelPoint, err error) {
	t.Helper()
	cfg := Config{
		ServerUUID: server, Filters: "f", Catalog: schema.NewCatalog(schema.CatalogOptions{}),
		Captured: func(_, table string) bool { return table != "other" },
	}
	core, logs := observer.New(zap.WarnLevel)
	cfg.Log = zap.New(core)
	defer func() {
		for _, entry := range logs.FilterMessageSnippet("gone to straight").All() {
			t.Error(entry.Message)
		}
	}()
	start := Start{Offset: from}
	if from != nil {
		var all []schema.StoredTable
		for _, s := range stored {
			all = append(all, s)
		}
		cfg.Catalog.Load(all, Reached(*from))
	}
	r, err := newReader(cfg, b.clone())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.jump = way
	r.asm.reopen = func(_ context.Context, x offset.Prepared) (rawStream, bool, error) {
		if x.GTID != "" {
			return b.clone(), false, nil
		}
		return b.at("mysql-bin.000001", x.Pos), true, nil
	}
	if err := r.startFiles(t.Context(), start); err != nil {
		return nil, nil, err
	}
	r.begin()
	note := func(o offset.Offset) { points = append(points, modelPoint{o, len(rows)}) }
	note(r.Start())
	for {
		ev, err := r.Read(t.Context())
		if err == io.EOF {
			return rows, points, nil
		}
		if err != nil {
			return rows, points, err
		}
		switch ev := ev.(type) {
		case *Rows:
			for ev.Next() {
				note(ev.OffsetBefore())
				row := ev.Table.Name
				for i, c := range ev.Table.Columns {
					row += fmt.Sprintf(" %s=%d", c.Name, fixedInt(ev.After[i]))
				}
				rows = append(rows, row)
				note(ev.OffsetAfter())
			}
			if err := ev.Err(); err != nil {
				return rows, points, err
			}
		case *Boundary:
			note(ev.Offset)
		case *SchemaChange:
			note(ev.Before)
			for _, s := range ev.Tables {
				stored[s.Database+"."+s.Table] = s
			}
			note(ev.Offset)
		}
	}
}

// TestI4_I5_I8_I10_I11_EveryRestart: whatever the binlog holds, each offset that may be stored leads to exactly the rows that
// come after it, with the columns that they had there, on the same server and by GTID on another one; and so does each offset
// that is stored after such a restart.
func TestI4_I5_I8_I10_I11_EveryRestart(t *testing.T) {
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 2))
		gtids, named := random.IntN(3) > 0, random.IntN(2) == 0
		logs := map[string]*binlogBuilder{"one": modelLog(seed, gtids, named, false)}
		servers := []string{"one"}
		if gtids {
			logs["two"] = modelLog(seed, gtids, named, true)
			servers = append(servers, "two")
		}
		stored := map[string]schema.StoredTable{}
		all, points, err := modelRead(t, logs["one"], "one", nil, stored, jump{})
		if err != nil {
			t.Fatal(seed, err)
		}
		check := func(what, server string, from modelPoint, stored map[string]schema.StoredTable) []modelPoint {
			t.Helper()
			o := from.offset
			short := maps.Clone(stored)
			rows, points, err := modelRead(t, logs[server], server, &o, stored, jump{})
			if err != nil || !slices.Equal(rows, all[from.rows:]) {
				t.Fatalf("seed %d, %s to server %s at %s (%+v): %v\n got %q\nwant %q", seed, what, server, o, o.Side, err, rows, all[from.rows:])
			}
			for _, way := range shortWays(logs[server], &o) {
				again, others, err := modelRead(t, logs[server], server, &o, maps.Clone(short), way)
				if err != nil || !slices.Equal(again, rows) || !slices.EqualFunc(others, points, func(p, q modelPoint) bool { return sameOffset(p.offset, q.offset) && p.rows == q.rows }) {
					t.Fatalf("seed %d, %s to server %s at %s, straight (%+v): %v\n got %q\nwant %q", seed, what, server, o, o.Side, err, again, rows)
				}
			}
			for i := range points {
				points[i].rows += from.rows
			}
			return points
		}
		for _, p := range points {
			for _, server := range servers {
				stored := maps.Clone(stored) // which the restart goes on writing
				again := check("restart", server, p, stored)
				check("second restart", servers[random.IntN(len(servers))], again[random.IntN(len(again))], stored)
			}
		}
	}
}
