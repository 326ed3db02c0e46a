package standby

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// process is one run of a program on one host, as the members of a lock's group are told apart.
type process struct {
	host  string // for people
	world string // the running kernel and, on it, the name space that pid counts in; "": not known
	pid   int
	start string // when it was started, in the kernel's ticks; tells it from another with the same pid
}

// self is this process.
func self() process {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	p := process{host: host, pid: os.Getpid()}
	p.start, _ = stat(p.pid)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, err2 := os.Readlink("/proc/self/ns/pid")
	own, err3 := os.Readlink("/proc/self") // another id is that of an outer space, whose /proc is mounted
	if errors.Join(err, err2, err3) == nil && own == strconv.Itoa(p.pid) && p.start != "" {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%s %s", boot, space)
		p.world = fmt.Sprintf("%016x", h.Sum64())
	}
	return p
}

// stat is when a process of this host was started, "" when that cannot be read, and whether it has ended and is only not
// forgotten yet.
func stat(pid int) (start string, ended bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name before may hold anything
	const third, started = 3, 22                                        // fields of proc_pid_stat(5); the third is the first here
	if len(fields) <= started-third {
		return "", false
	}
	return fields[started-third], fields[0] == "Z" || fields[0] == "X"
}

// clientID is the client id of the process, by which the others know it.
func (p process) clientID(base string) string {
	world, start := p.world, p.start
	if world == "" || start == "" {
		world, start = "0", "0"
	}
	return fmt.Sprintf("%s-%s-%s-%d-%s", base, p.host, world, p.pid, start)
}

var idPattern = regexp.MustCompile(`^(.*)-(0|[0-9a-f]{16})-([0-9]+)-([0-9]+)$`)

// processOf reads a client id. What is not one of ours gives a process of which nothing is known.
func processOf(base, clientID string) process {
	m := idPattern.FindStringSubmatch(strings.TrimPrefix(clientID, base+"-"))
	if m == nil {
		return process{host: clientID}
	}
	pid, err := strconv.Atoi(m[3])
	if err != nil || m[2] == "0" {
		return process{host: m[1], pid: pid}
	}
	return process{host: m[1], world: m[2], pid: pid, start: m[4]}
}

// dead says whether p is known to have ended, to the process me: that takes the same kernel and the same space of process ids. A
// space's name is used again when it is gone, and then all its processes are gone, too. What cannot be told is alive: a member that
// is silent is given up by the group anyway.
func (p process) dead(me process) bool {
	if p.world == "" || p.world != me.world || p.pid <= 0 {
		return false
	}
	if p.pid == me.pid {
		return p.start != me.start
	}
	found, err := os.FindProcess(p.pid)
	if err != nil {
		return false
	}
	defer func() { _ = found.Release() }()
	if errors.Is(found.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		return true
	}
	now, ended := stat(p.pid)
	return now != "" && (now != p.start || ended)
}

// String names the process for people.
func (p process) String() string {
	if p.pid == 0 {
		return p.host
	}
	return fmt.Sprintf("%s (process %d)", p.host, p.pid)
}
