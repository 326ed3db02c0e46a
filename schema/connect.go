package schema

// Type is a Connect schema: the tree from which both the schema part of JSON and the Avro schema text are printed.
type Type struct {
	Type       string // boolean int8 int16 int32 int64 float double bytes string array map struct (JsonConverter's words)
	Optional   bool
	Name       string      // "" for none
	Version    int         // 0 for none
	Doc        string      // "" for none
	BlankDoc   bool        // Doc is "" and there is one: that of COMMENT ''
	Parameters []Parameter // in the order in which they are printed
	Default    *Value      // nil for none; what a NULL is replaced by, too
	Fields     []Field     // of a struct
	Items      *Type       // of an array
	Keys       *Type       // of a map
	Values     *Type       // of a map
}

// Field is a named member of a struct [Type].
type Field struct {
	Name string
	Type *Type
}

// Parameter is one entry of a schema's parameters.
type Parameter struct {
	Name, Value string
}

// Parameter returns the value of a parameter; "" if there is none.
func (t *Type) Parameter(name string) string {
	for _, p := range t.Parameters {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// Names of schemas that formats treat in their own way or that readers of the package test for.
const (
	DecimalName     = "org.apache.kafka.connect.data.Decimal" // the scale is in the parameter "scale"
	bitsName        = "io.debezium.data.Bits"
	jsonName        = "io.debezium.data.Json"
	enumName        = "io.debezium.data.Enum"
	enumSetName     = "io.debezium.data.EnumSet"
	floatVectorName = "io.debezium.data.FloatVector"
	pointName       = "io.debezium.data.geometry.Point"
	geometryName    = "io.debezium.data.geometry.Geometry"
	uuidName        = "io.debezium.data.Uuid"

	dateName           = "io.debezium.time.Date"
	microTimeName      = "io.debezium.time.MicroTime"
	nanoTimeName       = "io.debezium.time.NanoTime"
	timestampName      = "io.debezium.time.Timestamp"
	microTimestampName = "io.debezium.time.MicroTimestamp"
	nanoTimestampName  = "io.debezium.time.NanoTimestamp"
	zonedName          = "io.debezium.time.ZonedTimestamp"
	yearName           = "io.debezium.time.Year"
	isoDateName        = "io.debezium.time.IsoDate"
	isoTimeName        = "io.debezium.time.IsoTime"
	isoTimestampName   = "io.debezium.time.IsoTimestamp"

	connectDateName      = "org.apache.kafka.connect.data.Date"
	connectTimeName      = "org.apache.kafka.connect.data.Time"
	connectTimestampName = "org.apache.kafka.connect.data.Timestamp"
)

// Decoder turns the bytes of one cell (content only: no length prefix) into *out; a nil cell is NULL. A decoded
// Value may alias cell and scratch. NULL, zero dates and the like come out as the schema's default when the column is
// NOT NULL, as the type's fallback when it has none either. An error means that the bytes are not a value of the column's type. Decoders do not allocate and are safe
// for concurrent use with different scratches.
type Decoder func(cell []byte, scratch *Scratch, out *Value) error
