package main

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// history is Debezium's schema history, in a topic or in a file.
type history interface {
	// read returns all of it; nothing when there is none yet.
	read(ctx context.Context) ([]schema.HistoryEntry, error)
	// write appends records and returns when they are durable.
	write(ctx context.Context, records []schema.HistoryRecord) error
	close()
}

type historyTopic struct{ topic *kafka.History }

func (h historyTopic) read(ctx context.Context) ([]schema.HistoryEntry, error) {
	entries, _, err := h.topic.Read(ctx)
	return entries, err
}

func (h historyTopic) write(ctx context.Context, records []schema.HistoryRecord) error {
	texts := make([][]byte, len(records))
	for i := range records {
		texts[i] = schema.AppendHistory(nil, &records[i])
	}
	return h.topic.Append(ctx, texts...)
}

func (h historyTopic) close() { h.topic.Close() }

type historyFile struct{ file *schema.HistoryFile }

func (h historyFile) read(context.Context) ([]schema.HistoryEntry, error) { return h.file.Read() }

func (h historyFile) write(_ context.Context, records []schema.HistoryRecord) error {
	return h.file.Append(records)
}

func (h historyFile) close() { _ = h.file.Close() }

// historyRecords are the records that Debezium's schema history has of a statement.
func historyRecords(prefix string, ev *binlog.SchemaChange, mark func(offset.Offset) offset.Offset) []schema.HistoryRecord {
	var records []schema.HistoryRecord
	for i := range ev.Changes {
		c := &ev.Changes[i]
		if !c.History {
			continue
		}
		ddl, ok := recoverable(ev, c)
		if !ok {
			continue
		}
		records = append(records, schema.HistoryRecord{
			Server: prefix, Position: position(mark(ev.Record)), Time: time.Now().UnixMilli(),
			Database: c.Database, DDL: ddl, Changes: c.Changes,
		})
	}
	return records
}

// Statements that MySQL takes and Debezium's parser does not.
var (
	alterThisDatabase = regexp.MustCompile(`(?i)^(ALTER\s+(?:DATABASE|SCHEMA))\s+(DEFAULT|CHARACTER|COLLATE|READ|ENCRYPTION\s*[=']|CHARSET\s*=)`)
	spatialReference  = regexp.MustCompile(`(?i)^(?:CREATE|DROP)\s+(?:OR\s+REPLACE\s+)?SPATIAL\s+REFERENCE\s`)
)

// recoverable is the text of a record that a Debezium can read when it starts. It parses those that have no changes, and
// one that it cannot parse would keep it from ever starting again. It would have stopped at such a statement itself, so
// there is no record of its own to equal. The text is false for a record that is better left out: it says nothing of tables.
func recoverable(ev *binlog.SchemaChange, c *schema.SchemaChange) (string, bool) {
	switch {
	case len(c.Changes) > 0:
	case ev.AnsiQuotes && strings.Contains(c.DDL, `"`), spatialReference.MatchString(c.DDL):
		return "", false
	case c.Database != "" && alterThisDatabase.MatchString(c.DDL):
		return alterThisDatabase.ReplaceAllString(c.DDL, "$1 "+strings.ReplaceAll(quoteName(c.Database), "$", "$$")+" $2"), true
	}
	return c.DDL, true
}

// position is an offset as a schema history has it.
func position(o offset.Offset) []schema.Member {
	members := o.Members()
	all := make([]schema.Member, 0, len(members))
	for _, m := range members {
		if m.Name != "row" {
			all = append(all, schema.Member(m))
		}
	}
	return all
}
