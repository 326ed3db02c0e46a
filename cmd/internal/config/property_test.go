package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

var writeDocs = flag.Bool("write-docs", false, "write docs/properties.md instead of comparing it")

// TestDocs: the documentation is what the table says.
func TestDocs(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "properties.md")
	want := Markdown()
	if *writeDocs {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s is out of date: go generate ./cmd/internal/config", path)
	}
}

// TestDebeziumKeys holds the table against what Debezium 3.6.1's MySQL connector says about its own keys (name, type,
// default), as Kafka Connect's REST interface gives it.
func TestDebeziumKeys(t *testing.T) {
	text, err := os.ReadFile("testdata/debezium-3.6.1.tsv")
	if err != nil {
		t.Fatal(err)
	}
	// Defaults that Debezium's own list gets wrong, or that mean the same as none.
	differs := map[string]string{
		"topic.naming.strategy":                    "the list has a base class's; the connector uses another",
		"header.converter":                         "none of its own means the worker's, which has this one",
		"connector.plugin.version":                 "its own version",
		"custom.sanitize.pattern":                  "nothing is logged that it could hide",
		"openlineage.integration.config.file.path": "in a row with a pattern",
		"openlineage.integration.job.description":  "in a row with a pattern",
	}
	table := tableOf(InConnector)
	n := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		name, typ, def := f[0], f[1], f[2]
		switch name {
		case "column.mask.hash.([^.]+).with.salt.(.+)":
			name = "column.mask.hash.SHA-256.with.salt.x"
		case "column.mask.with.(d+).chars":
			name = "column.mask.with.3.chars"
		case "column.truncate.to.(d+).chars":
			name, typ = "column.truncate.to.3.chars", "LIST"
		}
		n++
		p := table.find(name)
		if p == nil {
			t.Errorf("%s is in no row", name)
			continue
		}
		if def == "-" {
			def = ""
		}
		if differs[name] == "" && !strings.EqualFold(p.Default, def) && p.Default != "" {
			t.Errorf("%s: default %q, Debezium has %q", name, p.Default, def)
		}
		if differs[name] == "" && p.Default == "" && def != "" {
			t.Errorf("%s: no default, Debezium has %q", name, def)
		}
		numeric := p.Type == Number || p.Type == Millis || p.Type == Seconds
		if (typ == "INT" || typ == "LONG") != numeric || (typ == "BOOLEAN") != (p.Type == Bool) || (typ == "PASSWORD") != (p.Type == Password) {
			t.Errorf("%s: type %s, Debezium has %s", name, p.Type, typ)
		}
	}
	if n != 148 {
		t.Errorf("%d keys", n)
	}
}

// TestTable checks that the rows themselves make sense.
func TestTable(t *testing.T) {
	type id struct {
		name  string
		place Place
	}
	seen := map[id]bool{}
	for _, p := range Properties() {
		if p.Place == 0 || p.Place&^(InConnector|InWorker) != 0 {
			t.Errorf("%s is in no place", p.Name)
		}
		for _, place := range []Place{InConnector, InWorker} {
			for _, name := range expand(p.Name) {
				if p.Place&place == 0 {
					continue
				}
				if seen[id{name, place}] {
					t.Errorf("%s is there twice", name)
				}
				seen[id{name, place}] = true
			}
		}
		if p.Group == "" || !strings.HasSuffix(p.Doc, ".") {
			t.Errorf("%s: group %q, sentence %q", p.Name, p.Group, p.Doc)
		}
		if p.Note != "" && !strings.HasSuffix(p.Note, ".") {
			t.Errorf("%s: note %q is no sentence", p.Name, p.Note)
		}
		if p.Status == Accepted && p.Note == "" {
			t.Errorf("%s is accepted without a reason", p.Name)
		}
		if p.Default != "" {
			if err := p.check(p.Default); err != nil {
				t.Errorf("%s: default %v", p.Name, err)
			}
			if p.Status == NotYet && !p.harmless(p.Default) {
				t.Errorf("%s: the default is refused", p.Name)
			}
		}
		if (p.Type == Enum) != (len(p.Allowed) > 0) && p.Type != List {
			t.Errorf("%s: choices %v", p.Name, p.Allowed)
		}
		for _, v := range append(p.Later, p.Harmless...) {
			if p.Type == Enum && !containsFold(p.Allowed, v) {
				t.Errorf("%s: %q is not allowed", p.Name, v)
			}
		}
		if p.Warn && p.Status != Accepted {
			t.Errorf("%s warns", p.Name)
		}
	}
	if len(seen) < 280 {
		t.Errorf("only %d rows", len(seen))
	}
}

func TestExpand(t *testing.T) {
	for name, want := range map[string][]string{
		"a.b":                         {"a.b"},
		"a.<setting>":                 {"a.<setting>"},
		"<x>.<key or value>.<y>":      {"<x>.key.<y>", "<x>.value.<y>"},
		"<a or b>.[c.]d":              {"a.d", "b.d", "a.c.d", "b.c.d"},
		"<a or b>.[c.]<d or e>.<any>": {"a.d.<any>", "a.e.<any>", "b.d.<any>", "b.e.<any>", "a.c.d.<any>", "a.c.e.<any>", "b.c.d.<any>", "b.c.e.<any>"},
	} {
		if got := expand(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	table := tableOf(InConnector)
	for key, want := range map[string]string{
		"database.hostnam":      "database.hostname",
		"table.includelist":     "table.include.list",
		"tombstone.on.delete":   "tombstones.on.delete",
		"decimal.handling_mode": "decimal.handling.mode",
		"start.positon":         "start.position",

		"value.converter.schema.registry.ulr":                   "value.converter.schema.registry.url",
		"key.converter.schema.registry.basic.auth.userinfo":     "key.converter.schema.registry.basic.auth.user.info",
		"key.converter.apicurio.registry.header.enabled":        "key.converter.apicurio.registry.headers.enabled",
		"value.converter.key.subject.name.strategies":           "value.converter.key.subject.name.strategy",
		"value.converter.apicurio.rest.request.ssl.key.passwor": "value.converter.apicurio.rest.request.ssl.key.password",
		"completely.other.thing.x":                              "",
	} {
		if got := table.nearest(key); got != want {
			t.Errorf("nearest to %s: %q, want %q", key, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"same", "same", 0}, {"ab", "ba", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestWorkerClientKeys holds the table against what Kafka clients do with a worker's own settings, of which each that has no
// effect is named once.
func TestWorkerClientKeys(t *testing.T) {
	for _, p := range Properties() {
		if p.Place != InWorker || p.Group != groupKafka || strings.Contains(p.Name, "<") || p.Name == "security.protocol" {
			continue
		}
		const value = "77777" // no default of any
		warnings, err := kafka.CheckProperties(map[string]string{"bootstrap.servers": "h:9092", p.Name: value})
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if want := map[bool]Status{true: Honoured, false: Accepted}[len(warnings) == 0]; p.Status != want {
			t.Errorf("%s: %v, and a client says %q", p.Name, p.Status, warnings)
		}
		cfg, err := load(t, "bootstrap.servers=h:9092\noffset.storage.topic=o\n"+p.Name+"="+value+"\n", connectorJSON())
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		said := 0
		for _, w := range cfg.Warnings {
			if strings.Contains(w.Key, p.Name) {
				said++
			}
		}
		if said != len(warnings) {
			t.Errorf("%s: %d warnings, want %d: %v", p.Name, said, len(warnings), cfg.Warnings)
		}
	}
}
