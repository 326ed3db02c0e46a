package binlog

import (
	"strings"

	"github.com/tidemark-cdc/tidemark/offset"
)

// gtidTexts makes the texts of GTIDs, which somebody may keep.
type gtidTexts struct {
	block strings.Builder // many texts share an allocation
	last  offset.GTID     // made last …
	text  []byte          // … and its text
}

// textBlock is how many bytes are allocated at a time. A text that is kept keeps all of them.
const textBlock = 4 << 10

// of is the text of a GTID. That of the next number is made from the one before it.
func (t *gtidTexts) of(id offset.GTID) string {
	t.last.Number++
	if t.last != id || !increment(t.text) {
		t.last, t.text = id, id.Append(t.text[:0])
	}
	start := t.block.Len()
	if t.block.Cap()-start < len(t.text) {
		t.block.Reset()
		t.block.Grow(max(textBlock, len(t.text)))
		start = 0
	}
	t.block.Write(t.text)
	return t.block.String()[start:]
}

// increment adds one to the number that a text ends with. It leaves the text as it is if that takes a digit more.
func increment(text []byte) bool {
	i := len(text)
	for i > 0 && text[i-1] == '9' {
		i--
	}
	if i == 0 || text[i-1] < '0' || text[i-1] > '8' {
		return false
	}
	text[i-1]++
	for ; i < len(text); i++ {
		text[i] = '0'
	}
	return true
}
