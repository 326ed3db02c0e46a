package offset

// GTIDText makes the texts of GTIDs, one after the other in the same memory. The zero value is ready. Not safe for concurrent use.
type GTIDText struct {
	last GTID
	text []byte // of last
}

// Of is the text of id, as [GTID.Append] has it. It holds until the next call. That of the next number, the usual case of a
// replication stream, is made from the one before it.
func (t *GTIDText) Of(id GTID) []byte {
	if t.last.Number++; t.last != id || !increment(t.text) {
		t.last, t.text = id, id.Append(t.text[:0])
	}
	return t.text
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
