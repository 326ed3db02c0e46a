package schema

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// storeHeader is the first line of a store's file, which says what it is and in which format.
const storeHeader = `{"tidemark":"schema store","version":1}`

// storeSlack is how many bytes of replaced lines a file may hold beyond those that count before it is written anew.
const storeSlack = 1 << 20

// storeBuffer is how many bytes of the file are read and written at once: all of it may be many megabytes.
const storeBuffer = 64 << 10

// FileStore is a [Store] in one file, for any number of connectors. The file begins with
//
//	{"tidemark":"schema store","version":1}
//
// and then has one JSON object a line, {"connector":…,"prefix":…,"table":<what StoredTable.Append writes>}, of which the
// last one of a table counts. Save appends and returns when the lines are on the disk. When more than half of the file
// and a MiB does not count any more, it is replaced by one with the rest. A last line without an end, as a crash leaves
// it, was never reported as durable: it is cut off when the file is opened.
//
// The file is not locked: whoever opens it must hold the lock of the offset file that it lies beside. It is safe for
// concurrent use.
type FileStore struct {
	path string

	mu     sync.Mutex
	file   *os.File
	size   int64
	lines  map[storeKey]stretch // where the lines are that count
	last   storeKey             // that was read from the file
	counts int64                // their bytes
	failed error                // set when it is not known any more what the file holds
}

type storeKey struct{ connector, prefix, database, table string }

type stretch struct{ start, size int64 }

// storeLine is a line of the file.
type storeLine struct {
	Connector string          `json:"connector"`
	Prefix    string          `json:"prefix"`
	Table     json.RawMessage `json:"table"`
}

// OpenFileStore opens the store in the file at path, and makes it if there is none.
func OpenFileStore(path string) (*FileStore, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("schema store: %w", err)
	}
	s := &FileStore{path: path, file: file, lines: make(map[storeKey]stretch)}
	if err := s.read(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

// read finds the lines that count, and cuts off what a crash has left of a line.
func (s *FileStore) read() error {
	lines := bufio.NewReaderSize(s.file, storeBuffer)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return fmt.Errorf("schema store %s: %w", s.path, err)
		}
		if err == io.EOF { // what is left is no line
			switch {
			case number == 1: // new, or not even its first line was written
				if !strings.HasPrefix(storeHeader, string(line)) {
					return s.foreign(string(line))
				}
				return s.replace(nil)
			case len(line) > 0:
				if err := s.file.Truncate(s.size); err != nil {
					return fmt.Errorf("schema store %s: %w", s.path, err)
				}
				return s.sync()
			}
			return nil
		}
		at := stretch{s.size, int64(len(line))}
		line = line[:len(line)-1]
		if number == 1 {
			if string(line) != storeHeader {
				return s.foreign(string(line))
			}
		} else if err := s.note(line, at); err != nil {
			return fmt.Errorf("schema store %s, line %d: %w. Move the file away: what it adds (defaults, comments, unique keys) is then read from the server again",
				s.path, number, err)
		}
		s.size += at.size
	}
}

func (s *FileStore) foreign(line string) error {
	return fmt.Errorf("schema store %s is no file of this program's, or of a later version: it begins with %q. Name another file", s.path, excerpt(line, 60))
}

// note takes a line for the one that counts.
func (s *FileStore) note(line []byte, at stretch) error {
	var l storeLine
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	t, err := ParseStoredTable(l.Table)
	if err != nil {
		return err
	}
	key := storeKey{l.Connector, l.Prefix, t.Database, t.Table}
	if last := &s.last; last.connector == key.connector && last.prefix == key.prefix && last.database == key.database {
		key.connector, key.prefix, key.database = last.connector, last.prefix, last.database // mostly they are the same
	}
	s.last = key
	s.set(key, at, len(t.Versions) == 0)
	return nil
}

// set takes a line for the one that counts, or none if the table is gone.
func (s *FileStore) set(key storeKey, at stretch, gone bool) {
	s.counts -= s.lines[key].size
	if gone {
		delete(s.lines, key)
		return
	}
	s.lines[key] = at
	s.counts += at.size
}

// Load returns everything that is stored for a connector, in no order.
func (s *FileStore) Load(ctx context.Context, connector, prefix string) ([]StoredTable, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, s.failed
	}
	var tables []StoredTable
	var shares shares
	for key, at := range s.lines {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if key.connector != connector || key.prefix != prefix {
			continue
		}
		line := make([]byte, at.size)
		if _, err := s.file.ReadAt(line, at.start); err != nil {
			return nil, fmt.Errorf("schema store %s: %w", s.path, err)
		}
		var l storeLine
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("schema store %s, byte %d: %w", s.path, at.start, err)
		}
		t, err := ParseStoredTable(l.Table)
		if err != nil {
			return nil, fmt.Errorf("schema store %s, byte %d: %w", s.path, at.start, err)
		}
		for i := range t.Versions {
			shares.add(t.Versions[i].Definition)
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// Save replaces what is stored of these tables and returns when it is durable. A table without versions is forgotten.
// After an error of the disk itself it is not known what the file holds, and so every later call fails, too.
func (s *FileStore) Save(_ context.Context, connector, prefix string, tables []StoredTable) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failed != nil:
		return s.failed
	case len(tables) == 0:
		return nil
	}
	sizes, err := s.append(connector, prefix, tables)
	if err != nil { // the disk may be full: that can pass
		if undo := s.file.Truncate(s.size); undo != nil {
			return s.fail(errors.Join(err, undo))
		}
		return fmt.Errorf("schema store %s: %w", s.path, err)
	}
	if err := s.sync(); err != nil {
		return err
	}
	for i, t := range tables {
		s.set(storeKey{connector, prefix, t.Database, t.Table}, stretch{s.size, sizes[i]}, len(t.Versions) == 0)
		s.size += sizes[i]
	}
	if s.size > 2*s.counts+storeSlack {
		return s.compact()
	}
	return nil
}

// append writes the lines of tables behind those that are there, and returns their sizes.
func (s *FileStore) append(connector, prefix string, tables []StoredTable) ([]int64, error) {
	sizes := make([]int64, len(tables))
	var out []byte
	end := s.size
	for i, t := range tables {
		before := len(out)
		out = appendStoreLine(out, connector, prefix, t)
		sizes[i] = int64(len(out) - before)
		if len(out) < storeBuffer && i < len(tables)-1 {
			continue
		}
		if _, err := s.file.WriteAt(out, end); err != nil {
			return nil, err
		}
		end += int64(len(out))
		out = out[:0]
	}
	return sizes, nil
}

func appendStoreLine(out []byte, connector, prefix string, t StoredTable) []byte {
	out = append(out, `{"connector":`...)
	out = appendJacksonString(out, connector)
	out = append(out, `,"prefix":`...)
	out = appendJacksonString(out, prefix)
	out = append(out, `,"table":`...)
	out = t.Append(out)
	return append(out, "}\n"...)
}

func (s *FileStore) sync() error {
	if err := s.file.Sync(); err != nil {
		return s.fail(err)
	}
	return nil
}

func (s *FileStore) fail(err error) error {
	s.failed = fmt.Errorf("schema store %s: %w. It has to be opened again", s.path, err)
	return s.failed
}

// compact replaces the file by one with the lines that count, in their order.
func (s *FileStore) compact() error {
	keys := make([]storeKey, 0, len(s.lines))
	for key := range s.lines {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b storeKey) int { return cmp.Compare(s.lines[a].start, s.lines[b].start) })
	return s.replace(keys)
}

// replace writes the file anew with the lines of these tables. It is a whole old or a whole new one at any moment.
func (s *FileStore) replace(keys []storeKey) error {
	temporary := s.path + ".tmp"
	file, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC, s.mode())
	if err != nil {
		return s.fail(err)
	}
	lines, size, err := s.copyLines(file, keys)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(temporary, s.path)
	}
	if err == nil {
		err = syncDirectory(filepath.Dir(s.path))
	}
	if err != nil {
		return s.fail(errors.Join(err, file.Close()))
	}
	if err := s.file.Close(); err != nil {
		return s.fail(errors.Join(err, file.Close()))
	}
	s.file, s.lines, s.size = file, lines, size
	s.counts = 0
	for _, at := range lines {
		s.counts += at.size
	}
	return nil
}

// mode is that of the file as it is.
func (s *FileStore) mode() fs.FileMode {
	if info, err := s.file.Stat(); err == nil {
		return info.Mode().Perm()
	}
	return 0o644
}

func (s *FileStore) copyLines(to io.Writer, keys []storeKey) (map[storeKey]stretch, int64, error) {
	n, err := io.WriteString(to, storeHeader+"\n")
	if err != nil {
		return nil, 0, err
	}
	size := int64(n)
	lines := make(map[storeKey]stretch, len(keys))
	for _, key := range keys {
		at := s.lines[key]
		if _, err := io.Copy(to, io.NewSectionReader(s.file, at.start, at.size)); err != nil {
			return nil, 0, err
		}
		lines[key] = stretch{size, at.size}
		size += at.size
	}
	return lines, size, nil
}

func syncDirectory(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close frees the file. Closing it twice is no error.
func (s *FileStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.file.Close()
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	s.failed = fmt.Errorf("schema store %s is closed", s.path)
	return err
}
