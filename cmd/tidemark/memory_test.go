package main

import (
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "268435456": 256 * mebi, "256MiB": 256 * mebi, "256 MiB": 256 * mebi, " 256mib ": 256 * mebi, "256Mi": 256 * mebi,
		"512M": 512 * mebi, "512m": 512 * mebi, "1GiB": gibi, "1G": gibi, "2g": 2 * gibi, "64K": 64 * kibi, "64KiB": 64 * kibi,
		"100b": 100, "80MB": 80_000_000, "1GB": 1_000_000_000, "7kB": 7000,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "a whole number", "MiB": "a whole number", "1.5GiB": "a whole number", "-1MiB": "a whole number", "256MiBs": "a whole number", "256%": "a whole number",
		"0": "leave the flag out", "0MiB": "leave the flag out",
		"9223372036854775808": "more than any machine", "9223372036854775807K": "more than any machine",
	} {
		if got, err := parseSize(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v; want an error with %q", text, got, err, want)
		}
	}
	for n, want := range map[int64]string{1: "1", 1 << 20: "1MiB", 1<<20 + 1: "2MiB", 2 << 30: "2GiB", 3 << 29: "1536MiB", math.MaxInt64: "8796093022208MiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}

func TestPlanMemory(t *testing.T) {
	for name, c := range map[string]struct {
		asked, contained, heap int64
		connectors             int
		want                   string
	}{
		"nothing is said":                  {connectors: 1, want: "76MiB from the default, heap 0, floor 18MiB, records 8MiB"},
		"several connectors":               {connectors: 4, want: "148MiB from the default, heap 0, floor 57378076, records 6375342"},
		"many share what is asked for":     {asked: 256 * mebi, connectors: 20, want: "256MiB from --memory, heap 235090740, floor 105790800, records 2350907"},
		"plenty is not used up":            {asked: 4 * gibi, connectors: 1, want: "4GiB from --memory, heap 4060295988, floor 18MiB, records 8MiB"},
		"the least":                        {asked: 48 * mebi, connectors: 1, want: "48MiB from --memory, heap 27892122, floor 12551454, records 5578424"},
		"the container's limit":            {contained: 100 * mebi, connectors: 1, want: "90MiB from the container's limit, heap 69730304, floor 18MiB, records 8MiB"},
		"what is asked for goes first":     {asked: 64 * mebi, contained: 512 * mebi, connectors: 1, want: "64MiB from --memory, heap 43830477, floor 18MiB, records 8MiB"},
		"more than the container has":      {asked: 512 * mebi, contained: 256 * mebi, connectors: 1, want: "512MiB from --memory, heap 490104423, floor 18MiB, records 8MiB; --memory is more than the container's limit of 256MiB: the kernel may end the process; raise the limit, or leave the flag out to stay below it"},
		"GOMEMLIMIT is left alone":         {asked: 256 * mebi, heap: 16 * mebi, connectors: 1, want: "256MiB from --memory, heap 0, floor 7549746, records 3355443"},
		"GOMEMLIMIT does not make it more": {asked: 48 * mebi, heap: gibi, connectors: 1, want: "48MiB from --memory, heap 0, floor 12551454, records 5578424"},
		"a small container":                {contained: 32 * mebi, connectors: 1, want: "29MiB from the container's limit, heap 8766096, floor 3944742, records 1753219; the container's memory limit of 32MiB is lower than what Tidemark needs: the kernel may end the process; raise the limit to 54MiB at least"},
		"records have a least":             {contained: 400 * mebi, connectors: 100, want: "360MiB from the container's limit, heap 323MiB, floor 152410500, records 1MiB; the container's memory limit of 400MiB is lower than what Tidemark needs: the kernel may end the process; raise the limit to 934MiB at least"},
	} {
		m, err := planMemory(c.asked, c.contained, c.heap, c.connectors)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		size := func(n int64) string {
			if n%mebi == 0 && n > 0 {
				return sizeText(n)
			}
			return fmt.Sprint(n)
		}
		got := fmt.Sprintf("%s from %s, heap %s, floor %s, records %s", sizeText(m.total), m.source, size(m.heap), size(m.floor), size(int64(m.records)))
		if m.risk != "" {
			got += "; " + m.risk
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
	for _, c := range []struct {
		asked      int64
		connectors int
		want       string
	}{
		{1, 1, "--memory 1 is too little for 1 connector: the least is 48MiB"},
		{50_000_000, 1, "--memory 50000000 is too little for 1 connector: the least is 48MiB"}, // which is 48 MiB but for a little
		{55 * mebi, 2, "--memory 55MiB is too little for 2 connectors: the least is 56MiB"},
	} {
		if m, err := planMemory(c.asked, gibi, 0, c.connectors); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %+v, %v; want an error with %q", c.asked, m, err, c.want)
		}
	}
}

func TestContainerMemory(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups": {map[string]string{}, 0},
		"version 2, in a container": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n",
		}, 256 * mebi},
		"version 2, no limit": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/tidemark.service\n", "sys/fs/cgroup/system.slice/tidemark.service/memory.max": "max\n",
		}, 0},
		"version 2, the lowest on the way up": {map[string]string{
			"proc/self/cgroup":                     "0::/a/b/c\n",
			"sys/fs/cgroup/a/b/c/memory.max":       "max\n",
			"sys/fs/cgroup/a/b/memory.max":         "1073741824\n",
			"sys/fs/cgroup/a/memory.max":           "536870912\n",
			"sys/fs/cgroup/elsewhere/x/memory.max": "1048576\n",
		}, 512 * mebi},
		"version 2, outside its namespace": {map[string]string{
			"proc/self/cgroup": "0::/../../other\n", "sys/fs/cgroup/memory.max": "134217728\n",
		}, 128 * mebi},
		"version 1, the path is the host's": {map[string]string{
			"proc/self/cgroup":                           "5:cpu,cpuacct:/docker/42\n4:memory:/docker/42\n1:name=systemd:/docker/42\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "402653184\n",
		}, 384 * mebi},
		"version 1, of a service": {map[string]string{
			"proc/self/cgroup": "4:hugetlb,memory:/a:b/c\n0::/\n",
			"sys/fs/cgroup/memory/a:b/c/memory.limit_in_bytes": "402653184\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":       "9223372036854771712\n",
		}, 384 * mebi},
		"version 1, no limit": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		"nonsense": {map[string]string{
			"proc/self/cgroup": "0::/\nx\n", "sys/fs/cgroup/memory.max": "lots\n",
		}, 0},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text), Mode: fs.ModePerm}
		}
		if got := containerMemory(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// The flag is refused before anything is connected to, and says what would do.
func TestMemoryFlag(t *testing.T) {
	root := rootCommand()
	root.SetArgs([]string{"run", "--memory", "lots", "c.json"})
	if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "such as 256MiB") {
		t.Errorf("%v", err)
	}
}
