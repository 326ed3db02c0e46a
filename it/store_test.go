package it

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestI10_I11_RestartBeforeADDL restarts a connector at an offset before statements that it has read already, with
// binlog_row_metadata=MINIMAL: the old rows have the old columns. Without the store of definitions, and without the CREATE TABLE
// behind the offset, that is refused.
func TestI10_I11_RestartBeforeADDL(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, append(slices.Clone(gtidFlags), "--binlog-row-metadata=MINIMAL")...)
	m := rig.MySQL
	m.Exec(t, "CREATE DATABASE store", "CREATE TABLE store.t (id INT PRIMARY KEY, e ENUM('x','y'), u INT UNSIGNED)")
	c := rig.Connector(t, "store", "file", `store\..*`)
	c.Config["topic.creation.default.partitions"] = "1"
	p := c.RunStreaming(t)
	c.AwaitDrained(t, time.Minute)
	before := c.Stored(t)
	m.Exec(t, "INSERT INTO store.t VALUES (1,'x',4294967295)", "ALTER TABLE store.t MODIFY e ENUM('y','x','z'), ADD COLUMN n INT FIRST",
		"INSERT INTO store.t VALUES (7,2,'z',1)", "ALTER TABLE store.t RENAME COLUMN u TO v, DROP COLUMN n", "INSERT INTO store.t VALUES (3,'y',2)")
	c.AwaitDrained(t, time.Minute)
	p.Kill()
	images := func() []string {
		var all []string
		for _, r := range c.Records(t) {
			v, err := fields(r.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(v["after"]))
		}
		return all
	}
	want := []string{`{"id":1,"e":"x","u":4294967295}`, `{"n":7,"id":2,"e":"z","u":1}`, `{"id":3,"e":"y","v":2}`}
	if got := images(); !slices.Equal(got, want) {
		t.Fatalf("first run: %v, want %v", got, want)
	}

	c.PutStored(t, before)
	p = c.RunStreaming(t)
	c.AwaitDrained(t, time.Minute)
	p.Terminate(t)
	if got := images(); !slices.Equal(got, slices.Concat(want, want)) {
		t.Errorf("again from before the statements: %v, want %v", got[len(want):], want)
	}

	// The store is a file of the connector's folder that is neither its configuration nor its offsets.
	lost := 0
	files, err := os.ReadDir(c.Folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.Contains(f.Name(), "schema") {
			lost++
			if err := os.RemoveAll(filepath.Join(c.Folder, f.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if lost == 0 {
		t.Fatalf("there is no store of definitions in %v", files)
	}
	c.PutStored(t, before)
	p = c.Run(t)
	if code := p.Wait(t, time.Minute); code != 1 {
		t.Errorf("without the store it ended with code %d, want 1", code)
	}
	for _, x := range []string{`store\.t`, `binlog_row_metadata`} {
		if !regexp.MustCompile(x).MatchString(p.Output()) {
			t.Errorf("it does not say %q:\n%s", x, p.Output())
		}
	}
	if got := images(); len(got) != 2*len(want) {
		t.Errorf("%d records more", len(got)-2*len(want))
	}
}
