package offset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestI9_FileIsGoneWhileRunning: a file that somebody deletes is written anew by the next save, with all that is known. Without its
// folder a save fails and says so, the offset stays, and the next one works when the folder is back.
func TestI9_FileIsGoneWhileRunning(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(folder, 0o700))
	path := filepath.Join(folder, "connect.offsets")
	s := openTestFile(t, path, nil)
	save(t, s, orders, at(1))
	save(t, s, customers, at(2))
	must(os.Remove(path))
	wantLoad(t, s, orders, at(1))
	save(t, s, orders, at(3))
	data, err := os.ReadFile(path)
	must(err)
	if want := appendJavaMap(nil, []javaEntry{{orders.Append(nil), at(3).Append(nil)}, {customers.Append(nil), at(2).Append(nil)}}); string(data) != string(want) {
		t.Errorf("the file is %q", data)
	}

	must(os.RemoveAll(folder))
	for range 3 {
		if err := s.Save(t.Context(), orders, at(4)); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("without a folder: %v", err)
		}
	}
	wantLoad(t, s, orders, at(3))
	must(os.Mkdir(folder, 0o700))
	save(t, s, orders, at(5))
	must(s.Close())
	again := openTestFile(t, path, nil)
	wantLoad(t, again, orders, at(5))
	wantLoad(t, again, customers, at(2))
}
