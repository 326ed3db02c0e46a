package registry

import (
	"fmt"
	"strings"
)

// givenID is what a registry gave an id for: what the schema says of bytes, and the subject that it was for.
type givenID struct {
	layout  uint64
	subject string
}

// givenTwice is the error for an id that the registry has given for a schema of other bytes before.
func (c *Client) givenTwice(s Schema, base string, id int64, before string) *Refused {
	return &Refused{
		Subject: s.Subject, URL: base,
		what:   fmt.Sprintf("the schema registry at %s gives the schema of subject %q the id %d", base, s.Subject, id),
		Reason: fmt.Sprintf("it has given that id before for another schema, of subject %q, so that readers would take the one for the other", before),
		Advice: "was the registry emptied, or restored from an older copy? Give it back what it had (records that are written already have ids of it), then start again",
	}
}

// layoutOf hashes what of a schema decides the bytes of records and what they mean, so that it is the same for texts that
// a registry may rightly take for one schema. It is for our own texts, which have the members of objects in one order and no
// blanks: parsing each schema of ten thousand tables would take seconds.
func layoutOf(text string) uint64 {
	h := hasher{text: text, sum: fnvOffset}
	h.value(true)
	return h.sum
}

// The numbers of FNV-1a.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// hasher walks through JSON. Of a text that is none it hashes all that is left.
type hasher struct {
	text string
	at   int
	sum  uint64
}

func (h *hasher) add(s string, counts bool) {
	if !counts {
		return
	}
	for i := range len(s) {
		h.sum = (h.sum ^ uint64(s[i])) * fnvPrime
	}
}

// value passes a value, and hashes it if it counts.
func (h *hasher) value(counts bool) {
	if h.at >= len(h.text) {
		return
	}
	switch h.text[h.at] {
	case '{':
		more := false
		h.members('}', func() {
			key := h.quoted()
			counts := counts && !withoutBytes(key)
			if counts && key != `"type"` { // {"type":"int"} is "int"
				h.add(key, true)
				more = true
			}
			h.at = min(h.at+1, len(h.text)) // the colon
			h.value(counts)
		})
		h.add("}", counts && more)
	case '[':
		h.add("[", counts)
		h.members(']', func() { h.value(counts) })
		h.add("]", counts)
	case '"':
		h.add(h.quoted(), counts)
	default:
		rest := h.text[h.at:]
		end := strings.IndexAny(rest, ",]}")
		if end <= 0 {
			end = len(rest)
		}
		h.add(rest[:end], counts)
		h.at += end
	}
}

// members passes what is between brackets, one at a time.
func (h *hasher) members(last byte, one func()) {
	for h.at++; h.at < len(h.text); h.at++ {
		if h.text[h.at] != last {
			one()
		}
		if h.at < len(h.text) && h.text[h.at] == last {
			h.at++
			return
		}
	}
}

// quoted passes a string and returns it with its quotes.
func (h *hasher) quoted() string {
	start := h.at
	for h.at++; h.at < len(h.text); h.at++ {
		switch h.text[h.at] {
		case '\\':
			h.at++
		case '"':
			h.at++
			return h.text[start:h.at]
		}
	}
	h.at = len(h.text)
	return h.text[start:]
}

// withoutBytes says whether a property of schemas, given with its quotes, decides nothing about bytes: as avro.SameBytes has it.
func withoutBytes(key string) bool {
	switch key {
	case `"doc"`, `"default"`, `"aliases"`, `"connect.doc"`, `"connect.version"`, `"connect.parameters"`, `"connect.default"`:
		return true
	}
	return false
}
