package offset

// GTIDSet is an immutable set of GTIDs. The zero value is the absent set (no GTID mode), which is not the same as a
// set that is present and empty. Add in the usual case (the next number of the same source) allocates nothing.
type GTIDSet struct {
	s *struct{} // replaced by the real representation
}
