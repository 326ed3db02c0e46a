package offset

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// FS is what a [FileStore] asks of the file system, so that a test can let the power go at any moment. Names are paths
// as in package os; errors are those of package os where it has them.
type FS interface {
	// Resolve gives the absolute path behind all symbolic links of the folder and, if it exists, the file.
	Resolve(name string) (string, error)
	ReadFile(name string) ([]byte, error)
	// WriteFile makes a file, replacing one that exists, writes data and returns when it is on the disk. The file gets the
	// permissions of the file like, if there is one.
	WriteFile(name string, data []byte, like string) error
	Link(old, new string) error
	Rename(old, new string) error
	Remove(name string) error
	// SyncDir returns when the names in a folder are on the disk.
	SyncDir(name string) error
	// Lock makes the file if need be and locks it until the result is closed or the process ends. If another has it, the
	// error says who.
	Lock(name string) (io.Closer, error)
}

type osFS struct{}

func (osFS) Resolve(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		return filepath.Join(dir, filepath.Base(path)), err
	}
	return real, err
}

func (osFS) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

func (osFS) WriteFile(name string, data []byte, like string) error {
	mode := fs.FileMode(0o644)
	info, err := os.Stat(like)
	if err == nil {
		mode = info.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if info != nil {
		err = f.Chmod(mode) // whatever the umask says
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (osFS) Link(old, new string) error   { return os.Link(old, new) }
func (osFS) Rename(old, new string) error { return os.Rename(old, new) }
func (osFS) Remove(name string) error     { return os.Remove(name) }

func (osFS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (osFS) Lock(name string) (io.Closer, error) { return lockFile(name) }
