package emitter

import (
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// heartbeatShapes are the key and value of a heartbeat.
func heartbeatShapes(cfg *Config) (key, value shape) {
	key = structShape(schema.Type{Name: "io.debezium.connector.common.ServerNameKey", Version: 1}, []member{
		constant("serverName", stringType, text(cfg.Prefix)),
	})
	value = structShape(schema.Type{Name: "io.debezium.connector.common.Heartbeat", Version: 1}, []member{
		fromField("ts_ms", int64Type, envelopeTsMs),
	})
	return key, value
}

// Heartbeat appends the record of a heartbeat, which makes offset o visible. It has no headers. When one is due is the
// caller's business.
func (e *Emitter) Heartbeat(b *Batch, o offset.Offset) error {
	if err := e.side.heartbeat.resolve(); err != nil {
		return err
	}
	e.readClock() // and no more: rows of the event at hand may follow
	return e.beside(b, &e.side.heartbeat, e.Mark(o))
}
