package main

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-cdc/tidemark/emitter/registry"
	"github.com/tidemark-cdc/tidemark/schema/avro"
)

// avroText makes text of keys or values in Avro, for people.
type avroText struct {
	client *registry.Client
	wide   bool // ids of eight bytes
	codecs map[int64]*avro.Codec
}

// newAvroText returns nil without a client: keys or values are text.
func newAvroText(client *registry.Client, wide bool) *avroText {
	if client == nil {
		return nil
	}
	return &avroText{client, wide, make(map[int64]*avro.Codec)}
}

// read returns the id of a record's schema, and the record in Avro's JSON encoding.
func (a *avroText) read(data []byte) (id int64, text []byte, err error) {
	head := 5
	if a.wide {
		head = 9
	}
	switch {
	case len(data) < head || data[0] != 0:
		return 0, nil, fmt.Errorf("a record of %d bytes does not begin with the id of its schema: this is a fault in tidemark", len(data))
	case a.wide:
		id = int64(binary.BigEndian.Uint64(data[1:]))
	default:
		id = int64(binary.BigEndian.Uint32(data[1:]))
	}
	codec := a.codecs[id]
	if codec == nil {
		schema, ok := a.client.Text(id)
		if !ok {
			return id, nil, fmt.Errorf("the schema %d of a record is not known: this is a fault in tidemark", id)
		}
		if codec, err = avro.NewCodec(schema); err != nil {
			return id, nil, err
		}
		a.codecs[id] = codec
	}
	text, err = codec.AppendJSON(nil, data[head:])
	return id, text, err
}
