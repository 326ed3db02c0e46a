package it

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	moby "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	inside "github.com/testcontainers/testcontainers-go/exec"
	"github.com/testcontainers/testcontainers-go/log"
)

// Image runs one of the scripts in images and returns the last line of its output: the name of an image or a folder. The scripts
// do nothing when all is there.
func Image(t testing.TB, script string, arguments ...string) string {
	t.Helper()
	cmd := exec.Command("./"+script, arguments...)
	cmd.Dir = filepath.Join(moduleRoot(t), "it", "images")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("it/images/%s: %v\n%s", script, err, said.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[len(lines)-1]
}

// useEngine makes sure that a Docker engine answers, and tells testcontainers what it cannot find out: that containers are
// removed by the tests themselves (its reaper is an image that may not be there), and that inside a container whose engine runs
// beside it published ports are on localhost.
var useEngine = sync.OnceValue(func() error {
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return err
	}
	if _, err := os.Stat("/.dockerenv"); err == nil {
		if err := os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "localhost"); err != nil {
			return err
		}
	}
	log.SetDefault(quiet{}) // it would tell each step of each container
	out, err := exec.Command("docker", "info").CombinedOutput()
	if err != nil {
		return fmt.Errorf("docker info: %v\n%s", err, out)
	}
	return removeOrphans()
})

// The labels say which process a container belongs to.
const (
	labelHost = "tidemark.it.host"
	labelPid  = "tidemark.it.pid"
)

// removeOrphans removes the containers of test processes of this machine that were killed before they could do it themselves.
func removeOrphans() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	out, err := exec.Command("docker", "ps", "-a", "--filter", "label="+labelHost+"="+host,
		"--format", `{{.ID}} {{.Label "`+labelPid+`"}}`).Output()
	if err != nil {
		return fmt.Errorf("docker ps: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		id, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(text)
		if err != nil || syscall.Kill(pid, 0) == nil {
			continue
		}
		if out, err := exec.Command("docker", "rm", "-f", "-v", id).CombinedOutput(); err != nil {
			return fmt.Errorf("docker rm: %v\n%s", err, out)
		}
	}
	return nil
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// container is a running container that keeps its ports over restarts.
type container struct {
	c *testcontainers.DockerContainer
}

// run starts a container of image with a shell script as its only process and with container ports published at fixed ports of the
// host, so that a restart keeps them. It is removed at the end of the test, after its output was kept if the test failed.
func run(t testing.TB, image, script string, ports map[int]int) *container {
	t.Helper()
	var exposed []string
	bindings := network.PortMap{}
	for port, host := range ports {
		exposed = append(exposed, fmt.Sprintf("%d/tcp", port))
		bindings[network.MustParsePort(fmt.Sprintf("%d/tcp", port))] = []network.PortBinding{{HostPort: strconv.Itoa(host)}}
	}
	return runWith(t, image, script, exposed, func(h *moby.HostConfig) { h.PortBindings = bindings })
}

// memory is a folder of each container that runOnHost starts, which is memory and no disk.
const memory = "/memory"

// runOnHost is run without a network of the container's own: the script's servers listen on the host. A published port goes through a
// process of the engine, which takes CPU time that a measurement would miss, and makes every byte wait for it.
func runOnHost(t testing.TB, image, script string) *container {
	t.Helper()
	return runWith(t, image, script, nil, func(h *moby.HostConfig) {
		h.NetworkMode = "host"
		h.Tmpfs = map[string]string{memory: ""}
	})
}

func runWith(t testing.TB, image, script string, exposed []string, configure func(*moby.HostConfig)) *container {
	t.Helper()
	if err := useEngine(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	c, err := testcontainers.Run(ctx, image,
		testcontainers.WithLabels(map[string]string{labelHost: host, labelPid: strconv.Itoa(os.Getpid())}),
		testcontainers.WithEntrypoint("sh", "-c"),
		testcontainers.WithCmd(script),
		testcontainers.WithExposedPorts(exposed...),
		testcontainers.WithHostConfigModifier(configure),
	)
	if c != nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if t.Failed() {
				if r, err := c.Logs(ctx); err == nil {
					var b bytes.Buffer
					_, _ = b.ReadFrom(r)
					t.Logf("%s said last:\n%s", image, tail(b.String(), 25))
				}
			}
			if err := c.Terminate(ctx, testcontainers.StopTimeout(0)); err != nil {
				t.Logf("removing the container of %s: %v", image, err)
			}
		})
	}
	if err != nil {
		t.Fatalf("container of %s: %v", image, err)
	}
	return &container{c}
}

// stop ends the container's process: with SIGTERM and so much time, or with SIGKILL when that is 0.
func (c *container) stop(t testing.TB, grace time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+grace)
	defer cancel()
	if err := c.c.Stop(ctx, &grace); err != nil {
		t.Fatalf("stopping a container: %v", err)
	}
}

// start starts a stopped container again.
func (c *container) start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.c.Start(ctx); err != nil {
		t.Fatalf("starting a container again: %v", err)
	}
}

// output is what a command prints that is run in the container.
func (c *container) output(t testing.TB, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	code, r, err := c.c.Exec(ctx, command, inside.Multiplexed())
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	b, err := io.ReadAll(r)
	if err != nil || code != 0 {
		t.Fatalf("%s: code %d, %v: %s", command, code, err, b)
	}
	return string(b)
}

// freePort is a port that nothing listened on a moment ago.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// eventually calls f every 50 ms until it returns nil; after the timeout the test fails with f's last error.
func eventually(t testing.TB, timeout time.Duration, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, timeout, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// tail is the last n lines of a text.
func tail(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
