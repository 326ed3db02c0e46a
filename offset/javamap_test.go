package offset

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func readTestMap(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "javamap", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Files that Java wrote, read and written again, are the same bytes: m*.dat by ObjectOutputStream with so many entries,
// connect-*.dat by Kafka Connect.
func TestJavaMapIsWrittenAsJavaDoes(t *testing.T) {
	sizes := map[string]int{
		"m0.dat": 0, "m1.dat": 1, "m2.dat": 2, "m12.dat": 12, "m13.dat": 13, "m25.dat": 25, "m49.dat": 49,
		"connect-01-started.dat": 1, "connect-09-two-connectors.dat": 2, "connect-10-deleted.dat": 2,
		"connect-side-record.dat": 2,
	}
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			data := readTestMap(t, name)
			entries, err := parseJavaMap(data)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) != size {
				t.Fatalf("%d entries, want %d", len(entries), size)
			}
			if got := appendJavaMap(nil, entries); !bytes.Equal(got, data) {
				t.Errorf("got  %x\nwant %x", got, data)
			}
			if !strings.HasPrefix(name, "m") {
				return
			}
			var got, want []string
			for _, e := range entries {
				got = append(got, fmt.Sprintf("%s %s %v", e.key, e.value, e.value == nil))
			}
			for i := range size {
				value := fmt.Sprintf(`{"file":"f.000001","pos":%d} false`, 4+i)
				if i%5 == 4 {
					value = " true"
				}
				want = append(want, fmt.Sprintf(`["c%d",{"server":"s%d"}] %s`, i, i, value))
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestJavaMapReadsWhatJavaMayWrite(t *testing.T) {
	// A null key; one array that is key and value, so that the second is a reference.
	entries, err := parseJavaMap(readTestMap(t, "shared.dat"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%q", entries), `[{"" "v"} {"x" "x"}]`; got != want || entries[0].key != nil {
		t.Errorf("got %s, want %s", got, want)
	}
	// new HashMap(100): another capacity and threshold.
	if entries, err = parseJavaMap(readTestMap(t, "sized.dat")); err != nil || len(entries) != 1 {
		t.Errorf("sized: %v, %v", entries, err)
	}
	if string(entries[0].key) != "k" || string(entries[0].value) != "v" {
		t.Errorf("sized: %q", entries)
	}
}

func TestJavaMapVectors(t *testing.T) {
	const head = "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f724900097468726573686f6c6478703f400000"
	for _, tt := range []struct {
		entries []javaEntry
		want    string
	}{
		{nil, head + "00000000" + "77080000001000000000" + "78"},
		{[]javaEntry{{[]byte("K"), []byte("V")}}, head + "0000000c77080000001000000001757200025b42acf317f8060854e00200007870000000014b7571007e0002000000015678"},
		{[]javaEntry{{[]byte("K"), nil}}, head + "0000000c77080000001000000001757200025b42acf317f8060854e00200007870000000014b7078"},
		{[]javaEntry{{nil, []byte{}}}, head + "0000000c7708000000100000000170757200025b42acf317f8060854e002000078700000000078"},
	} {
		if got := hex.EncodeToString(appendJavaMap(nil, tt.entries)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestJavaMapRefusesAllElse(t *testing.T) {
	for name, want := range map[string]string{
		"linked.dat":  "not a java.util.HashMap",
		"strings.dat": "where an array is expected",
	} {
		if entries, err := parseJavaMap(readTestMap(t, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", name, entries, err)
		}
	}
	whole := readTestMap(t, "connect-10-deleted.dat")
	for n := range whole {
		if entries, err := parseJavaMap(whole[:n]); err == nil {
			t.Fatalf("cut after %d bytes: %q", n, entries)
		}
	}
	if _, err := parseJavaMap(append(slices.Clone(whole), 0)); err == nil || !strings.Contains(err.Error(), "something follows") {
		t.Errorf("one byte more: %v", err)
	}
	if _, err := parseJavaMap(make([]byte, len(whole))); err == nil {
		t.Error("zeros accepted")
	}
	huge := bytes.Clone(readTestMap(t, "m1.dat"))
	copy(huge[len(javaMapHead)+4+4+2+4:], "\x7f\xff\xff\xff")
	if _, err := parseJavaMap(huge); err == nil || !strings.Contains(err.Error(), "more than the file can hold") {
		t.Errorf("huge size: %v", err)
	}
}

func FuzzJavaMap(f *testing.F) {
	names, err := filepath.Glob("testdata/javamap/*.dat")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseJavaMap(data)
		if err != nil {
			return
		}
		again, err := parseJavaMap(appendJavaMap(nil, entries))
		if err != nil || !slices.EqualFunc(entries, again, func(a, b javaEntry) bool {
			return bytes.Equal(a.key, b.key) && bytes.Equal(a.value, b.value) && (a.value == nil) == (b.value == nil)
		}) {
			t.Fatalf("%q became %q, %v", entries, again, err)
		}
	})
}
