package emitter

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/schema"
)

// COMMENT ” is a comment, and stands in the schema.
func TestBlankComment(t *testing.T) {
	got, err := appendSchema(nil, &schema.Type{Type: "int32", BlankDoc: true}, nil, false)
	if want := `{"type":"int32","optional":false,"doc":""}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	got, err = appendSchema(nil, &schema.Type{Type: "int32"}, nil, false)
	if want := `{"type":"int32","optional":false}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
