package schema

import "bytes"

// Layout says what may be known of a column's cells without its [Decoder], so that a format can take a shorter way. The
// decoder is always right, too.
type Layout struct {
	Kind     LayoutKind
	Size     uint8 // of Integer: its bytes; of Decimal and Datetime: the digits after the point
	Whole    uint8 // of Decimal: the digits before the point
	Unsigned bool  // of Integer
}

// LayoutKind is what is known.
type LayoutKind uint8

// The kinds of layouts. A nil cell is left to the decoder; in an optional column it is null, but for LayoutMasked.
const (
	LayoutOther     LayoutKind = iota // nothing
	LayoutInteger                     // the cell is a little-endian integer, the value an [Int] of the same bits
	LayoutText                        // the value is a [String]; bytes from 0x20 to 0x7E are ASCII, and if the cell has no others it is the text
	LayoutJSON                        // the cell is a JSON document, which [AppendQuotedJSON] may write
	LayoutPlain                       // the value is a [String] of ASCII without control characters, quotes and backslashes
	LayoutDecimal                     // the value is [Bytes], the number that [SmallDecimal] may give in two's complement
	LayoutDatetime                    // the value is an [Int], which [LastSecond.AppendDatetime] may write
	LayoutTimestamp                   // as LayoutPlain, and [LastSecond.AppendTimestamp] may write it
	LayoutMasked                      // nothing, not even that NULL is null: a nil cell has to be decoded, too
)

// textLayout is that of text that decode decodes: UTF-16 and some national sets of seven bits give ASCII bytes another
// meaning.
func textLayout(decode textDecoder) Layout {
	var ascii []byte
	for c := byte(' '); c < 0x7f; c++ {
		ascii = append(ascii, c)
	}
	if bytes.Equal(decode(ascii, new(Scratch)), ascii) {
		return Layout{Kind: LayoutText}
	}
	return Layout{}
}
