package offset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
)

// FileStore is the file in which a standalone Kafka Connect worker keeps its offsets (offset.storage.file.filename):
// one Java-serialised map, byte for byte as Connect writes it, and readable by it. Connect truncates the file and
// writes it anew, so that a crash loses all offsets; here it is replaced: the file is always a whole old or a whole
// new one (I9). Beside it lie
//
//	FILE.bak   the content before the last replacement
//	FILE.tmp   during a replacement, or after a crash in one: never read
//	FILE.lock  locked, with the process id in it, while a process has the file open
//
// An entry is written under Connect's spelling of its key. If there is one of the same connector and prefix in another
// spelling, which Connect would not find, it is loaded, and the next Save renames it. All other entries stay as they
// are, in their places.
type FileStore struct {
	path string
	fs   FS
	lock interface{ Close() error }

	mu      sync.Mutex
	disk    []byte // what the file holds; nil: there is none
	entries []javaEntry
	failed  error // set when it is not known any more what the file holds
	closed  bool
}

// OpenFile opens the store in the file at path and locks it: a second process, or a second OpenFile in this one, is
// refused while it is open. A file that does not exist or is empty holds no offsets; anything else that is not Connect's
// map is an error that says what to do, and so is an empty file beside a FILE.bak with content. The fsys is nil but in tests: the system's own.
func OpenFile(path string, fsys FS) (*FileStore, error) {
	if path == "" {
		return nil, errors.New("offset.storage.file.filename is empty")
	}
	if fsys == nil {
		fsys = osFS{}
	}
	real, err := fsys.Resolve(path)
	if errors.Is(err, fs.ErrNotExist) {
		dir := filepath.Dir(path)
		return nil, fmt.Errorf("offset file %s: its folder does not exist; make it (mkdir -p %s), writable for the user that runs Tidemark, or correct offset.storage.file.filename: %w", path, dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("offset file: %w", err)
	}
	path = real
	lock, err := fsys.Lock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("offset file %s: %w", path, err)
	}
	s := &FileStore{path: path, fs: fsys, lock: lock}
	if err := s.read(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

func (s *FileStore) read() error {
	data, err := s.readFile()
	if err != nil {
		return fmt.Errorf("offset file: %w", err)
	}
	s.disk = data
	if len(data) == 0 {
		return s.checkEmpty()
	}
	if s.entries, err = parseJavaMap(data); err != nil {
		return fmt.Errorf("offset file %s cannot be read: %w; nothing is started, because starting without the offset would lose or repeat changes. "+
			"Put the content before the last write back (cp %s.bak %s; older offsets only repeat changes), or a backup, "+
			"or move the file away to start as if there were no offset (mv %s %s.old; more on that: README, Starting anew)", s.path, err, s.path, s.path, s.path, s.path)
	}
	return nil
}

// checkEmpty tells a file that is new from one that a Connect worker was killed over: that leaves it without content.
func (s *FileStore) checkEmpty() error {
	if s.disk == nil {
		return nil
	}
	bak := s.path + ".bak"
	before, err := s.fs.ReadFile(bak)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("offset file: %w", err)
	}
	if len(before) == 0 {
		return nil
	}
	return fmt.Errorf("offset file %s is empty, but %s is not: most likely a Kafka Connect worker was killed while it wrote the file. "+
		"Put the content before back (cp %s %s; older offsets only repeat changes), or move that one away too to start as if there were no offset (mv %s %s.old; more on that: README, Starting anew)", s.path, bak, bak, s.path, bak, bak)
}

// readFile gives nil for a file that does not exist.
func (s *FileStore) readFile() ([]byte, error) {
	data, err := s.fs.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Load returns the offset under key as of opening or of the last Save; it does not block.
func (s *FileStore) Load(ctx context.Context, key Key) (Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return Offset{}, err
	}
	at := s.find(key)
	if at < 0 {
		return Offset{}, nil
	}
	o, err := Parse(s.entries[at].value)
	if err != nil {
		return Offset{}, fmt.Errorf("offset file %s, entry %s: %w; nothing is started, because starting without the offset would lose or repeat changes. "+
			"Put the content before the last write back (cp %s.bak %s), or a backup, or %s", s.path, s.entries[at].key, err, s.path, s.path, HowToDelete)
	}
	return o, nil
}

// find gives the index of the entry of key: Connect's spelling before any other, -1 for none.
func (s *FileStore) find(key Key) int {
	exact := key.Append(nil)
	other := -1
	for i, e := range s.entries {
		if bytes.Equal(e.key, exact) {
			return i
		}
		if k, ok := ParseKey(e.key); ok && k == key {
			other = i
		}
	}
	return other
}

func (s *FileStore) usable(ctx context.Context) error {
	if s.closed {
		return fmt.Errorf("offset file %s: the store is closed", s.path)
	}
	if s.failed != nil {
		return s.failed
	}
	return ctx.Err()
}

// Save replaces the file by one with o under key. It blocks until the new file is on the disk; ctx is looked at only
// before the work begins. If the file was changed by somebody else since it was read, Save refuses.
func (s *FileStore) Save(ctx context.Context, key Key, o Offset) error {
	if o.IsZero() {
		return fmt.Errorf("offset file %s: refusing to store an empty offset for %s", s.path, key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	entries := s.with(key, o.Append(nil))
	data := appendJavaMap(make([]byte, 0, len(s.disk)+512), entries)
	if bytes.Equal(data, s.disk) {
		return nil
	}
	if err := s.unchanged(); err != nil {
		return err
	}
	if err := s.replace(data); err != nil {
		return fmt.Errorf("offset file %s: %w", s.path, err)
	}
	s.entries, s.disk = entries, data
	return nil
}

// with gives the entries with one value changed or added, and no other spelling of the key left.
func (s *FileStore) with(key Key, value []byte) []javaEntry {
	entry := javaEntry{key.Append(nil), value}
	at := s.find(key)
	if at < 0 {
		return append(slices.Clone(s.entries), entry)
	}
	var entries []javaEntry
	for i, e := range s.entries {
		if i == at {
			entries = append(entries, entry)
		} else if k, ok := ParseKey(e.key); !ok || k != key {
			entries = append(entries, e)
		}
	}
	return entries
}

// unchanged refuses to overwrite what somebody else wrote; the lock only keeps out who looks at it.
func (s *FileStore) unchanged() error {
	now, err := s.readFile()
	if err != nil {
		return fmt.Errorf("offset file: %w", err)
	}
	if now != nil && !bytes.Equal(now, s.disk) {
		return fmt.Errorf("%w: offset file %s was changed by another program while it was in use; nothing was written over it. "+
			"Stop that program (a Kafka Connect worker with the same offset.storage.file.filename?) and start again", ErrUnusable, s.path)
	}
	return nil
}

// replace brings data into the file. The old file is never missing: it is linked to FILE.bak, not moved there.
func (s *FileStore) replace(data []byte) error {
	tmp, bak := s.path+".tmp", s.path+".bak"
	// A file whose sync failed must not be synced again as if nothing had been: begin with a new one.
	if err := s.remove(tmp); err != nil {
		return err
	}
	if err := s.fs.WriteFile(tmp, data, s.path); err != nil {
		return err
	}
	if s.disk != nil {
		if err := s.keep(bak); err != nil {
			return fmt.Errorf("keeping the content before as %s: %w", bak, err)
		}
	}
	if err := s.fs.Rename(tmp, s.path); err != nil {
		return fmt.Errorf("%w (the file must lie in a folder that is writable, and must not itself be a mount point)", err)
	}
	if err := s.fs.SyncDir(filepath.Dir(s.path)); err != nil {
		s.failed = fmt.Errorf("%w: offset file %s: the folder could not be written to the disk, so it is not known which offset it has: %w", ErrUnusable, s.path, err)
		return s.failed
	}
	return nil
}

func (s *FileStore) keep(bak string) error {
	if err := s.remove(bak); err != nil {
		return err
	}
	if err := s.fs.Link(s.path, bak); err == nil {
		return nil
	}
	// No hard links on this file system, or the file is gone: write a copy.
	return s.fs.WriteFile(bak, s.disk, s.path)
}

func (s *FileStore) remove(name string) error {
	if err := s.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Close gives the lock back. It does not write.
func (s *FileStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.lock.Close()
}
