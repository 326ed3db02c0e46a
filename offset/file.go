package offset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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
// Each connector has an entry with its offset and, when [Offset.Side] says something, one with its side record, under
// [Key.Side]; one replacement brings both.
//
// An entry is written under Connect's spelling of its key. If there is one of the same connector and prefix in another
// spelling, which Connect would not find, it is loaded, and the next Save renames it. All other entries stay as they
// are, in their places.
type FileStore struct {
	path string
	fs   FS
	warn func(string)
	lock interface{ Close() error }

	mu      sync.Mutex
	said    map[Key]string // the side records whose offset somebody else wrote: told already
	disk    []byte         // what the file holds; nil: there is none
	entries []javaEntry
	failed  error // set when it is not known any more what the file holds
	closed  bool
}

// FileOptions are what a [FileStore] can do without.
type FileOptions struct {
	// FS is the file system; nil: the system's own.
	FS FS
	// Warn is told, once for each, of offsets that somebody else wrote, and of what that costs. It must not use the store.
	// Nil: nobody is told.
	Warn func(message string)
}

// OpenFile opens the store in the file at path and locks it: a second process, or a second OpenFile in this one, is
// refused while it is open. A file that does not exist or is empty holds no offsets; anything else that is not Connect's
// map is an error that says what to do, and so is an empty file beside a FILE.bak with content. opts may be nil.
func OpenFile(path string, opts *FileOptions) (*FileStore, error) {
	if path == "" {
		return nil, errors.New("offset.storage.file.filename is empty")
	}
	var fsys FS = osFS{}
	warn := func(string) {}
	if opts != nil && opts.FS != nil {
		fsys = opts.FS
	}
	if opts != nil && opts.Warn != nil {
		warn = opts.Warn
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
	s := &FileStore{path: path, fs: fsys, warn: warn, lock: lock, said: make(map[Key]string)}
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
	// A process that ended between the replacement and the sync of the folder has left a file that the power may still take back,
	// and whoever goes on from it gives up what an earlier offset needs.
	if err := s.fs.SyncDir(filepath.Dir(s.path)); err != nil {
		return fmt.Errorf("offset file %s: writing its folder to the disk: %w", s.path, err)
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

// Load returns the offset under key, with what counts of its side record, as of opening or of the last Save; it does not
// block.
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
	if o.IsZero() {
		return o, nil // deleted: nothing is to be gone on with
	}
	side := s.exact(key.Side())
	with, ours, err := o.ReadSide(side)
	if err != nil {
		return Offset{}, fmt.Errorf("offset file %s, entry %s: %w; nothing is started, because undecided XA transactions may be noted there. "+
			"Put the content before the last write back (cp %s.bak %s), or a backup", s.path, key.Side(), err, s.path, s.path)
	}
	if told := string(side) + with.String(); !ours && s.said[key] != told {
		s.said[key] = told
		s.warn(fmt.Sprintf("offset file %s: %s", s.path, ForeignSide(key, with, side)))
	}
	return with, nil
}

// exact gives the value under a key in its one spelling; nil for none.
func (s *FileStore) exact(key Key) []byte {
	name := key.Append(nil)
	for _, e := range s.entries {
		if bytes.Equal(e.key, name) {
			return e.value
		}
	}
	return nil
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

// Save replaces the file by one with o under key and, if o has a Side, its side record. It blocks until the new file is on the disk; ctx is looked at only
// before the work begins. If the file was changed by somebody else since it was read, Save refuses.
func (s *FileStore) Save(ctx context.Context, key Key, o Offset) error {
	if o.IsZero() {
		return fmt.Errorf("offset file %s: refusing to store an empty offset for %s", s.path, key)
	}
	if err := key.Check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	entries := s.with(key, o)
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

// with gives the entries with an offset and its side record changed or added, and no other spelling of the key left.
func (s *FileStore) with(key Key, o Offset) []javaEntry {
	stored := Offset{}
	at := s.find(key)
	if at >= 0 {
		if before, err := Parse(s.entries[at].value); err == nil {
			stored = before
		}
	}
	offset := javaEntry{key.Append(nil), o.Append(nil)}
	side := javaEntry{key: key.Side().Append(nil)}
	side.value = o.AppendSide(nil, stored, s.exact(key.Side()))

	entries := make([]javaEntry, 0, len(s.entries)+2)
	hasSide := side.value == nil // none is written: an old one stays and does not count
	for i, e := range s.entries {
		switch k, ok := ParseKey(e.key); {
		case i == at:
			entries = append(entries, offset)
		case ok && k == key: // another spelling
		case side.value != nil && bytes.Equal(e.key, side.key):
			entries = append(entries, side)
			hasSide = true
		default:
			entries = append(entries, e)
		}
	}
	if at < 0 {
		entries = append(entries, offset)
	}
	if !hasSide {
		entries = append(entries, side)
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
