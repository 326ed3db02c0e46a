package schema

// MySQL's type codes, as TABLE_MAP and binary JSON have them.
const (
	typeDecimal           = 0
	typeTiny              = 1
	typeShort             = 2
	typeLong              = 3
	typeFloat             = 4
	typeDouble            = 5
	typeTimestamp         = 7
	typeLonglong          = 8
	typeInt24             = 9
	typeDate              = 10
	typeTime              = 11
	typeDatetime          = 12
	typeYear              = 13
	typeNewDate           = 14
	typeVarchar           = 15
	typeBit               = 16
	typeTimestamp2        = 17
	typeDatetime2         = 18
	typeTime2             = 19
	typeBlobCompressed    = 140 // MariaDB
	typeVarcharCompressed = 141 // MariaDB
	typeVector            = 242
	typeJSON              = 245
	typeNewDecimal        = 246
	typeEnum              = 247
	typeSet               = 248
	typeTinyBlob          = 249
	typeMediumBlob        = 250
	typeLongBlob          = 251
	typeBlob              = 252
	typeVarString         = 253
	typeString            = 254
	typeGeometry          = 255
)
