package main

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// A Debezium parses the records without changes when it starts, and never starts again with one that it cannot parse.
func TestHistoryRecordsCanBeRecovered(t *testing.T) {
	table := []schema.Change{{Kind: schema.AlterTable, Database: "d$1", Table: "t"}}
	for _, tt := range []struct {
		ansi    bool
		ddl     string
		changes []schema.Change
		want    string // "": left out
	}{
		{false, "CREATE DATABASE e", nil, "CREATE DATABASE e"},
		{false, `CREATE INDEX i ON t (a) COMMENT "c"`, nil, `CREATE INDEX i ON t (a) COMMENT "c"`},
		{true, "CREATE DATABASE e", nil, "CREATE DATABASE e"},
		{true, `CREATE DATABASE "e"`, nil, ""},
		{true, `CREATE INDEX i ON "t" (a)`, nil, ""},
		{true, `ALTER TABLE "t" ADD b INT`, table, `ALTER TABLE "t" ADD b INT`},
		{false, "CREATE SPATIAL REFERENCE SYSTEM 990001 NAME 'n' DEFINITION ''", nil, ""},
		{false, "drop spatial reference system 990001", nil, ""},
		{false, "ALTER DATABASE DEFAULT CHARACTER SET latin1", nil, "ALTER DATABASE `d$1` DEFAULT CHARACTER SET latin1"},
		{false, "alter schema  collate utf8mb4_bin", nil, "alter schema `d$1` collate utf8mb4_bin"},
		{false, "ALTER DATABASE ENCRYPTION='N'", nil, "ALTER DATABASE `d$1` ENCRYPTION='N'"},
		{false, "ALTER DATABASE charset CHARACTER SET latin1", nil, "ALTER DATABASE charset CHARACTER SET latin1"},
		{false, "ALTER DATABASE e READ ONLY=1", nil, "ALTER DATABASE e READ ONLY=1"},
	} {
		ev := &binlog.SchemaChange{AnsiQuotes: tt.ansi, Changes: []schema.SchemaChange{
			{Database: "d$1", DDL: tt.ddl, Changes: tt.changes, History: true},
			{Database: "d$1", DDL: "not for the history"},
		}}
		got := ""
		for _, r := range historyRecords("p", ev, func(o offset.Offset) offset.Offset { return o }) {
			got += r.DDL
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.ddl, got, tt.want)
		}
	}
}
