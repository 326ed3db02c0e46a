package main

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// containerMemory is the memory limit of the container, or of the service, that the process runs in; 0: there is none. root
// is the file system, which has /proc and /sys. The lowest limit counts of the control group and those above it: each holds
// for all below. Where they are mounted another way, there is none to be found.
func containerMemory(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	lowest := int64(0)
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:group; the one hierarchy of version 2 names no controllers.
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) < 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case part[0] == "0" && part[1] == "":
		case slices.Contains(strings.Split(part[1], ","), "memory"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// Of a container only its own group may be mounted, as the root, though the path is the host's.
		for group := path.Clean("/" + part[2]); ; group = path.Dir(group) {
			if limit := memoryLimit(root, path.Join(mount, group, file)); limit > 0 && (lowest == 0 || limit < lowest) {
				lowest = limit
			}
			if group == "/" {
				break
			}
		}
	}
	return lowest
}

// memoryLimit reads a limit; 0: there is none. Version 2 says max for none, version 1 a number beyond all memory.
func memoryLimit(root fs.FS, file string) int64 {
	const none = 1 << 60
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 || n >= none {
		return 0
	}
	return n
}
