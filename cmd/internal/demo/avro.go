package demo

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/schema/avro"
)

// avroReader reads records in Avro as a consumer does: by the id that each begins with, of which the registry knows the
// schema.
type avroReader struct {
	client *sr.Client
	codecs map[int]*avro.Codec
}

// withoutLogin is a URL for people to read.
func withoutLogin(registry string) string {
	u, err := url.Parse(registry)
	if err != nil {
		return "the URL given"
	}
	u.User = nil
	return u.String()
}

func newAvroReader(registry string) (*avroReader, error) {
	client, err := sr.NewClient(sr.URLs(registry))
	return &avroReader{client, make(map[int]*avro.Codec)}, err
}

// text is a key or value in Avro's JSON encoding; nil a reader without a registry has text already.
func (a *avroReader) text(ctx context.Context, data []byte) ([]byte, error) {
	if a == nil || data == nil {
		return data, nil
	}
	if len(data) < 5 || data[0] != 0 {
		return nil, fmt.Errorf("a record of %d bytes does not begin with the id of its schema", len(data))
	}
	id := int(binary.BigEndian.Uint32(data[1:]))
	codec := a.codecs[id]
	if codec == nil {
		schema, err := a.client.SchemaByID(ctx, id)
		if err != nil {
			return nil, err
		}
		if codec, err = avro.NewCodec(schema.Schema); err != nil {
			return nil, err
		}
		a.codecs[id] = codec
	}
	return codec.AppendJSON(nil, data[5:])
}

// branch is a member of a union: in Avro's JSON encoding an object with the name of the member's type; the value itself in
// the JSON that Connect writes.
func branch(text json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil || len(object) != 1 {
		return text
	}
	for name, value := range object {
		if name == "string" || strings.HasSuffix(name, ".Value") {
			return value
		}
	}
	return text
}
