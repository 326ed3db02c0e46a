package binlog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/tidemark-cdc/tidemark/offset"
)

// OpenFiles opens a reader over binlog files, in the order given, which must be the one in which they were written,
// without a gap: as far as their names and beginnings show it, that is checked before anything is read. Positions name
// them by their base names. What lies before the start is read first, for its GTIDs. Read returns io.EOF at the end of
// the last file. The caller closes the reader.
func OpenFiles(ctx context.Context, cfg Config, files []string, from Start) (*Reader, error) {
	if len(files) == 0 {
		return nil, errors.New("no binlog files given")
	}
	if err := checkFiles(files); err != nil {
		return nil, err
	}
	r, err := newReader(cfg, &fileStream{files: files})
	if err != nil {
		return nil, err
	}
	r.asm.early = true
	again := &filesAgain{files: files}
	r.asm.reopen = again.reopen
	if again.regular() {
		r.jump.open = again.at
	}
	if err := r.startFiles(ctx, from); err != nil {
		r.Close()
		return nil, err
	}
	r.begin()
	return r, nil
}

func (r *Reader) startFiles(ctx context.Context, from Start) error {
	a := &r.asm
	switch {
	case from.Offset != nil:
		r.start = *from.Offset
		if r.start.GTIDs.IsAbsent() {
			a.cover = coverOf(r.start)
			if err := r.seek(ctx, r.start.File, r.start.Pos); err != nil {
				return err
			}
			r.start.GTIDs = r.position().GTIDs
			r.resumeAt(r.start, false)
			return nil
		}
		r.startAfter(r.start.GTIDs)
		a.read = offset.Offset{File: r.start.File, Pos: r.start.Pos}
		r.resumeAt(r.start, true)
		return r.head(ctx)
	case !from.GTIDs.IsAbsent():
		r.startAfter(from.GTIDs)
		if err := r.head(ctx); err != nil {
			return err
		}
	case from.File != "":
		if err := r.seek(ctx, from.File, from.Pos); err != nil {
			return err
		}
	case from.Now:
		for {
			err := r.scan(ctx)
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
		}
		a.finishGroup()
	default:
		if err := r.head(ctx); err != nil {
			return err
		}
	}
	r.start = r.position()
	return nil
}

// startAfter leaves out the transactions of a set.
func (r *Reader) startAfter(set offset.GTIDSet) {
	r.asm.set, r.asm.gtids, r.asm.first = set, true, true
	r.asm.maria.marks = set
}

// fileStream reads binlog files one after the other.
type fileStream struct {
	files []string // still to come

	file     *os.File
	in       *bufio.Reader
	name     string // base name of the open file
	pos      int64
	checksum bool
	follows  string // the file that the last ROTATE names
	buf      []byte
	announce bool // the name of the open file is still to be given out

	jump int64 // in the first file go on here behind its FORMAT_DESCRIPTION; 0: do not
}

func (f *fileStream) next(ctx context.Context) ([]byte, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	for {
		if f.file == nil {
			if len(f.files) == 0 {
				return nil, 0, io.EOF
			}
			if err := f.open(); err != nil {
				return nil, 0, err
			}
		}
		if f.announce {
			f.announce = false
			return artificialRotate(f.name), -1, nil
		}
		raw, err := f.event()
		if err == io.EOF {
			f.file.Close()
			f.file = nil
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", at(f.name, f.pos), err)
		}
		start := f.pos
		f.pos += int64(binary.LittleEndian.Uint32(raw[9:]))
		if f.jump > 0 && raw[4] == evFormat {
			if _, err := f.file.Seek(f.jump, io.SeekStart); err != nil {
				return nil, 0, fmt.Errorf("%s: %w", at(f.name, f.jump), err)
			}
			f.in.Reset(f.file)
			f.pos, f.jump = f.jump, 0
		}
		return raw, start, nil
	}
}

// open opens the next file and checks its first four bytes.
func (f *fileStream) open() error {
	path := f.files[0]
	f.files = f.files[1:]
	name := filepath.Base(path)
	if f.follows != "" && f.follows != name {
		return wrongOrder(f.name, f.follows, name)
	}
	file, err := openFile(path)
	if err != nil {
		return err
	}
	f.file, f.name, f.pos, f.checksum, f.follows, f.announce = file, name, firstPos, false, "", true
	if f.in == nil {
		f.in = bufio.NewReaderSize(file, 256<<10)
	} else {
		f.in.Reset(file)
	}
	return nil
}

// openFile opens a binlog file and reads the four bytes with which one begins.
func openFile(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("binlog file: %w", err)
	}
	var magic [firstPos]byte
	n, err := io.ReadFull(file, magic[:])
	if err == nil && bytes.Equal(magic[:], replication.BinLogFileHeader) {
		return file, nil
	}
	file.Close()
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("binlog file: %w", err)
	case n == 0:
		return nil, fmt.Errorf("%s is empty, not a binlog file", path)
	case string(magic[:]) == "\xfdbin":
		return nil, fmt.Errorf("%s is an encrypted binlog: copy it with mysqlbinlog --read-from-remote-server --raw, which gives it in clear", path)
	case string(magic[:2]) == "\x1f\x8b":
		return nil, fmt.Errorf("%s is compressed by gzip: unpack it first (gunzip -k %[1]s, or gzip -dc %[1]s > FILE when its name does not end in .gz)", path)
	}
	return nil, fmt.Errorf("%s is not a binlog file: it does not begin with fe 62 69 6e", path)
}

// checkFiles looks at what can be seen of all files without reading them: how they begin, and the numbers in their
// names. What can be read only once, as a pipe, is left out.
func checkFiles(files []string) error {
	before := ""
	for _, path := range files {
		if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
			file, err := openFile(path)
			if err != nil {
				return err
			}
			file.Close()
		}
		name := filepath.Base(path)
		if next := nextFile(before); next != name && next != "" && nextFile(name) != "" && withoutExt(next) == withoutExt(name) {
			return wrongOrder(before, next, name)
		}
		before = name
	}
	return nil
}

func wrongOrder(name, next, given string) error {
	return fmt.Errorf("binlog %s is followed by %s, but the next file given is %s: give all files in their order, each once", name, next, given)
}

// nextFile is the name that the server gives to the file after the named one: mysql-bin.000009, mysql-bin.000010. It is
// "" after a name that is not of this form.
func nextFile(name string) string {
	dot := strings.LastIndexByte(name, '.')
	digits := name[dot+1:]
	n, err := strconv.ParseUint(digits, 10, 63)
	if dot < 0 || err != nil {
		return ""
	}
	return fmt.Sprintf("%s.%0*d", name[:dot], len(digits), n+1)
}

func withoutExt(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// event reads one event and takes its checksum off; io.EOF at the end of the file.
func (f *fileStream) event() ([]byte, error) {
	f.buf = grow(f.buf, headerSize)
	if _, err := io.ReadFull(f.in, f.buf); err != nil {
		if err == io.EOF {
			return nil, io.EOF
		}
		return nil, cutOff(err)
	}
	size := int(binary.LittleEndian.Uint32(f.buf[9:]))
	if size < headerSize || size > maxEvent {
		return nil, fmt.Errorf("an event says that it has %d bytes: the file is damaged, or the position is not the beginning of an event", size)
	}
	// In steps, so that a wrong size costs no more memory than the file can fill.
	const step = 1 << 20
	for have := headerSize; have < size; {
		n := min(size, max(have+step, cap(f.buf)))
		f.buf = grow(f.buf, n)
		if _, err := io.ReadFull(f.in, f.buf[have:n]); err != nil {
			return nil, cutOff(err)
		}
		have = n
	}
	typ := f.buf[4]
	if typ == evFormat {
		if size < headerSize+1+checksumSize {
			return nil, errShort
		}
		f.checksum = f.buf[size-checksumSize-1] == 1
	}
	if f.checksum && !validChecksum(f.buf) {
		return nil, errChecksum
	}
	raw := f.buf
	if f.checksum || typ == evFormat { // it has room for a checksum in any case
		raw = raw[:size-checksumSize]
	}
	if typ == evRotate && len(raw) > headerSize+8 {
		f.follows = string(raw[headerSize+8:])
	}
	return raw, nil
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends inside an event: it is cut off, or the server was still writing it when it was copied")
	}
	return err
}

func (f *fileStream) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// artificialRotate is the event with which a server says which file comes.
func artificialRotate(file string) []byte {
	raw := make([]byte, headerSize, headerSize+8+len(file))
	raw[4] = evRotate
	binary.LittleEndian.PutUint32(raw[9:], uint32(cap(raw)))
	binary.LittleEndian.PutUint16(raw[17:], flagArtificial)
	raw = binary.LittleEndian.AppendUint64(raw, firstPos)
	return append(raw, file...)
}
