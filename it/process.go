package it

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// moduleRoot is the folder of go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("go env GOMOD: %v", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// build builds the binary once for all tests of this package and returns its path, or why that failed.
var build = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("TIDEMARK_IT_BINARY"); given != "" {
		return given, nil
	}
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %v", err)
	}
	binary := filepath.Join(filepath.Dir(string(mod)), "bin", "it", "tidemark")
	out, err := exec.Command("go", "build", "-o", binary, "github.com/tidemark-cdc/tidemark/cmd/tidemark").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %v\n%s", err, out)
	}
	return binary, nil
})

// Binary is the path of the built binary.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Process is a started program whose output is kept. Its methods may be called from one goroutine at a time.
type Process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	code int           // exit code, -1 after a signal; valid when done is closed

	mu  sync.Mutex
	out bytes.Buffer // stdout and stderr
}

// Start starts a program, with extra environment variables as "NAME=value" before it. It is killed at the end of the test, and its
// last output shown if the test failed.
func Start(t testing.TB, name string, command ...string) *Process {
	t.Helper()
	p := &Process{name: name, cmd: exec.Command(command[0], command[1:]...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	// A killed test binary must not leave it running.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// Pdeathsig counts from the thread that started the process, so that thread waits for it too.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
		close(p.done)
	}()
	if err := <-started; err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() {
		p.Kill()
		if folder := os.Getenv("TIDEMARK_IT_KEEP"); folder != "" {
			path := filepath.Join(folder, fmt.Sprintf("%s-%s-%d.log", strings.ReplaceAll(t.Name(), "/", "_"), name, p.cmd.Process.Pid))
			if err := os.WriteFile(path, []byte(p.Output()), 0o644); err != nil {
				t.Log(err)
			}
		}
		if t.Failed() {
			t.Logf("%s (pid %d) said last:\n%s", name, p.cmd.Process.Pid, tail(p.Output(), 30))
		}
	})
	return p
}

// Run starts the binary under test with these arguments.
func Run(t testing.TB, arguments ...string) *Process {
	t.Helper()
	return Start(t, "tidemark", append([]string{Binary(t)}, arguments...)...)
}

// PID is the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Write keeps output; it is what the process writes to.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// Output is all that the process has written.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// Kill ends the process with SIGKILL and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Signal sends a signal.
func (p *Process) Signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("%s: %v", p.name, err)
	}
}

// Terminate sends SIGTERM and requires exit code 0 in time.
func (p *Process) Terminate(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	if code := p.Wait(t, 30*time.Second); code != 0 {
		t.Fatalf("%s ended with code %d after SIGTERM, want 0", p.name, code)
	}
}

// Wait waits for the end of the process and returns its exit code.
func (p *Process) Wait(t testing.TB, timeout time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.code
	case <-time.After(timeout):
		t.Fatalf("%s still runs after %v; it said last:\n%s", p.name, timeout, tail(p.Output(), 15))
		return 0
	}
}

// Ended says whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Await waits until the output matches a regular expression. It fails the test when the process ends before that.
func (p *Process) Await(t testing.TB, timeout time.Duration, expression string) {
	t.Helper()
	re := regexp.MustCompile(expression)
	eventually(t, timeout, p.name, func() error {
		ended := p.Ended()
		if re.MatchString(p.Output()) {
			return nil
		}
		if ended {
			t.Fatalf("%s ended with code %d instead of saying %q; it said last:\n%s", p.name, p.code, expression, tail(p.Output(), 20))
		}
		return fmt.Errorf("it has not said %q; it said last:\n%s", expression, tail(p.Output(), 5))
	})
}

// Times is how many lines of the output match a regular expression.
func (p *Process) Times(expression string) int {
	re := regexp.MustCompile(expression)
	n := 0
	for line := range strings.SplitSeq(p.Output(), "\n") {
		if re.MatchString(line) {
			n++
		}
	}
	return n
}

// PeakRSS is the most memory that the process has had resident so far, in bytes (VmHWM).
func (p *Process) PeakRSS(t testing.TB) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("no VmHWM in /proc/%d/status: it has ended", p.cmd.Process.Pid)
	}
	kib, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// Properties are lines of a Java properties file or members of a connector's configuration.
type Properties map[string]string

// With is a copy with more entries, which win.
func (p Properties) With(more Properties) Properties {
	all := Properties{}
	for _, from := range []Properties{p, more} {
		for k, v := range from {
			all[k] = v
		}
	}
	return all
}

// WriteProperties writes them as a properties file and returns its path.
func (p Properties) WriteProperties(t testing.TB, path string) string {
	t.Helper()
	var b strings.Builder
	for k, v := range p {
		fmt.Fprintf(&b, "%s=%s\n", k, v)
	}
	return write(t, path, []byte(b.String()))
}

// WriteConnector writes them as a connector's JSON file, {"name": …, "config": …}, and returns its path.
func (p Properties) WriteConnector(t testing.TB, path, name string) string {
	t.Helper()
	b, err := json.MarshalIndent(map[string]any{"name": name, "config": p}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return write(t, path, b)
}

// write puts a file in its place whole, since a process that was just started may be reading it.
func write(t testing.TB, path string, b []byte) string {
	t.Helper()
	part := path + ".part"
	if err := os.WriteFile(part, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(part, path); err != nil {
		t.Fatal(err)
	}
	return path
}
