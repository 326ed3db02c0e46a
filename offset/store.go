package offset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
)

// Store keeps the offsets of many connectors in one place, a file or a topic. What it holds of other connectors stays
// as it is. A store is safe for concurrent use, and the pipelines of one process share one instance.
type Store interface {
	// Load returns the offset stored under key, or the zero Offset if there is none. Its Side is what counts of the side
	// record beside it; if somebody else stored the offset since, that is nothing and the store says so once. It blocks on
	// reading the place anew where others may have written to it. An entry that is there and cannot be read is an error,
	// never "none".
	Load(ctx context.Context, key Key) (Offset, error)

	// Save stores o under key, with its side record unless its Side is nil, and returns when both are durable; only then it
	// is stored. The zero Offset and keys that [Key.Check] refuses are refused. After an error the old or the new offset is
	// stored, and whole. Only an offset that a [Tracker] calls safe may be saved.
	Save(ctx context.Context, key Key, o Offset) error

	// Close gives the place free for other processes. The store must not be used afterwards.
	Close() error
}

// HowToDelete tells somebody whose stored offset is of no use how to get rid of it, for error texts.
const HowToDelete = "delete the connector's stored offset (how: README, Starting anew)"

// ErrUnusable is wrapped by an error of Save after which saving again cannot succeed: somebody else wrote to the place, or
// it is not known what it holds. Whoever streams has to stop, or ever more would be sent again.
var ErrUnusable = errors.New("the offset can no longer be stored here")

// Key says whose offset it is: Connect's key of a source offset with Debezium's source partition.
type Key struct {
	Connector string // name of the connector
	Server    string // topic.prefix
}

// Append appends the exact bytes of the key as Connect's JsonConverter writes it, ["name",{"server":"prefix"}]. In a
// compacted topic another spelling would be another key.
func (k Key) Append(dst []byte) []byte {
	dst = append(dst, '[')
	dst = appendJSONString(dst, k.Connector)
	dst = append(dst, `,{"server":`...)
	dst = appendJSONString(dst, k.Server)
	return append(dst, "}]"...)
}

// String is the text that [Key.Append] appends.
func (k Key) String() string { return string(k.Append(nil)) }

// ParseKey reads a stored key in any spelling of the JSON. It is false for the keys of other kinds of connectors.
func ParseKey(text []byte) (Key, bool) {
	var parts []json.RawMessage
	var k Key
	var partition map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(text))
	if dec.Decode(&parts) != nil || len(parts) != 2 {
		return k, false
	}
	if _, err := dec.Token(); err != io.EOF {
		return k, false
	}
	if json.Unmarshal(parts[1], &partition) != nil || len(partition) != 1 {
		return k, false
	}
	if !isString(parts[0], &k.Connector) || !isString(partition["server"], &k.Server) {
		return Key{}, false
	}
	return k, true
}

func isString(raw json.RawMessage, s *string) bool {
	return len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, s) == nil
}
