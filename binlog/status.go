package binlog

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Bits of sql_mode.
const (
	modeRealAsFloat        = 1 << 0
	modeAnsiQuotes         = 1 << 2
	modeNoBackslashEscapes = 1 << 20
)

// decodeStatement reads the text of a QUERY event and what it depends on: its status variables, as MySQL's
// Query_log_event lays them out.
func decodeStatement(q queryEvent) schema.Statement {
	st := schema.Statement{Database: strings.ToValidUTF8(string(q.database), "?")}
	v := parseStatus(q.status)
	st.RealAsFloat = v.sqlMode&modeRealAsFloat != 0
	st.AnsiQuotes = v.sqlMode&modeAnsiQuotes != 0
	st.NoBackslashEscapes = v.sqlMode&modeNoBackslashEscapes != 0
	st.Collation, st.DatabaseCollation = uint32(v.server), uint32(v.database)
	if v.client != 0 {
		if text, err := schema.DecodeText(uint32(v.client), q.text); err == nil {
			st.SQL = text
			return st
		}
	}
	st.SQL = strings.ToValidUTF8(string(q.text), "\uFFFD")
	return st
}

// status is what is needed of the status variables of a QUERY event: sql_mode and the numbers of collations, 0 for those
// that are not there.
type status struct {
	sqlMode                  uint64
	client, server, database uint16
}

// parseStatus reads status variables up to the first that is not known: their lengths are not in the event.
func parseStatus(b []byte) status {
	var v status
	for len(b) > 0 {
		code := b[0]
		b = b[1:]
		size := 0
		switch code {
		case 0, 10: // flags2, master_data_written
			size = 4
		case 1, 9: // sql_mode, table_map_for_update
			size = 8
		case 2: // catalog, with a closing zero
			if len(b) == 0 {
				return v
			}
			size = 1 + int(b[0]) + 1
		case 3: // auto_increment_increment and _offset
			size = 4
		case 4: // character_set_client, collation_connection, collation_server
			size = 6
		case 5, 6: // time_zone, catalog
			if len(b) == 0 {
				return v
			}
			size = 1 + int(b[0])
		case 7, 8, 18: // lc_time_names, collation_database, default_collation_for_utf8mb4
			size = 2
		case 11: // invoker: user and host
			if len(b) == 0 || len(b) < 2+int(b[0]) {
				return v
			}
			user := 1 + int(b[0])
			size = user + 1 + int(b[user])
		case 12: // databases that the statement changes, each with a closing zero
			if len(b) == 0 {
				return v
			}
			n := int(b[0])
			size = 1
			if n < 254 { // 254: too many, none is named
				for range n {
					end := slices.Index(b[min(size, len(b)):], 0)
					if end < 0 {
						return v
					}
					size += end + 1
				}
			}
		case 13: // microseconds
			size = 3
		case 14, 15: // commit times
			size = 0
		case 16, 19, 20: // explicit_defaults_for_timestamp, sql_require_primary_key, default_table_encryption
			size = 1
		case 17: // xid of the statement
			size = 8
		case 128: // MariaDB: microseconds
			size = 3
		case 129: // MariaDB: xid
			size = 8
		default:
			return v
		}
		if len(b) < size {
			return v
		}
		switch code {
		case 1:
			v.sqlMode = binary.LittleEndian.Uint64(b)
		case 4:
			v.client, v.server = binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[4:])
		case 8:
			v.database = binary.LittleEndian.Uint16(b)
		}
		b = b[size:]
	}
	return v
}
