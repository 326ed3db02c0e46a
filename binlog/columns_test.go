package binlog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestManyColumns: nulls are in the right places beyond the first byte of the bitmap, in tables of up to 4,096
// columns, and no row is lost, also when its last column is NULL. The binlog is a MySQL 9.7's.
func TestManyColumns(t *testing.T) {
	var got []string
	cfg := Config{Captured: func(database, _ string) bool { return database == "wd" }}
	if err := eachRow(t, cfg, recorded(t, "columns"), func(r *Rows) {
		values := func(cells [][]byte) string {
			if cells == nil {
				return "-"
			}
			if len(cells) != len(r.Table.Columns) {
				t.Fatalf("%d cells of %d columns", len(cells), len(r.Table.Columns))
			}
			var set []string
			for i, cell := range cells {
				if cell != nil {
					set = append(set, fmt.Sprintf("%s=%s", r.Table.Columns[i].Name, cellText(t, r.Table, i, cell)))
				}
			}
			return strings.Join(set, ",")
		}
		got = append(got, fmt.Sprintf("%s %d: %s > %s", r.Table.Name, len(r.Table.Columns), values(r.Before), values(r.After)))
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"c10 10: - > i1=555,i2=777",
		"c10 10: i1=555,i2=777 > i1=555,i2=777,i3=444",
		"c10 10: i1=555,i2=777,i3=444 > i1=555,i2=777,i3=444,i10=1",
		"c10 10: i1=555,i2=777,i3=444,i10=1 > -",
		"c17 17: - > i1=1,i17=2",
		"c17 17: - > i16=3",
		"c65 65: - > i1=1,i65=2",
		"c65 65: - > i64=3",
		"c1017 1017: - > i1=1,i1017=2",
		"c1017 1017: - > i1016=3",
		"c1 1: - > a=1",
		"c1 1: - > ",
		"c1 1: - > a=2",
		"c4096 4096: - > c1=1,c4096=96",
		"c4096 4096: - > c2000=7",
		"c4096 4096: c2000=7 > c2000=7,c4095=5",
		"c4096 4096: c1=1,c4096=96 > -",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNamesInAnyScript: names of databases, tables, columns and labels are what the server has, and filters see them so.
func TestNamesInAnyScript(t *testing.T) {
	var got []string
	cfg := Config{Captured: func(database, table string) bool {
		return database == "数据库" && table == "Таблица ελληνικά"
	}}
	if err := eachRow(t, cfg, recorded(t, "columns"), func(r *Rows) {
		for i, c := range r.Table.Columns {
			got = append(got, c.Name+"="+cellText(t, r.Table, i, r.After[i])+" "+strings.Join(c.Labels, "/"))
		}
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"ünïcödé=1 ", "العمود=नमस्ते 🙂 ", "列 名=いいえ はい/いいえ", "עברית=א,ב א/ב"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCompressedTransactionsAndStatements reads compressed and plain transactions in turn, with the statements'
// texts in the binlog or not. A text belongs to its own statement, whatever its length, counts as an event for the
// offset, and is given out only to who asks for it.
func TestCompressedTransactionsAndStatements(t *testing.T) {
	path := recorded(t, "transactions")
	for _, queries := range []bool{false, true} {
		var got []string
		gtids := make(map[string]int)
		cfg := Config{Captured: func(database, _ string) bool { return database == "tx" }, IncludeQuery: queries}
		if err := eachRow(t, cfg, path, func(r *Rows) {
			text := func(s string) string {
				if len(s) > 60 {
					return fmt.Sprintf("%s…(%d)", s[:30], len(s))
				}
				return s
			}
			row := func(cells [][]byte) string {
				if cells == nil {
					return "-"
				}
				return cellText(t, r.Table, 0, cells[0]) + " " + text(cellText(t, r.Table, 1, cells[1]))
			}
			gtids[r.Info.GTID.String()]++
			got = append(got, fmt.Sprintf("%s > %s e%d %s", row(r.Before), row(r.After), r.OffsetAfter().Event, text(r.Info.Query)))
		}); err != nil {
			t.Fatal(err)
		}
		texts := func(s string) string {
			if queries {
				return s
			}
			return ""
		}
		want := []string{
			"- > 1 a e2 ", "- > 2 b e4 ", "- > 3 c e6 ", "1 a > 1 d e8 ", // one compressed transaction
			"- > 4 plain e2 ",
			"- > 5 e e3 " + texts("insert into t /* with a comment */ values (5,'e')"),
			"- > 6 " + text30("x", 300) + " e3 " + texts("insert into t values (6,'xxxxx…(327)"),
			"6 " + text30("x", 300) + " > 6 u e6 " + texts("update t set v='u' where id=6"),
			"- > 7 " + text30("y", 20<<20) + " e3 " + texts(fmt.Sprintf("insert into t values (7,'yyyyy…(%d)", 20<<20+27)),
			"- > 8 compressed, with its text e3 " + texts("insert into t values (8,'compressed, with its text')"),
			"- > 9 no text e2 ",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("queries %v (-want +got):\n%s", queries, diff)
		}
		if len(gtids) != 7 {
			t.Errorf("%d transactions: %v", len(gtids), gtids)
		}
	}
}

// text30 is a long text as the test above shortens it.
func text30(c string, n int) string { return fmt.Sprintf("%s…(%d)", strings.Repeat(c, 30), n) }
