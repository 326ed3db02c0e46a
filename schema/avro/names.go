package avro

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidemark-cdc/tidemark/schema"
)

// NameError is the error for a schema with a name that Avro cannot carry. The rule is that of Avro Java 1.12: each part
// of a name begins with a letter or _, and has letters, digits and _ behind it. Letters and digits are those of all
// scripts there, though Avro's specification has those of ASCII only, as have some registries and most readers.
type NameError struct {
	Name  string   // the name as it is in the Connect schema; of a record the full one
	Field bool     // it is the name of a field, not of a record
	Path  []string // the fields down to it: to the field itself, or to the record; empty for the outermost record

	why string
}

func (e *NameError) Error() string {
	if e.Field {
		return fmt.Sprintf("Avro cannot have a field named %s (at %s): %s", strconv.Quote(e.Name), strings.Join(e.Path, "."), e.why)
	}
	at := ""
	if len(e.Path) > 0 {
		at = " (at " + strings.Join(e.Path, ".") + ")"
	}
	return fmt.Sprintf("Avro cannot have a record named %s%s: %s", strconv.Quote(e.Name), at, e.why)
}

// nameFault says why Avro does not take a part of a name; "" if it does.
func nameFault(part string) string {
	if part == "" {
		return "a part of the name is empty"
	}
	for i, r := range part {
		// Java looks at UTF-16 units, and half a character is no letter.
		letter := r == '_' || r < 0x10000 && unicode.IsLetter(r)
		digit := r < 0x10000 && unicode.Is(unicode.Nd, r)
		switch {
		case letter, digit && i > 0:
		case digit:
			return fmt.Sprintf("%q begins with a digit", part)
		default:
			return fmt.Sprintf("%q is not a letter, a digit or _", r)
		}
	}
	return ""
}

// fullNameFault is nameFault for names with a namespace.
func fullNameFault(full string) string {
	for part := range strings.SplitSeq(full, ".") {
		if why := nameFault(part); why != "" {
			return why
		}
	}
	if kind(full).primitive() {
		return "that is the name of a type"
	}
	return ""
}

const (
	connectNamespace = "io.confluent.connect.avro"
	namelessName     = "ConnectDefault"
	mapEntryName     = "MapEntry"
)

// joinName is the full name of name in a namespace.
func joinName(space, name string) string {
	if space == "" {
		return name
	}
	return space + "." + name
}

// splitFull is the namespace and the name of a full name.
func splitFull(full string) (space, name string) {
	i := strings.LastIndexByte(full, '.')
	if i < 0 {
		return "", full
	}
	return full[:i], full[i+1:]
}

// recordFullName is the full name of the record that a struct with this name becomes. Empty parts at the end are lost,
// as they are in Java's String.split.
func (o Options) recordFullName(name string) string {
	parts := strings.Split(name, ".")
	for len(parts) > 1 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	if o.Scrub {
		for i, p := range parts {
			parts[i] = scrub(p)
		}
	}
	// An empty namespace is none.
	if len(parts) == 2 && parts[0] == "" {
		return parts[1]
	}
	return strings.Join(parts, ".")
}

// RecordName returns the full name of the record that a struct becomes, by which RecordNameStrategy and
// TopicRecordNameStrategy name subjects. It does not look whether Avro can carry it: AppendSchema does.
func (o Options) RecordName(t *schema.Type) string {
	if t.Name == "" {
		return connectNamespace + "." + namelessName
	}
	return o.recordFullName(t.Name)
}

// fieldName is the name of a field in Avro.
func (o Options) fieldName(name string) string {
	if o.Scrub {
		return scrub(name)
	}
	return name
}

func isASCIIName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// scrub makes a part of a name legal as AvroData.doScrubName does: encoded as in URLs, x before a digit at the
// beginning, and _ for what is then illegal, so that ä becomes _C3_A4.
func scrub(name string) string {
	plain := !slices.ContainsFunc([]byte(name), func(c byte) bool { return !isASCIIName(c) })
	if name == "" || plain && (name[0] < '0' || name[0] > '9') {
		return name
	}
	var b []byte
	if name[0] >= '0' && name[0] <= '9' {
		b = append(b, 'x')
	}
	for _, c := range []byte(name) {
		b = append(b, c)
		if isASCIIName(c) {
			continue
		}
		b[len(b)-1] = '_'
		switch c {
		case ' ', '-', '.', '*': // URLs have a character for these
		default:
			b = append(b, upperHex[c>>4], upperHex[c&15])
		}
	}
	return string(b)
}
