package offset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func openTestFile(t testing.TB, path string, f FS) *FileStore {
	t.Helper()
	return openTestFileWith(t, path, &FileOptions{FS: f})
}

func openTestFileWith(t testing.TB, path string, opts *FileOptions) *FileStore {
	t.Helper()
	s, err := OpenFile(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func save(t testing.TB, s Store, key Key, o Offset) {
	t.Helper()
	if err := s.Save(t.Context(), key, o); err != nil {
		t.Fatal(err)
	}
}

func wantLoad(t testing.TB, s Store, key Key, want Offset) {
	t.Helper()
	got, err := s.Load(t.Context(), key)
	if err != nil || !got.Equal(want) {
		t.Fatalf("%s: got %s, %v; want %s", key, got, err, want)
	}
}

var ( // never changed
	orders    = Key{"orders", "shop"}
	customers = Key{"customers", "shop"}
)

func TestFileStoreKeepsOffsets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "connect.offsets")
	s := openTestFile(t, path, nil)
	wantLoad(t, s, orders, Offset{})
	save(t, s, orders, at(1))
	save(t, s, customers, at(2))
	save(t, s, orders, at(3))
	wantLoad(t, s, orders, at(3))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context(), orders, at(4)); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Save after Close: %v", err)
	}
	again := openTestFile(t, path, nil)
	wantLoad(t, again, orders, at(3))
	wantLoad(t, again, customers, at(2))
	wantLoad(t, again, Key{"orders", "other"}, Offset{})

	bak, err := os.ReadFile(path + ".bak")
	if err != nil {
		t.Fatal(err)
	}
	want := appendJavaMap(nil, []javaEntry{{orders.Append(nil), at(1).Append(nil)}, {customers.Append(nil), at(2).Append(nil)}})
	if !bytes.Equal(bak, want) {
		t.Errorf("the file before is %q", bak)
	}
}

func TestFileStoreLeavesOtherEntriesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "connect.offsets")
	before := readTestMap(t, "connect-10-deleted.dat")
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openTestFile(t, path, nil)
	key := Key{"inventory-standalone", "dbserver9"}
	o, err := s.Load(t.Context(), key)
	if err != nil || o.Pos != 2104 || o.Row != 1 {
		t.Fatalf("got %v, %v", o, err)
	}
	save(t, s, key, o) // nothing new: nothing written
	if _, err := os.Stat(path + ".bak"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("written without need: %v", err)
	}
	o.Row = 2
	save(t, s, key, o)
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := bytes.Replace(before, []byte(`"row":1`), []byte(`"row":2`), 1); !bytes.Equal(after, want) {
		t.Errorf("got  %q\nwant %q", after, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// Connect looks a key up by its bytes, so an entry in another spelling is found by us alone until it is renamed.
func TestFileStoreWritesConnectsSpelling(t *testing.T) {
	path := filepath.Join(t.TempDir(), "connect.offsets")
	other := javaEntry{[]byte(`["x",{"filename":"y"}]`), []byte(`{"position":5}`)}
	spaced := []byte(`["orders", {"server": "shop"}]`)
	data := appendJavaMap(nil, []javaEntry{{spaced, at(7).Append(nil)}, other})
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	s := openTestFile(t, path, nil)
	wantLoad(t, s, orders, at(7))
	save(t, s, orders, at(8))
	wantLoad(t, s, orders, at(8))
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := appendJavaMap(nil, []javaEntry{{orders.Append(nil), at(8).Append(nil)}, other}); !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// Both there: Connect's counts, also when it says that there is none.
	data = appendJavaMap(nil, []javaEntry{{orders.Append(nil), nil}, {spaced, at(7).Append(nil)}})
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, openTestFile(t, path, nil), orders, Offset{})
}

func TestFileStoreRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "connect.offsets")
	whole := readTestMap(t, "connect-09-two-connectors.dat")
	for name, data := range map[string][]byte{"cut off": whole[:len(whole)-5], "text": []byte("offsets"), "zeros": make([]byte, 100)} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := OpenFile(path, nil)
		if err == nil || !strings.Contains(err.Error(), path+".bak") || !strings.Contains(err.Error(), "cannot be read") || !strings.Contains(err.Error(), "mv "+path+" "+path+".old; more on that: README, Starting anew") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(path, appendJavaMap(nil, []javaEntry{{orders.Append(nil), []byte("{]")}}), 0o644); err != nil {
		t.Fatal(err)
	}
	s := openTestFile(t, path, nil)
	if o, err := s.Load(t.Context(), orders); err == nil || !strings.Contains(err.Error(), `entry ["orders"`) || !strings.Contains(err.Error(), "cp "+path+".bak "+path) || !strings.Contains(err.Error(), HowToDelete) {
		t.Errorf("garbage value: %v, %v", o, err)
	}
	if err := s.Save(t.Context(), orders, Offset{}); err == nil || !strings.Contains(err.Error(), "empty offset") {
		t.Errorf("empty offset: %v", err)
	}
	if _, err := OpenFile(filepath.Join(dir, "none", "f"), nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "its folder does not exist; make it (mkdir -p "+filepath.Join(dir, "none")+")") {
		t.Errorf("no folder: %v", err)
	}
	if _, err := OpenFile("", nil); err == nil {
		t.Error("no name: no error")
	}
	if _, err := OpenFile(dir, nil); err == nil {
		t.Error("a folder: no error")
	}
}

func TestFileStoreEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "connect.offsets")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := openTestFile(t, path, nil)
	wantLoad(t, s, orders, Offset{})
	save(t, s, orders, at(1))
	save(t, s, orders, at(2))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// What a Connect worker leaves that is killed while it writes.
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path, nil); err == nil || !strings.Contains(err.Error(), "is empty, but") {
		t.Errorf("emptied: %v", err)
	}
}

func TestFileStoreIsOpenedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "connect.offsets")
	s := openTestFile(t, path, nil)
	want := fmt.Sprintf("in use by process %d", os.Getpid())
	if _, err := OpenFile(path, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("opened twice: %v", err)
	}
	// Also by another name.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Dir(path), link); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(filepath.Join(link, "connect.offsets"), nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("opened twice through a link: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openTestFile(t, path, nil)
}

func TestFileStoreDoesNotOverwriteOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "connect.offsets")
	s := openTestFile(t, path, nil)
	save(t, s, orders, at(1))
	foreign := appendJavaMap(nil, []javaEntry{{customers.Append(nil), at(9).Append(nil)}})
	if err := os.WriteFile(path, foreign, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context(), orders, at(2)); err == nil || !strings.Contains(err.Error(), "changed by another program") {
		t.Fatalf("overwritten: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, foreign) {
		t.Fatalf("file is %q, %v", got, err)
	}
	// Deleted: everything that is known is written again.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	save(t, s, orders, at(3))
	if got, err := os.ReadFile(path); err != nil || !bytes.Contains(got, []byte(`"pos":3`)) {
		t.Fatalf("file is %q, %v", got, err)
	}
}

func TestFileStoreThroughASymbolicLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "data"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	save(t, openTestFile(t, link, nil), orders, at(1))
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if data, err := os.ReadFile(target); err != nil || !bytes.Contains(data, []byte(`"pos":1`)) {
		t.Errorf("target: %q, %v", data, err)
	}
}

func TestFileStoreSharedByPipelines(t *testing.T) {
	s := openTestFile(t, filepath.Join(t.TempDir(), "connect.offsets"), nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			key := Key{fmt.Sprint("c", i), "p"}
			for n := range 10 {
				if err := s.Save(t.Context(), key, at(10*i+n+1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		wantLoad(t, s, Key{fmt.Sprint("c", i), "p"}, at(10*i+10))
	}
}

// disk is a file system whose power can go: the content of a file survives from its sync on, names survive from
// SyncDir on. What was done since then may or may not survive.
type disk struct {
	nodes   map[string]*node // as the running program sees it
	durable map[string]*node
	journal []func(map[string]*node) // changes of names since SyncDir, in order
	noLinks bool

	left int // calls until everything fails; negative: never
	torn int // bytes of the write that is under way when the power goes
}

type node struct{ data []byte }

var errPower = errors.New("power is gone")

func newDisk() *disk {
	return &disk{nodes: map[string]*node{}, durable: map[string]*node{}, left: -1}
}

func (d *disk) step() error {
	if d.left == 0 {
		return errPower
	}
	d.left--
	return nil
}

func (d *disk) change(f func(map[string]*node)) {
	f(d.nodes)
	d.journal = append(d.journal, f)
}

func (d *disk) Resolve(name string) (string, error) { return name, nil }

func (d *disk) ReadFile(name string) ([]byte, error) {
	n, ok := d.nodes[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return bytes.Clone(n.data), nil
}

func (d *disk) WriteFile(name string, data []byte, _ string) error {
	err := d.step()
	n := &node{data: bytes.Clone(data)}
	if err != nil {
		n.data = n.data[:min(d.torn, len(data))]
	}
	d.change(func(m map[string]*node) { m[name] = n })
	return err
}

func (d *disk) Link(old, new string) error {
	if err := d.step(); err != nil {
		return err
	}
	n, ok := d.nodes[old]
	if !ok || d.noLinks {
		return errors.ErrUnsupported
	}
	d.change(func(m map[string]*node) { m[new] = n })
	return nil
}

func (d *disk) Rename(old, new string) error {
	if err := d.step(); err != nil {
		return err
	}
	n := d.nodes[old]
	d.change(func(m map[string]*node) { delete(m, old); m[new] = n })
	return nil
}

func (d *disk) Remove(name string) error {
	if err := d.step(); err != nil {
		return err
	}
	if _, ok := d.nodes[name]; !ok {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	d.change(func(m map[string]*node) { delete(m, name) })
	return nil
}

func (d *disk) SyncDir(string) error {
	if err := d.step(); err != nil {
		return err
	}
	d.durable, d.journal = maps.Clone(d.nodes), nil
	return nil
}

func (d *disk) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// crashed gives what the disk may hold after the power went: any number of the changes that were not synced.
func (d *disk) crashed() []*disk {
	var out []*disk
	for n := range len(d.journal) + 1 {
		names := maps.Clone(d.durable)
		for _, change := range d.journal[:n] {
			change(names)
		}
		after := newDisk()
		after.nodes, after.durable, after.noLinks = names, maps.Clone(names), d.noLinks
		out = append(out, after)
	}
	return out
}

// The power goes at every call of a Save and at every byte of a write, and of what was not synced any part survives:
// the file always holds a whole old or a whole new offset, and opens.
func TestI9_PowerFailureAtAnyMoment(t *testing.T) {
	const path = "/data/connect.offsets"
	moments, outcomes := 0, map[int64]int{}
	noted := func(pos int) Offset {
		o := at(pos)
		o.Side, o.Done = &Side{Server: uuidA, XA: []Prepared{prepared(pos)}}, int64(pos)
		return o
	}
	for _, noLinks := range []bool{false, true} {
		for left := 0; ; left++ {
			finished := false
			for torn := 0; ; torn += 1 + torn/20 { // every byte at the beginning, then ever larger steps
				d := newDisk()
				d.noLinks = noLinks
				s := openTestFile(t, path, d)
				save(t, s, orders, noted(1))
				save(t, s, orders, noted(2))
				d.left, d.torn = left, torn
				err := s.Save(t.Context(), orders, noted(3))
				finished = err == nil
				if err != nil && !errors.Is(err, errPower) {
					t.Fatal(err)
				}
				for _, after := range d.crashed() {
					moments++
					again, openErr := OpenFile(path, &FileOptions{FS: after})
					if openErr != nil {
						t.Fatalf("power gone after %d calls and %d bytes: %v", left, torn, openErr)
					}
					o, loadErr := again.Load(t.Context(), orders)
					if loadErr != nil {
						t.Fatal(loadErr)
					}
					if o.Pos != 3 && (o.Pos != 2 || finished) {
						t.Fatalf("power gone after %d calls and %d bytes (Save: %v): offset is %s", left, torn, err, o)
					}
					// The side record is of the same moment.
					if o.Side == nil || !slices.Equal(o.Side.XA, noted(int(o.Pos)).Side.XA) || o.Done != o.Pos {
						t.Fatalf("power gone after %d calls and %d bytes (Save: %v): offset is %s, beside it %+v, %d done", left, torn, err, o, o.Side, o.Done)
					}
					outcomes[o.Pos]++
					save(t, again, orders, noted(4)) // and it goes on
				}
				if torn > len(d.nodes[path].data) || finished {
					break
				}
			}
			if finished {
				break
			}
		}
	}
	if moments < 200 || outcomes[2] == 0 || outcomes[3] == 0 {
		t.Errorf("only %d moments, outcomes %v", moments, outcomes)
	}
}

// A failed Save does not count: the store goes on from the offset before, or says that it does not know.
// TestI9_WhatIsLoadedIsThere after the power has gone, also when the process before ended in the middle of a save.
func TestI9_WhatIsLoadedIsThere(t *testing.T) {
	before, after := Offset{File: "mysql-bin.000001", Pos: 4}, Offset{File: "mysql-bin.000001", Pos: 400}
	key := Key{Connector: "c", Server: "p"}
	newer := 0
	for left := range 20 {
		d := newDisk()
		s := openTestFile(t, "/d/offsets", d)
		save(t, s, key, before)
		d.left = left
		_ = s.Save(t.Context(), key, after)
		d.left = -1
		loaded, err := openTestFile(t, "/d/offsets", d).Load(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if loaded.Equal(after) {
			newer++
		}
		for _, d := range d.crashed() {
			wantLoad(t, openTestFile(t, "/d/offsets", d), key, loaded)
		}
	}
	if newer == 0 || newer == 20 {
		t.Errorf("%d of 20 saves were done", newer)
	}
}

func TestI9_FailedSave(t *testing.T) {
	const path = "/data/connect.offsets"
	unknown := 0
	for left := 0; ; left++ {
		d := newDisk()
		s := openTestFile(t, path, d)
		save(t, s, orders, at(1))
		d.left = left
		err := s.Save(t.Context(), orders, at(2))
		d.left = -1
		if err == nil {
			break
		}
		if o, loadErr := s.Load(t.Context(), orders); loadErr == nil {
			if o.Pos != 1 {
				t.Fatalf("after %v: %s", err, o)
			}
			save(t, s, orders, at(3))
			wantLoad(t, s, orders, at(3))
		} else if unknown++; !strings.Contains(loadErr.Error(), "not known which offset") {
			t.Fatal(loadErr)
		}
	}
	if unknown != 1 {
		t.Errorf("%d moments with an unknown outcome, want 1: the sync of the folder", unknown)
	}
}

func TestSystemFiles(t *testing.T) {
	dir := t.TempDir()
	var f osFS
	name := filepath.Join(dir, "a")
	if err := f.WriteFile(name, []byte("one"), name); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile(filepath.Join(dir, "b"), []byte("two"), name); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "b")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info, err)
	}
	if err := f.SyncDir(dir); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "b" }) {
		t.Error(entries, err)
	}
}
