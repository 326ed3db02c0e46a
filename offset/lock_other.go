//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package offset

import (
	"errors"
	"io"
)

func lockFile(string) (io.Closer, error) {
	return nil, errors.New("this system has no file locks that end with the process, so two processes could overwrite each other's offsets: use offset.storage.topic instead")
}
