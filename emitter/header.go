package emitter

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/tidemark-cdc/tidemark/schema"
)

const (
	newKeyHeader  = "__debezium.newkey"
	oldKeyHeader  = "__debezium.oldkey"
	contextHeader = "__debezium.context."
)

// contextHeaders are the headers that every data record carries when Debezium's extended headers are on.
func contextHeaders(cfg *Config) []Header {
	return []Header{
		{contextHeader + "connectorLogicalName", []byte(cfg.Prefix)},
		{contextHeader + "taskId", []byte("0")},
		{contextHeader + "connectorName", []byte(cfg.Connector)},
		{contextHeader + "runId", []byte(cfg.RunID)},
	}
}

// appendHeaderText appends a value inside a struct as Connect's SimpleHeaderConverter does: like JSON, but of a
// string's characters only the quote and the backslash are escaped, and decimals are always numbers.
func appendHeaderText(dst []byte, v *schema.Value, scale int) ([]byte, error) {
	switch v.Kind {
	case schema.String:
		dst = append(dst, '"')
		for _, c := range v.Bytes {
			if c == '"' || c == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, c)
		}
		return append(dst, '"'), nil
	case schema.Float:
		return appendFloat(dst, float32(v.Float)), nil
	case schema.Double:
		return appendDouble(dst, v.Float), nil
	}
	return appendJSON(dst, v, scale)
}

// newRunID makes a version 7 UUID: milliseconds of the clock, then random bits.
func newRunID(now time.Time) string {
	var u [16]byte
	_, _ = rand.Read(u[6:]) // never fails
	ms := now.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
