package avro

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Options are the settings of the AvroConverter that show in the text of a schema. The zero value has their defaults.
type Options struct {
	NoMeta bool // connect.meta.data=false: no connect.* properties
	Scrub  bool // scrub.invalid.names=true
}

// AppendSchema appends the Avro schema of t, byte for byte as AvroData and Avro Java's Schema.toString print it. A name
// that Avro cannot carry is a *[NameError]; any other error is a type or a default that Connect could not have either.
// dst is returned unchanged with an error.
func (o Options) AppendSchema(dst []byte, t *schema.Type) ([]byte, error) {
	w := writer{Options: o, dst: dst, known: map[string]bool{}}
	if err := w.write(t, ""); err != nil {
		return dst, err
	}
	return w.dst, nil
}

// writer prints a schema. Space is everywhere the namespace of the record around, "" for none.
type writer struct {
	Options
	dst      []byte
	path     []string        // the fields down to what is printed
	known    map[string]bool // the full names of the records printed so far
	nameless []nameless
}

// nameless is a struct without a name, and the name of its record.
type nameless struct {
	typ  schema.Type
	full string
}

// hasDefault says whether t has a default; NULL is none.
func hasDefault(t *schema.Type) bool { return t.Default != nil && t.Default.Kind != schema.Null }

// connectTypes are the types without parts: what they are in Avro, and the connect.type that tells them apart there.
var connectTypes = map[string]struct{ avro, connect string }{
	"boolean": {avro: "boolean"},
	"int8":    {"int", "int8"},
	"int16":   {"int", "int16"},
	"int32":   {avro: "int"},
	"int64":   {avro: "long"},
	"float":   {avro: "float"},
	"double":  {avro: "double"},
	"string":  {avro: "string"},
	"bytes":   {avro: "bytes"},
}

// write prints t with its union if it is optional.
func (w *writer) write(t *schema.Type, space string) error {
	switch {
	case t == nil:
		return fmt.Errorf("%s has no type", w.place())
	case !t.Optional:
		return w.base(t, space)
	case t.Type == "struct", !hasDefault(t):
		return w.around(t, space, `["null",`, `]`)
	}
	return w.around(t, space, `[`, `,"null"]`)
}

func (w *writer) around(t *schema.Type, space, before, after string) error {
	w.dst = append(w.dst, before...)
	if err := w.base(t, space); err != nil {
		return err
	}
	w.dst = append(w.dst, after...)
	return nil
}

// base prints t as if it were required.
func (w *writer) base(t *schema.Type, space string) error {
	switch t.Type {
	case "array":
		w.dst = append(w.dst, `{"type":"array","items":`...)
		if err := w.write(t.Items, space); err != nil {
			return err
		}
		return w.end(t)
	case "map":
		return w.mapping(t, space)
	case "struct":
		return w.record(t, space)
	}
	names, ok := connectTypes[t.Type]
	if !ok {
		return fmt.Errorf("%s has the type %q, which Connect does not have", w.place(), t.Type)
	}
	start := len(w.dst)
	w.dst = append(w.dst, `{"type":"`...)
	w.dst = append(w.dst, names.avro...)
	w.dst = append(w.dst, '"')
	bare := len(w.dst)
	if err := w.properties(t, names.connect); err != nil {
		return err
	}
	if len(w.dst) == bare {
		w.dst = append(w.dst[:start], '"')
		w.dst = append(w.dst, names.avro...)
		w.dst = append(w.dst, '"')
		return nil
	}
	w.dst = append(w.dst, '}')
	return nil
}

// end prints what is behind the parts of a type that has some.
func (w *writer) end(t *schema.Type) error {
	if err := w.properties(t, ""); err != nil {
		return err
	}
	w.dst = append(w.dst, '}')
	return nil
}

// mapping prints a map: Avro's keys are strings, so that one with other keys is an array of entries.
func (w *writer) mapping(t *schema.Type, space string) error {
	if t.Keys == nil {
		return fmt.Errorf("%s is a map without a type of keys", w.place())
	}
	if t.Keys.Type == "string" && !t.Keys.Optional {
		w.dst = append(w.dst, `{"type":"map","values":`...)
		if err := w.write(t.Values, space); err != nil {
			return err
		}
		return w.end(t)
	}
	entry := connectNamespace + "." + mapEntryName
	if t.Name != "" {
		entry = w.recordFullName(t.Name)
	}
	w.dst = append(w.dst, `{"type":"array","items":`...)
	known, err := w.head(entry, entry, space)
	if err != nil {
		return err
	}
	if !known {
		inner, _ := splitFull(entry)
		fields := [...]schema.Field{{Name: "key", Type: t.Keys}, {Name: "value", Type: t.Values}}
		if err := w.fields(fields[:], inner); err != nil {
			return err
		}
		if t.Name != "" {
			w.dst = append(w.dst, `,"connect.internal.type":"`+mapEntryName+`"`...)
		}
		w.dst = append(w.dst, '}')
	}
	return w.end(t)
}

// record prints a struct: in full the first time, later only its name. Structs without a name are the same record if
// they are equal.
func (w *writer) record(t *schema.Type, space string) error {
	name, full := t.Name, ""
	if name != "" {
		full = w.recordFullName(name)
	} else {
		full = w.namelessFull(t)
		name = full
	}
	known, err := w.head(name, full, space)
	if known || err != nil {
		return err
	}
	inner, _ := splitFull(full)
	if err := w.fields(t.Fields, inner); err != nil {
		return err
	}
	return w.end(t)
}

func (w *writer) namelessFull(t *schema.Type) string {
	required := *t
	required.Optional = false
	for i := range w.nameless {
		if reflect.DeepEqual(&w.nameless[i].typ, &required) {
			return w.nameless[i].full
		}
	}
	full := connectNamespace + "." + namelessName
	if n := len(w.nameless); n > 0 {
		full += strconv.Itoa(n + 1)
	}
	w.nameless = append(w.nameless, nameless{required, full})
	return full
}

// head prints the beginning of a record, or its name if it has been printed before, and says which.
func (w *writer) head(name, full, space string) (known bool, err error) {
	inner, short := splitFull(full)
	if w.known[full] {
		if inner == space && inner != "" && !kind(short).known() {
			full = short
		}
		w.dst = appendQuoted(w.dst, full)
		return true, nil
	}
	if why := fullNameFault(full); why != "" {
		return false, &NameError{Name: name, Path: slices.Clone(w.path), why: why}
	}
	w.known[full] = true
	w.dst = append(w.dst, `{"type":"record","name":`...)
	w.dst = appendQuoted(w.dst, short)
	if inner != space {
		w.dst = append(w.dst, `,"namespace":`...)
		w.dst = appendQuoted(w.dst, inner)
	}
	return false, nil
}

func (w *writer) fields(fields []schema.Field, space string) error {
	w.dst = append(w.dst, `,"fields":[`...)
	names := make(map[string]string, len(fields))
	for i := range fields {
		f := &fields[i]
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.path = append(w.path, f.Name)
		name := w.fieldName(f.Name)
		why := nameFault(name)
		if other, ok := names[name]; ok {
			why = fmt.Sprintf("the field %q has that name in Avro, too", other)
		}
		if why != "" {
			return &NameError{Name: f.Name, Field: true, Path: slices.Clone(w.path), why: why}
		}
		names[name] = f.Name
		w.dst = append(w.dst, `{"name":`...)
		w.dst = appendQuoted(w.dst, name)
		w.dst = append(w.dst, `,"type":`...)
		if err := w.write(f.Type, space); err != nil {
			return err
		}
		switch {
		case hasDefault(f.Type):
			w.dst = append(w.dst, `,"default":`...)
			if err := w.defaultValue(f.Type); err != nil {
				return err
			}
		case f.Type.Optional:
			w.dst = append(w.dst, `,"default":null`...)
		}
		w.dst = append(w.dst, '}')
		w.path = w.path[:len(w.path)-1]
	}
	w.dst = append(w.dst, ']')
	return nil
}

const defaultPrecision = 64 // AvroData's for a decimal that does not say its own

// properties prints the properties of a type; connectType is "" for none.
func (w *writer) properties(t *schema.Type, connectType string) error {
	decimal := strings.EqualFold(t.Name, schema.DecimalName)
	if decimal && t.Type == "bytes" {
		scale, err := strconv.ParseInt(t.Parameter("scale"), 10, 32)
		if err != nil {
			return fmt.Errorf("%s is a decimal whose scale is %q", w.place(), t.Parameter("scale"))
		}
		precision := int64(defaultPrecision)
		if p := t.Parameter("connect.decimal.precision"); p != "" {
			if precision, err = strconv.ParseInt(p, 10, 32); err != nil {
				return fmt.Errorf("%s is a decimal whose precision is %q", w.place(), p)
			}
		}
		w.number("scale", scale)
		w.number("precision", precision)
	}
	if !w.NoMeta {
		if err := w.connect(t, connectType); err != nil {
			return err
		}
	}
	if l := logicalType(t.Name); l != "" {
		w.text("logicalType", l)
	}
	for _, p := range t.Parameters {
		if strings.HasPrefix(p.Name, "avro") {
			w.text(p.Name, p.Value)
		}
	}
	return nil
}

// connect prints the connect.* properties.
func (w *writer) connect(t *schema.Type, connectType string) error {
	if t.Doc != "" || t.BlankDoc {
		w.text("connect.doc", t.Doc)
	}
	if t.Version != 0 {
		w.number("connect.version", int64(t.Version))
	}
	for i, p := range t.Parameters {
		if i == 0 {
			w.dst = append(w.dst, `,"connect.parameters":{`...)
		} else {
			w.dst = append(w.dst, ',')
		}
		w.dst = appendQuoted(w.dst, p.Name)
		w.dst = append(w.dst, ':')
		w.dst = appendQuoted(w.dst, p.Value)
		if i == len(t.Parameters)-1 {
			w.dst = append(w.dst, '}')
		}
	}
	if hasDefault(t) {
		w.dst = append(w.dst, `,"connect.default":`...)
		if err := w.defaultValue(t); err != nil {
			return err
		}
	}
	if t.Name != "" {
		w.text("connect.name", t.Name)
	}
	if connectType != "" {
		w.text("connect.type", connectType)
	}
	return nil
}

// logicalType is what Connect's own types are in Avro.
func logicalType(name string) string {
	switch {
	case name == "":
		return ""
	case strings.EqualFold(name, schema.DecimalName):
		return "decimal"
	case strings.EqualFold(name, "org.apache.kafka.connect.data.Date"):
		return "date"
	case strings.EqualFold(name, "org.apache.kafka.connect.data.Time"):
		return "time-millis"
	case strings.EqualFold(name, "org.apache.kafka.connect.data.Timestamp"):
		return "timestamp-millis"
	}
	return ""
}

func (w *writer) text(name, value string) {
	w.dst = append(w.dst, ',')
	w.dst = appendQuoted(w.dst, name)
	w.dst = append(w.dst, ':')
	w.dst = appendQuoted(w.dst, value)
}

func (w *writer) number(name string, value int64) {
	w.dst = append(w.dst, ',')
	w.dst = appendQuoted(w.dst, name)
	w.dst = append(w.dst, ':')
	w.dst = strconv.AppendInt(w.dst, value, 10)
}

// defaultValue prints the default of t.
func (w *writer) defaultValue(t *schema.Type) error {
	dst, err := appendDefault(w.dst, t, t.Default)
	if err != nil {
		return fmt.Errorf("%s: %w", w.place(), err)
	}
	w.dst = dst
	return nil
}

// place names what is printed for an error.
func (w *writer) place() string {
	if len(w.path) == 0 {
		return "the schema"
	}
	return "field " + strings.Join(w.path, ".")
}
