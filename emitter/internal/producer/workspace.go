package producer

import "bytes"

// mostRoom is how many bytes are kept in one piece for requests to come.
const mostRoom = 2 * requestBytes

// workspace is the memory that a request is made in. It is for one request at a time, of any broker: memory hangs on how many are
// written at once, and what is not used for long goes with the garbage.
type workspace struct {
	plain   []byte       // the records of a batch …
	packing bytes.Buffer // … and compressed …
	frame   []byte       // … what is around them in a request …
	buffers [][]byte     // … the pieces of both …
	whole   []byte       // … and all in one piece
}

// leave makes it ready for the next request: it keeps no piece of a batch, nor what a large record took.
func (w *workspace) leave() {
	clear(w.buffers[:cap(w.buffers)])
	if cap(w.plain) > mostRoom {
		w.plain = nil
	}
	if w.packing.Cap() > mostRoom {
		w.packing = bytes.Buffer{}
	}
	if cap(w.whole) > mostRoom {
		w.whole = nil
	}
}
