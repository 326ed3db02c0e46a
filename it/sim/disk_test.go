package sim

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
)

// disk is a file system whose names are safe only when their folder was synced. Content is safe when it is written.
type disk struct {
	mu       sync.Mutex
	rng      *rand.Rand
	names    map[string][]byte   // as processes see them
	stable   map[string][]byte   // as they are after the power was off
	pending  []map[string][]byte // names after each change that is not synced, oldest first
	locks    map[string]*process
	full     bool           // no space left
	fail     map[string]int // by operation: so many more of it fail
	failures map[string]int // by operation: so many have failed
}

func newDisk(rng *rand.Rand) *disk {
	return &disk{rng: rng, names: map[string][]byte{}, stable: map[string][]byte{}, locks: map[string]*process{}, fail: map[string]int{}, failures: map[string]int{}}
}

// lose takes the locks of a process away, and, if the power goes, what is not synced: all of it or the end of it.
func (d *disk) lose(p *process, power bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, owner := range d.locks {
		if owner == p {
			delete(d.locks, name)
		}
	}
	if !power {
		return
	}
	states := append([]map[string][]byte{d.stable}, d.pending...)
	d.names = maps.Clone(states[d.rng.IntN(len(states))])
	d.stable, d.pending = maps.Clone(d.names), nil
}

// diskOf is the disk as one process uses it: not after its crash.
type diskOf struct {
	*disk
	p *process
}

// do changes names unless the process is dead or the operation is to fail.
func (d diskOf) do(operation, name string, change func() error) error {
	if err := d.p.pass(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.p.isDead() {
		return errCrashed
	}
	if d.fail[operation] > 0 {
		d.fail[operation]--
		d.failures[operation]++
		return &fs.PathError{Op: operation, Path: name, Err: syscall.EIO}
	}
	if err := change(); err != nil {
		return err
	}
	d.pending = append(d.pending, maps.Clone(d.names))
	return nil
}

func (d diskOf) Resolve(name string) (string, error) { return name, d.p.pass() }

func (d diskOf) ReadFile(name string) ([]byte, error) {
	if err := d.p.pass(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	data, ok := d.names[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return append([]byte{}, data...), nil
}

func (d diskOf) WriteFile(name string, data []byte, _ string) error {
	torn := func() {
		_ = d.do("torn", name, func() error {
			d.names[name] = append([]byte{}, data[:d.rng.IntN(len(data)+1)]...)
			return nil
		})
	}
	d.mu.Lock()
	full := d.full
	d.mu.Unlock()
	if full {
		torn()
		d.mu.Lock()
		d.failures["full"]++
		d.mu.Unlock()
		return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	if d.p.armed(pointTorn) {
		torn()
	}
	if err := d.p.at(pointTorn); err != nil {
		return err
	}
	if err := d.do("write", name, func() error {
		d.names[name] = append([]byte{}, data...)
		return nil
	}); err != nil {
		return err
	}
	return d.p.at(pointSynced)
}

func (d diskOf) Link(old, new string) error {
	return d.do("link", new, func() error {
		data, ok := d.names[old]
		if !ok {
			return &fs.PathError{Op: "link", Path: old, Err: fs.ErrNotExist}
		}
		if _, there := d.names[new]; there {
			return &fs.PathError{Op: "link", Path: new, Err: fs.ErrExist}
		}
		d.names[new] = data
		return nil
	})
}

func (d diskOf) Rename(old, new string) error {
	if err := d.do("rename", new, func() error {
		data, ok := d.names[old]
		if !ok {
			return &fs.PathError{Op: "rename", Path: old, Err: fs.ErrNotExist}
		}
		d.names[new] = data
		delete(d.names, old)
		return nil
	}); err != nil {
		return err
	}
	return d.p.at(pointRenamed)
}

func (d diskOf) Remove(name string) error {
	return d.do("remove", name, func() error {
		if _, ok := d.names[name]; !ok {
			return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
		}
		delete(d.names, name)
		return nil
	})
}

func (d diskOf) SyncDir(name string) error {
	return d.do("sync", name, func() error {
		d.stable = maps.Clone(d.names)
		d.pending = nil
		return nil
	})
}

func (d diskOf) Lock(name string) (io.Closer, error) {
	if err := d.p.pass(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if owner := d.locks[name]; owner != nil {
		return nil, fmt.Errorf("%s is locked by process %d", filepath.Base(name), owner.number)
	}
	d.locks[name] = d.p
	return unlock{d, name}, nil
}

type unlock struct {
	d    diskOf
	name string
}

func (u unlock) Close() error {
	u.d.mu.Lock()
	defer u.d.mu.Unlock()
	if u.d.locks[u.name] == u.d.p {
		delete(u.d.locks, u.name)
	}
	return nil
}
