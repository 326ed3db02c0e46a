package binlog

import (
	"bufio"
	"bytes"
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
	name   string     // of file, if it could not be taken away
	onDisk []*spooled // what lies in file
	frame  []byte
}

// spooled is one sequence of events. It is written to its end before the next one is begun.
type spooled struct {
	memory    []byte // what comes after the part on disk
	off, size int64  // the part on disk
	frames    int
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
	to.frames++
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
	if to.size == 0 {
		to.off = s.end()
		s.onDisk = append(s.onDisk, to)
	}
	if _, err := s.file.WriteAt(to.memory, to.off+to.size); err != nil {
		return fmt.Errorf("XA spool: %w", err)
	}
	to.size += int64(len(to.memory))
	s.memory -= len(to.memory)
	to.memory = nil
	return nil
}

// end is where nothing lies any more behind in the file.
func (s *spool) end() int64 {
	end := int64(0)
	for _, o := range s.onDisk {
		end = max(end, o.off+o.size)
	}
	return end
}

// release gives up a sequence; nil is allowed.
func (s *spool) release(o *spooled) {
	if o == nil {
		return
	}
	s.memory -= len(o.memory)
	o.memory = nil
	i := slices.Index(s.onDisk, o)
	if i < 0 {
		return
	}
	s.onDisk = slices.Delete(s.onDisk, i, i+1)
	// A file that is too long costs only space, which the next end of a transaction gives back.
	_ = s.file.Truncate(s.end())
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
	s.onDisk, s.memory = nil, 0
}

// spoolReader reads a sequence from its beginning.
type spoolReader struct {
	in  *bufio.Reader
	buf []byte
}

// read begins to read a sequence, which must not be written to or released meanwhile.
func (s *spool) read(o *spooled) *spoolReader {
	var in io.Reader = bytes.NewReader(o.memory)
	if o.size > 0 {
		in = io.MultiReader(io.NewSectionReader(s.file, o.off, o.size), in)
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
