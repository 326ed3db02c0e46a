//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package offset

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// lockFile locks by flock, which the kernel gives back when the process ends, however it ends. The file stays: removing
// it would let two processes lock two files of one name.
func lockFile(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		owner := make([]byte, 32)
		n, _ := f.ReadAt(owner, 0) // only for the message
		_ = f.Close()
		return nil, fmt.Errorf("it is in use by process %s, which has locked %s: two processes would overwrite each other's offsets. "+
			"Stop that one, or give this one another offset.storage.file.filename", strings.TrimSpace(string(owner[:n])), name)
	case err != nil:
		_ = f.Close()
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing %s: %w", name, err), f.Close())
	}
	return f, nil
}
