package config

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:generate go test -run TestDocs -write-docs

// Markdown renders the table of properties as docs/properties.md.
func Markdown() []byte {
	var b bytes.Buffer
	b.WriteString(`# Properties

<!-- Made from the table in cmd/internal/config by "go generate ./cmd/internal/config". Do not edit. -->

` + "`tidemark run [worker.properties] connector.json…`" + ` takes the configuration of Debezium's MySQL connector and of a Kafka Connect worker as
they are. A connector's file is JSON (` + "`{\"name\":…,\"config\":{…}}`" + ` or the map alone) or Java properties; a worker's file is Java properties.

What happens to a key:

- **honoured**: it does what it says.
- **accepted**: it has no meaning here, for the reason given. A value other than the default is listed once at the start.
- **not yet**: not built. The default (and what is named as harmless) is fine; any other value stops the start and names the key,
  since it would change events, delivery or security. ` + "`--lenient`" + ` ignores such a key with a warning, unless security hangs on it
  (marked 🔒).
- An unknown key is warned about with the nearest known name. A malformed value stops the start. All faults are told at once.

Text between angle brackets stands for any text, ` + "`<key or value>`" + ` for either; what is in square brackets may be left out.
` + "`${env:NAME}`, `${file:/path:key}` and `${dir:/folder:file}`" + ` in a value stand for what is
there. Kafka client settings (` + "`producer.*`, `sasl.*` …" + "`" + `) are checked by the client they are for.

Several processes may be started with the same files when offsets are kept in a topic and ` + "`group.id`" + ` is set: one of them runs a
connector, the others stand by.
`)
	var groups []string
	byGroup := map[string][]Property{}
	for _, p := range Properties() {
		title := p.Group
		if p.Place == InWorker {
			title = "Worker: " + strings.ToLower(p.Group[:1]) + p.Group[1:]
			switch p.Group {
			case groupWorker:
				title = p.Group
			case groupOurs:
				title = "Worker: " + p.Group // a name
			}
		}
		if byGroup[title] == nil {
			groups = append(groups, title)
		}
		byGroup[title] = append(byGroup[title], p)
	}
	for _, g := range groups {
		rows := byGroup[g]
		slices.SortStableFunc(rows, func(a, b Property) int { return strings.Compare(a.Name, b.Name) })
		fmt.Fprintf(&b, "\n## %s\n\n| property | type | default | here | what it does |\n|---|---|---|---|---|\n", g)
		for _, p := range rows {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", p.Name, cell(p.kind()), p.shownDefault(), p.shownStatus(), cell(p.sentence()))
		}
	}
	return b.Bytes()
}

func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", ">", "&gt;").Replace(s)
}

func (p *Property) kind() string {
	switch {
	case len(p.Allowed) > 0:
		return p.Type.String() + ": " + strings.Join(p.Allowed, ", ")
	case p.Min != 0 && p.Max != 0 && p.Max < milliMax:
		return fmt.Sprintf("%s %d–%d", p.Type, p.Min, p.Max)
	case p.Min != 0:
		return fmt.Sprintf("%s, from %d", p.Type, p.Min)
	}
	return p.Type.String()
}

func (p *Property) shownDefault() string {
	switch {
	case p.Required:
		return "required"
	case p.Default == "":
		return "–"
	}
	return "`" + p.Default + "`"
}

func (p *Property) shownStatus() string {
	s := p.Status.String()
	if p.Security && (p.Status == NotYet || len(p.Later) > 0) {
		s += " 🔒"
	}
	return s
}

func (p *Property) sentence() string {
	s := p.Doc
	if len(p.Later) > 0 {
		s += " Not built yet: " + strings.Join(p.Later, ", ") + "."
	}
	if p.Status == NotYet && len(p.Harmless) > 0 {
		var q []string
		for _, h := range p.Harmless {
			q = append(q, strconv.Quote(h))
		}
		s += " Harmless: " + strings.Join(q, ", ") + "."
	}
	if p.Note != "" {
		s += " " + p.Note
	}
	return s
}
