package binlog

import (
	"io"
	"testing"
)

// Whoever writes a schema history for Debezium has to know which statements its parser does not understand.
func TestAnsiQuotesIsTold(t *testing.T) {
	b := numberedBinlog()
	b.sql(modeAnsiQuotes, 255, `CREATE DATABASE "e"`)
	b.sql(0, 255, "CREATE DATABASE f")
	r, err := newReader(Config{Captured: func(string, string) bool { return true }}, b.clone())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.startFiles(t.Context(), Start{Oldest: true}); err != nil {
		t.Fatal(err)
	}
	r.begin()
	var told []bool
	for {
		ev, err := r.Read(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if change, ok := ev.(*SchemaChange); ok {
			told = append(told, change.AnsiQuotes)
		}
	}
	if len(told) != 2 || !told[0] || told[1] {
		t.Errorf("ANSI_QUOTES: %v, want true and false", told)
	}
}
