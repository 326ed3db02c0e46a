package binlog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
)

// spool keeps the events of XA transactions until they are decided: in memory up to a limit over all of them, what is
// beyond it in a file that has no name. The file is only a cache: what it loses is read again from the binlog.
type spool struct {
	dir   string // of the file; "": the system's
	limit int    // bytes in memory

	memory int // in use
	file   *os.File
	name   string    // of file, if it could not be taken away
	size   int64     // of file
	free   []stretch // of file, in order, no two of them side by side and none at its end
	frame  []byte
}

// stretch is a piece of the file.
type stretch struct{ off, size int64 }

// spooled is one sequence of events. It is written to its end before the next one is begun.
type spooled struct {
	memory []byte    // what comes after the part on disk
	disk   []stretch // the part on disk, in order
}

const (
	spoolMemory = 1 << 20
	spoolChunk  = 64 << 10 // beyond the limit memory is written out in pieces of at least this size
	frameHead   = 4 + 8 + 4 + 1 + 4 + 2
)

// frame is an event in a spool: without type it is only a count of rows that are not wanted, in pos.
type frame struct {
	pos  int64
	h    header
	body []byte
}

// append writes an event to the end of the sequence written last. On an error the sequence is of no more use but for
// release.
func (s *spool) append(to *spooled, pos int64, h header, body []byte) error {
	s.frame = binary.LittleEndian.AppendUint32(s.frame[:0], uint32(len(body)))
	s.frame = binary.LittleEndian.AppendUint64(s.frame, uint64(pos))
	s.frame = binary.LittleEndian.AppendUint32(s.frame, h.time)
	s.frame = append(s.frame, h.typ)
	s.frame = binary.LittleEndian.AppendUint32(s.frame, h.server)
	s.frame = binary.LittleEndian.AppendUint16(s.frame, h.flags)
	to.memory = append(append(to.memory, s.frame...), body...)
	s.memory += frameHead + len(body)
	if s.memory <= s.limit || len(to.memory) < spoolChunk && s.memory <= s.limit+spoolChunk {
		return nil
	}
	return s.spill(to)
}

// spill moves the sequence's memory to the file.
func (s *spool) spill(to *spooled) error {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "tidemark-xa-*")
		if err != nil {
			return fmt.Errorf("XA spool: %w", err)
		}
		s.file = f
		if os.Remove(f.Name()) != nil { // some systems keep the name of an open file
			s.name = f.Name()
		}
	}
	at := s.place(int64(len(to.memory)))
	if _, err := s.file.WriteAt(to.memory, at.off); err != nil {
		s.giveBack(at)
		return fmt.Errorf("XA spool: %w", err)
	}
	if n := len(to.disk); n > 0 && to.disk[n-1].off+to.disk[n-1].size == at.off {
		to.disk[n-1].size += at.size
	} else {
		to.disk = append(to.disk, at)
	}
	s.memory -= len(to.memory)
	to.memory = nil
	return nil
}

// place takes a free piece of the file, the first that is large enough: there are always transactions that are undecided, so
// that what the others leave would never be at the end of the file.
func (s *spool) place(size int64) stretch {
	for i := range s.free {
		f := &s.free[i]
		at := stretch{f.off, size}
		switch {
		case f.size < size:
			continue
		case f.size == size:
			s.free = slices.Delete(s.free, i, i+1)
		default:
			f.off, f.size = f.off+size, f.size-size
		}
		return at
	}
	s.size += size
	return stretch{s.size - size, size}
}

// giveBack frees a piece of the file.
func (s *spool) giveBack(at stretch) {
	i, _ := slices.BinarySearchFunc(s.free, at.off, func(f stretch, off int64) int { return cmp.Compare(f.off, off) })
	s.free = slices.Insert(s.free, i, at)
	if next := i + 1; next < len(s.free) && at.off+at.size == s.free[next].off {
		s.free[i].size += s.free[next].size
		s.free = slices.Delete(s.free, next, next+1)
	}
	if before := i - 1; before >= 0 && s.free[before].off+s.free[before].size == at.off {
		s.free[before].size += s.free[i].size
		s.free = slices.Delete(s.free, i, i+1)
	}
	if n := len(s.free) - 1; s.free[n].off+s.free[n].size == s.size {
		s.size = s.free[n].off
		s.free = s.free[:n]
	}
}

// release gives up a sequence; nil is allowed.
func (s *spool) release(o *spooled) {
	if o == nil {
		return
	}
	s.memory -= len(o.memory)
	o.memory = nil
	if len(o.disk) == 0 {
		return
	}
	size := s.size
	for _, at := range o.disk {
		s.giveBack(at)
	}
	o.disk = nil
	if s.size < size {
		// A file that is too long costs only space, which the next end of a transaction gives back.
		_ = s.file.Truncate(s.size)
	}
}

// close frees the file.
func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
		if s.name != "" {
			_ = os.Remove(s.name)
		}
		s.file, s.name = nil, ""
	}
	s.size, s.free, s.memory = 0, nil, 0
}

// spoolReader reads a sequence from its beginning.
type spoolReader struct {
	in  *bufio.Reader
	buf []byte
}

// read begins to read a sequence, which must not be written to or released meanwhile.
func (s *spool) read(o *spooled) *spoolReader {
	var in io.Reader = bytes.NewReader(o.memory)
	if len(o.disk) > 0 {
		parts := make([]io.Reader, 0, len(o.disk)+1)
		for _, at := range o.disk {
			parts = append(parts, io.NewSectionReader(s.file, at.off, at.size))
		}
		in = io.MultiReader(append(parts, in)...)
	}
	return &spoolReader{in: bufio.NewReaderSize(in, spoolChunk)}
}

// next returns the next event, valid until the call after it; io.EOF at the end.
func (r *spoolReader) next() (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		if err == io.EOF {
			return frame{}, io.EOF
		}
		return frame{}, fmt.Errorf("XA spool: %v", err)
	}
	r.buf = grow(r.buf, int(binary.LittleEndian.Uint32(head[:])))
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		return frame{}, fmt.Errorf("XA spool: %v", err)
	}
	return frame{
		pos: int64(binary.LittleEndian.Uint64(head[4:])),
		h: header{
			time:   binary.LittleEndian.Uint32(head[12:]),
			typ:    head[16],
			server: binary.LittleEndian.Uint32(head[17:]),
			flags:  binary.LittleEndian.Uint16(head[21:]),
		},
		body: r.buf,
	}, nil
}
