package emitter

import (
	"encoding/binary"

	"github.com/tidemark-cdc/tidemark/schema"
)

// fieldText is a field of the event or the clock in the text of a segment. The next event writes it over in place: it is
// mostly the same, or has as many bytes, and to render all of the text would be a large part of what a transaction of one
// row costs.
type fieldText struct {
	field    field
	form     fieldForm
	at, size int    // where it stands; of text without its quotes or its length
	text     []byte // it there
}

// fieldForm is what stands in the text.
type fieldForm uint8

const (
	formOther  fieldForm = iota // nothing that could be written over
	formNull                    // null
	formSource                  // JSON's digits of the event's time, a usual one …
	formWall                    // … and of the clock's
	formNumber                  // other digits
	formText                    // text in JSON of which nothing is escaped
	formVarint                  // Avro's numbers
	formBytes                   // text that is written as it is: Avro's, and GTIDs
)

// newFieldText is the field of a part that has been rendered to text[start:end].
func newFieldText(p *part, start, end int, n *now) fieldText {
	f := fieldText{field: p.field, at: start, size: end - start}
	usual := 0
	switch p.field {
	case sourceGTID, sourceFile, sourceQuery, sourceDatabase, sourceTable:
		switch s := n.texts[p.field]; {
		case len(s) == 0 && p.field.nullable():
			f.form = formNull
		case p.binary:
			f.form, f.at, f.size = formBytes, end-len(s), len(s)
		case f.size == len(s)+2: // what is escaped is longer
			f.form, f.at, f.size = formText, start+1, len(s)
			if p.field == sourceGTID { // nothing of any is escaped
				f.form = formBytes
			}
		}
		return f
	case sourceThread:
		if n.info.Thread < 0 {
			f.form = formNull
			return f
		}
	case sourceTsMs, envelopeTsMs:
		usual = milliDigits
	case sourceTsUs, envelopeTsUs:
		usual = microDigits
	case sourceTsNs, envelopeTsNs:
		usual = nanoDigits
	}
	switch {
	case p.binary && p.optional: // behind the branch
		f.form, f.at, f.size = formVarint, start+1, f.size-1
	case p.binary:
		f.form = formVarint
	case usual == 0:
		f.form = formNumber
	case usual != f.size:
	case p.field.scope() == scopeClock:
		f.form = formWall
	default:
		f.form = formSource
	}
	return f
}

// replace writes the fields that have changed since seen over their text. false: one has another length now, or may have.
func replace(fields []fieldText, n *now, seen uint64) bool {
	for i := range fields {
		f := &fields[i]
		if n.changed[f.field] <= seen {
			continue
		}
		text, same := f.text, false
		switch f.form {
		case formSource:
			if !n.source.known {
				n.setSource()
			}
			same = n.source.put(text)
		case formWall:
			if !n.wall.known {
				n.setWall()
			}
			same = n.wall.put(text)
		case formNumber:
			digits := schema.AppendInt(n.room[:0], n.number(f.field))
			same = len(digits) == len(text) && (f.field != sourceThread || n.info.Thread >= 0)
			copy(text, digits)
		case formVarint:
			digits := putVarint(n.room[:0], zigzag(n.number(f.field)))
			same = len(digits) == len(text) && (f.field != sourceThread || n.info.Thread >= 0)
			copy(text, digits)
		case formText:
			s := n.texts[f.field]
			same = len(s) == len(text) && putPlain(text, s)
		case formBytes:
			s := n.texts[f.field]
			same = len(s) == len(text)
			copy(text, s)
		case formNull:
			same = f.field == sourceThread && n.info.Thread < 0 || f.field != sourceThread && len(n.texts[f.field]) == 0
		}
		if !same {
			return false
		}
	}
	return true
}

// putPlain writes s over a text of as many bytes and says whether it is ASCII without anything to escape.
func putPlain(text, s []byte) bool {
	if len(s) < 8 {
		copy(text, s)
		return plainASCII(shortWord(s))
	}
	last := binary.LittleEndian.Uint64(s[len(s)-8:])
	binary.LittleEndian.PutUint64(text[len(text)-8:], last)
	marks := escapeMarks(last)
	for len(s) > 8 && len(text) > 8 {
		w := binary.LittleEndian.Uint64(s)
		binary.LittleEndian.PutUint64(text, w)
		marks |= escapeMarks(w)
		s, text = s[8:], text[8:]
	}
	return marks&highs == 0
}
