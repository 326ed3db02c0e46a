package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// HistoryFile is the file in which Debezium's FileSchemaHistory keeps a schema history
// (schema.history.internal.file.filename): one record a line, as JSON without blanks. Debezium reads what is written
// here, and the other way round. It is not locked, as Debezium does not lock it. It is safe for concurrent use.
type HistoryFile struct {
	path string

	mu     sync.Mutex
	file   *os.File
	size   int64
	failed error
}

// OpenHistoryFile opens the history in the file at path, and makes it and its folder if there are none. A last line that
// a crash has cut short is removed: no offset behind its statement was stored.
func OpenHistoryFile(path string) (*HistoryFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("schema history: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("schema history: %w", err)
	}
	h := &HistoryFile{path: path, file: file}
	if err := h.mend(); err != nil {
		return nil, errors.Join(fmt.Errorf("schema history %s: %w", path, err), file.Close())
	}
	return h, nil
}

// mend ends the last line, or cuts it off if it is not whole.
func (h *HistoryFile) mend() error {
	data, err := io.ReadAll(h.file)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	last := bytes.TrimSpace(data[whole:])
	switch h.size = int64(len(data)); {
	case len(data) == 0:
		return syncDirectory(filepath.Dir(h.path)) // it may be new
	case whole == len(data):
		return nil
	case json.Valid(last):
		if _, err := h.file.WriteAt([]byte("\n"), h.size); err != nil {
			return err
		}
		h.size++
	default:
		h.size = int64(whole)
		if err := h.file.Truncate(h.size); err != nil {
			return err
		}
	}
	return h.file.Sync()
}

// Read returns all entries, in their order.
func (h *HistoryFile) Read() ([]HistoryEntry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil {
		return nil, h.failed
	}
	entries, err := ReadHistory(io.NewSectionReader(h.file, 0, h.size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.path, err)
	}
	return entries, nil
}

// Append adds records and returns when they are durable. After an error of the disk itself it is not known what the file
// holds, and so every later call fails, too.
func (h *HistoryFile) Append(records []HistoryRecord) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil || len(records) == 0 {
		return h.failed
	}
	var out []byte
	for i := range records {
		out = AppendHistoryLine(out, &records[i])
	}
	if _, err := h.file.WriteAt(out, h.size); err != nil { // the disk may be full: that can pass
		if undo := h.file.Truncate(h.size); undo != nil {
			return h.fail(errors.Join(err, undo))
		}
		return fmt.Errorf("schema history %s: %w", h.path, err)
	}
	if err := h.file.Sync(); err != nil {
		return h.fail(err)
	}
	h.size += int64(len(out))
	return nil
}

func (h *HistoryFile) fail(err error) error {
	h.failed = fmt.Errorf("schema history %s: %w. It has to be opened again", h.path, err)
	return h.failed
}

// Close frees the file. Closing it twice is no error.
func (h *HistoryFile) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	h.failed = fmt.Errorf("schema history %s is closed", h.path)
	return nil
}
