package binlog

import (
	"strings"

	"github.com/tidemark-cdc/tidemark/offset"
)

// gtidTexts makes the texts of GTIDs, which somebody may keep.
type gtidTexts struct {
	block strings.Builder // many texts share an allocation
	next  offset.GTIDText
}

// textBlock is how many bytes are allocated at a time. A text that is kept keeps all of them.
const textBlock = 4 << 10

func (t *gtidTexts) of(id offset.GTID) string {
	text := t.next.Of(id)
	start := t.block.Len()
	if t.block.Cap()-start < len(text) {
		t.block.Reset()
		t.block.Grow(max(textBlock, len(text)))
		start = 0
	}
	t.block.Write(text)
	return t.block.String()[start:]
}
