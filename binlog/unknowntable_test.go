package binlog

import (
	"strings"
	"testing"
)

// TestUnknownTable: rows whose columns nobody can name end the stream, or are left out and told of, as it is configured.
func TestUnknownTable(t *testing.T) {
	b := numberedBinlog()
	b.transaction(func() { b.mapped(9, "t", false, "id", "a"); b.write(9, 1, 2) })
	b.transaction(func() { b.mapped(9, "u", true, "id", "a"); b.write(9, 1, 2) })
	if _, _, err := readTables(t, b, Config{}, Start{}); err == nil || !strings.Contains(err.Error(), "db.t") || !strings.Contains(err.Error(), "no column names") {
		t.Errorf("without a choice: %v", err)
	}
	var told []string
	lines, _, err := readTables(t, b, Config{UnknownTable: func(database, table string, err error) {
		told = append(told, database+"."+table+" "+err.Error())
	}}, Start{})
	if err != nil || len(told) != 1 || !strings.HasPrefix(told[0], "db.t mysql-bin.000001:") {
		t.Errorf("told %q, %v", told, err)
	}
	rows := 0
	for _, l := range lines {
		if strings.HasPrefix(l, "t ") {
			t.Errorf("a row of the unknown table: %s", l)
		}
		if strings.HasPrefix(l, "u ") {
			rows++
		}
	}
	if rows != 1 {
		t.Errorf("%d rows of the other table, want 1: %q", rows, lines)
	}
}
