package avro

// kind is a type of Avro, by its name.
type kind string

const (
	kindNull    kind = "null"
	kindBoolean kind = "boolean"
	kindInt     kind = "int"
	kindLong    kind = "long"
	kindFloat   kind = "float"
	kindDouble  kind = "double"
	kindBytes   kind = "bytes"
	kindString  kind = "string"
	kindRecord  kind = "record"
	kindEnum    kind = "enum"
	kindFixed   kind = "fixed"
	kindArray   kind = "array"
	kindMap     kind = "map"
	kindUnion   kind = "union"
)

// primitive says whether k is a type without parts.
func (k kind) primitive() bool {
	switch k {
	case kindNull, kindBoolean, kindInt, kindLong, kindFloat, kindDouble, kindBytes, kindString:
		return true
	}
	return false
}

// named says whether types of this kind have names.
func (k kind) named() bool { return k == kindRecord || k == kindEnum || k == kindFixed }

// known says whether Avro has the type.
func (k kind) known() bool {
	return k.primitive() || k.named() || k == kindArray || k == kindMap || k == kindUnion
}
