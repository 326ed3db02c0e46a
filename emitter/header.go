package emitter

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/schema"
)

const (
	newKeyHeader  = "__debezium.newkey"
	oldKeyHeader  = "__debezium.oldkey"
	contextHeader = "__debezium.context."
)

// HeaderConverter is Kafka Connect's header.converter: how the values of headers are written.
type HeaderConverter struct {
	Class string    // SimpleHeaderConverter, StringConverter or JsonConverter, without its package; "": SimpleHeaderConverter
	JSON  Converter // the settings of a JsonConverter, without Avro
}

const (
	simpleConverter = "SimpleHeaderConverter"
	stringConverter = "StringConverter"
	jsonConverter   = "JsonConverter"
)

// check refuses classes that are not built in.
func (h *HeaderConverter) check() error {
	if h.JSON.Avro != nil {
		return errors.New("header.converter cannot be an AvroConverter: it converts no headers")
	}
	switch h.Class {
	case "", simpleConverter, stringConverter, jsonConverter:
		return nil
	}
	return fmt.Errorf("header.converter %s is not built in; there are %s, %s and %s", h.Class, simpleConverter, stringConverter,
		jsonConverter)
}

// prefix is what goes before the payload.
func (h *HeaderConverter) prefix(t *schema.Type) ([]byte, error) {
	if h.Class != jsonConverter {
		return nil, nil
	}
	return h.JSON.prefix(t, nil)
}

// compile makes the program of a shape whose schema's prefix is given.
func (h *HeaderConverter) compile(s *shape, prefix []byte) (*program, error) {
	switch h.Class {
	case jsonConverter:
		return h.JSON.compile(s, prefix)
	case stringConverter:
		return compile(s, dialect{text: javaText, numbers: true}, nil, "")
	}
	// Struct.get gives a field's default for null, and decimals print themselves.
	return compile(s, dialect{text: simpleText, defaults: true, numbers: true}, nil, "")
}

// rows makes the program of what stands behind the prefix, which is the table's, in the headers of rows.
func (h *HeaderConverter) rows(s *shape) (*program, error) {
	if h.Class == jsonConverter {
		return h.JSON.rows(s, nil, nil)
	}
	return h.compile(s, nil)
}

// text is the value of a header that is a string.
func (h *HeaderConverter) text(s string) ([]byte, error) {
	if h.Class != jsonConverter {
		return []byte(s), nil
	}
	c := constant("", stringType, text(s))
	prefix, err := h.prefix(&stringType)
	if err != nil {
		return nil, err
	}
	p, err := h.compile(&c.shape, prefix)
	if err != nil {
		return nil, err
	}
	return p.append(nil, &run{})
}

// contextHeaders are the headers that every data record carries when Debezium's extended headers are on.
func contextHeaders(cfg *Config) ([]Header, error) {
	headers := []Header{
		{contextHeader + "connectorLogicalName", []byte(cfg.Prefix)},
		{contextHeader + "taskId", []byte("0")},
		{contextHeader + "connectorName", []byte(cfg.Connector)},
		{contextHeader + "runId", []byte(cfg.RunID)},
	}
	for i := range headers {
		var err error
		if headers[i].Value, err = cfg.Header.text(string(headers[i].Value)); err != nil {
			return nil, err
		}
	}
	return headers, nil
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
