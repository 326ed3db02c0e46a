package it

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/it/differential"
)

// goldenDifference is a value that is not Debezium's on purpose: in the record-th record of a topic's stream, wrong stands where
// right is right. Both are asserted: wrong is in Debezium's record, and ours is that record with right in its place.
type goldenDifference struct {
	title        string // of its line in docs/debezium-differences.md
	folders      string
	table        string // what follows <topic.prefix>.<database>. in the topic
	record       int    // or everyRecord
	wrong, right string
}

// in says whether the difference is one of a folder.
func (d goldenDifference) in(folder string) bool {
	return slices.Contains(strings.Fields(d.folders), folder)
}

// applyDifferences returns the records with what is right in place of what is wrong.
func applyDifferences(t *testing.T, f goldenFolder, records []TailRecord) []TailRecord {
	t.Helper()
	records = slices.Clone(records)
	inTopic := map[string]int{}
	done := map[int]bool{}
	for i := range records {
		r := &records[i]
		record := inTopic[r.Topic]
		inTopic[r.Topic]++
		for n, d := range goldenDifferences {
			if !d.in(f.name) || !strings.HasSuffix(r.Topic, "."+d.table) || d.record != record && d.record != everyRecord {
				continue
			}
			done[n] = true
			if r.Value == nil || strings.Count(*r.Value, d.wrong) == 0 {
				t.Errorf("%s record %d does not have the wrong value %s (%s)", r.Topic, record, d.wrong, d.title)
				continue
			}
			value := strings.ReplaceAll(*r.Value, d.wrong, d.right)
			r.Value, r.parsed = &value, nil
		}
	}
	for n, d := range goldenDifferences {
		if d.in(f.name) && !done[n] {
			t.Errorf("there is no record %d of %s for the difference %s", d.record, d.table, d.title)
		}
	}
	return records
}

// TestDifferencesAreDocumented requires a line of docs/debezium-differences.md for each difference that the tests know, with a
// folder that shows it and a test that is there.
func TestDifferencesAreDocumented(t *testing.T) {
	name := filepath.Join(moduleRoot(t), "docs", "debezium-differences.md")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	tests := testFiles(t)
	var lines []string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "|") {
			lines = append(lines, line)
		}
	}
	checked := map[string]bool{}
	documented := func(title string, shownBy ...string) {
		t.Helper()
		if checked[title] {
			return
		}
		checked[title] = true
		i := slices.IndexFunc(lines, func(line string) bool {
			return strings.HasPrefix(strings.ToLower(strings.TrimSpace(strings.TrimPrefix(line, "|"))), strings.ToLower(title))
		})
		if i < 0 {
			t.Errorf("%s has no line that begins with: | %s", name, title)
			return
		}
		if len(shownBy) > 0 && !slices.ContainsFunc(shownBy, func(folder string) bool { return strings.Contains(lines[i], folder) }) {
			t.Errorf("the line %q of %s names none of %v", title, name, shownBy)
		}
		if !slices.ContainsFunc(testName.FindAllString(lines[i], -1), func(test string) bool { return tests[test] != "" }) {
			t.Errorf("the line %q of %s names no test that is there", title, name)
		}
	}
	for _, d := range goldenDifferences {
		var shownBy []string
		for _, other := range goldenDifferences {
			if other.title == d.title {
				shownBy = append(shownBy, strings.Fields(other.folders)...)
			}
		}
		documented(d.title, shownBy...)
	}
	for _, f := range goldenFolders {
		for _, title := range f.titles {
			var shownBy []string
			for _, other := range goldenFolders {
				if slices.Contains(other.titles, title) {
					shownBy = append(shownBy, other.name)
				}
			}
			documented(title, shownBy...)
		}
	}
	for _, d := range differential.Differences() {
		documented(d.Title)
	}
}

var testName = regexp.MustCompile(`\bTest\w+`)
