package differential

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Record is a record of either side: what Kafka holds of Debezium's, what tail prints of ours.
type Record struct {
	Topic      string
	Key, Value *string // nil for null
	Headers    [][2]string
	Schemas    [2]int64 // the ids of key and value, in Avro; 0 for null
}

// Difference is a value that Tidemark writes otherwise than Debezium on purpose.
type Difference struct {
	Title    string // of its line in docs/debezium-differences.md
	kind     string // of the column
	debezium string // what Debezium writes, as JSON
	tidemark string // what Tidemark writes instead
}

// Differences are all of them that random SQL can meet. What Debezium stops at or confuses as a whole is not generated: impossible
// dates, DDL under ANSI_QUOTES, XA, PARTIAL_JSON, REAL, BINARY without a length and CHARACTER SET binary in DDL of the stream, labels
// with commas or backslashes, the character sets dec8, hp8, swe7, armscii8, geostd8, keybcs2 and koi8u, negative TIME in JSON.
func Differences() []Difference {
	return []Difference{
		{Title: "YEAR 0", kind: "year", debezium: "1900", tidemark: "0"},
	}
}

var (
	envelopeClock = regexp.MustCompile(`("op":"[a-z]"),"ts_ms":\d+,"ts_us":\d+,"ts_ns":\d+\}`)
	schemaClock   = regexp.MustCompile(`("query":(?:null|"(?:[^"\\]|\\.)*")\}),"ts_ms":\d+,("databaseName":)`)
	historyClock  = regexp.MustCompile(`(?m)^  "ts_ms" : \d+,$`)
)

// normalised takes out the clocks and the id of the run.
func (r Record) normalised() Record {
	if r.Value != nil {
		v := envelopeClock.ReplaceAllString(*r.Value, `$1}`)
		v = schemaClock.ReplaceAllString(v, `$1,$2`)
		v = historyClock.ReplaceAllString(v, "")
		r.Value = &v
	}
	r.Headers = slices.Clone(r.Headers)
	for i, h := range r.Headers {
		if h[0] == "__debezium.context.runId" {
			r.Headers[i][1] = ""
		}
	}
	return r
}

func (r Record) String() string {
	text := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	return fmt.Sprintf("%s\nkey %s\nvalue %s\nheaders %v", r.Topic, text(r.Key), text(r.Value), r.Headers)
}

// Compare compares two records that have to be one. It returns the titles of the listed differences between them, and an error for
// any other.
func Compare(debezium, tidemark Record) ([]string, error) {
	d, t := debezium.normalised(), tidemark.normalised()
	if d.String() == t.String() {
		return nil, sameSchemas(d, t)
	}
	var titles []string
	for _, part := range []struct {
		name string
		d, t *string
	}{{"key", d.Key, t.Key}, {"value", d.Value, t.Value}} {
		if part.d == nil || part.t == nil {
			if part.d != part.t {
				return nil, fmt.Errorf("one %s is null\ndebezium %s\ntidemark %s", part.name, d, t)
			}
			continue
		}
		found, rest := explain(*part.d, *part.t)
		if rest != "" {
			return nil, fmt.Errorf("%s: %s", part.name, rest)
		}
		titles = append(titles, found...)
	}
	if a, b := fmt.Sprint(d.Headers), fmt.Sprint(t.Headers); a != b {
		return nil, fmt.Errorf("headers\ndebezium %s\ntidemark %s", a, b)
	}
	return titles, sameSchemas(d, t)
}

// sameSchemas holds that records with the same texts of schemas have the same ids.
func sameSchemas(debezium, tidemark Record) error {
	if debezium.Schemas != tidemark.Schemas {
		return fmt.Errorf("schema ids of key and value: debezium %d, tidemark %d", debezium.Schemas, tidemark.Schemas)
	}
	return nil
}

// explain returns the titles of the listed differences that make one text the other, and what is left.
func explain(debezium, tidemark string) (titles []string, rest string) {
	for _, d := range Differences() {
		// Columns are named after their kind, with a number.
		x := regexp.MustCompile(`"` + d.kind + `_\d+":` + regexp.QuoteMeta(d.debezium) + `([,}])`)
		for _, m := range x.FindAllStringIndex(debezium, -1) {
			column, _, _ := strings.Cut(debezium[m[0]:], ":")
			right := column + ":" + d.tidemark
			if strings.Contains(tidemark, right) {
				debezium = debezium[:m[0]] + right + debezium[m[0]+len(column)+1+len(d.debezium):]
				titles = append(titles, d.Title)
				break // the positions have moved
			}
		}
	}
	if debezium == tidemark {
		return titles, ""
	}
	if len(titles) > 0 {
		more, rest := explain(debezium, tidemark)
		return append(titles, more...), rest
	}
	i := 0
	for i < len(debezium) && i < len(tidemark) && debezium[i] == tidemark[i] {
		i++
	}
	part := func(s string) string { return s[max(0, min(i-150, len(s))):min(len(s), i+250)] }
	return titles, fmt.Sprintf("from byte %d\ndebezium …%s…\ntidemark …%s…", i, part(debezium), part(tidemark))
}

// Snapshot says whether a record is of the snapshot, which only one side takes.
func Snapshot(r Record) bool {
	if r.Value == nil {
		return false
	}
	var v struct {
		Payload struct {
			Source struct{ Snapshot *string }
		}
		Position struct{ Snapshot *string }
	}
	if json.Unmarshal([]byte(*r.Value), &v) != nil {
		return false
	}
	s := v.Payload.Source.Snapshot
	return s != nil && *s != "false" || v.Position.Snapshot != nil
}
