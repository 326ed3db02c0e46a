package it

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Tail is "tidemark tail --records" on a live server. It needs no Kafka, so that a case costs no more than its SQL.
type Tail struct {
	stop func()        // once
	done chan struct{} // closed when the process has ended

	mu      sync.Mutex
	records []TailRecord
	said    bytes.Buffer
	code    int
}

// TailConfig is a connector's configuration for a live server, with its user "tide" and JSON without schemas.
func TailConfig(m *MySQL, prefix string, more Properties) Properties {
	return Properties{
		"connector.class":                "io.debezium.connector.mysql.MySqlConnector",
		"database.hostname":              "127.0.0.1",
		"database.port":                  strconv.Itoa(m.Port),
		"database.user":                  "tide",
		"database.password":              "tide",
		"database.server.id":             "7300",
		"topic.prefix":                   prefix,
		"snapshot.mode":                  "no_data",
		"key.converter":                  "org.apache.kafka.connect.json.JsonConverter",
		"value.converter":                "org.apache.kafka.connect.json.JsonConverter",
		"key.converter.schemas.enable":   "false",
		"value.converter.schemas.enable": "false",
	}.With(more)
}

// StartTail starts tail from a place and waits until it reads.
func StartTail(t testing.TB, config Properties, from string, environment ...string) *Tail {
	t.Helper()
	return LaunchTail(t, config, from, environment...).reading(t)
}

// StartAvroTail starts a tail that registers schemas in a registry with the interface of Confluent's.
func StartAvroTail(t testing.TB, config Properties, from, registry string) *Tail {
	t.Helper()
	return launchTail(t, config, from, []string{"--registry", registry}, nil).reading(t)
}

// reading waits until tail reads.
func (l *Tail) reading(t testing.TB) *Tail {
	t.Helper()
	eventually(t, 60*time.Second, "tail", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if strings.Contains(l.said.String(), "reading the binlog") {
			return nil
		}
		if l.ended() {
			t.Fatalf("tail ended with code %d:\n%s", l.code, l.said.String())
		}
		return errors.New("it does not say that it reads")
	})
	return l
}

// LaunchTail starts tail without waiting for it.
func LaunchTail(t testing.TB, config Properties, from string, environment ...string) *Tail {
	t.Helper()
	return launchTail(t, config, from, nil, environment)
}

func launchTail(t testing.TB, config Properties, from string, flags, environment []string) *Tail {
	t.Helper()
	file := config.WriteConnector(t, filepath.Join(t.TempDir(), "connector.json"), "tail")
	cmd := exec.Command(Binary(t), append([]string{"tail", "--config", file, "--lenient", "--records", "--from", from}, flags...)...)
	cmd.Env = append(cmd.Environ(), environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	l := &Tail{done: make(chan struct{})}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = writerFunc(func(b []byte) (int, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.said.Write(b)
	})
	started := make(chan error)
	go func() {
		// Pdeathsig counts from the thread that started the process, so that thread waits for it too.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		lines := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) > 0 {
				l.take(t, line)
			}
			if err != nil {
				break
			}
		}
		err = cmd.Wait()
		l.mu.Lock()
		l.code = cmd.ProcessState.ExitCode()
		if err != nil {
			fmt.Fprintf(&l.said, "(%v)\n", err)
		}
		l.mu.Unlock()
		close(l.done)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	l.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-l.done:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-l.done
		}
	})
	t.Cleanup(func() {
		l.stop()
		if t.Failed() {
			t.Logf("tail said last:\n%s", tail(l.said.String(), 15))
		}
	})
	return l
}

// Stop ends the process with SIGTERM.
func (l *Tail) Stop() { l.stop() }

// Take returns the records that have come since it was last called, and an error when the process has ended.
func (l *Tail) Take() ([]TailRecord, error) {
	ended := l.ended()
	l.mu.Lock()
	defer l.mu.Unlock()
	records := l.records
	l.records = nil
	if ended {
		return records, fmt.Errorf("tail ended with code %d:\n%s", l.code, tail(l.said.String(), 10))
	}
	return records, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

var _ io.Writer = writerFunc(nil)

func (l *Tail) take(t testing.TB, line []byte) {
	var r TailRecord
	if err := unmarshal(line, &r); err != nil {
		t.Errorf("tail printed %.300q: %v", line, err)
		return
	}
	r.source = strings.Trim(string(r.Offset), `"`)
	if len(r.Offset) > 0 && r.Offset[0] == '"' {
		_ = unmarshal(r.Offset, &r.source)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
}

func (l *Tail) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// until waits for a record of table sentinel with this id and returns the records before it that were not returned yet.
func (l *Tail) until(t testing.TB, id int) []TailRecord {
	t.Helper()
	var part []TailRecord
	key := fmt.Sprintf(`{"id":%d}`, id)
	eventually(t, 30*time.Second, fmt.Sprintf("sentinel %d", id), func() error {
		ended := l.ended()
		l.mu.Lock()
		defer l.mu.Unlock()
		for i := range l.records {
			if r := &l.records[i]; strings.HasSuffix(r.Topic, "sentinel") && r.keyText() == key {
				part, l.records = l.records[:i:i], l.records[i+1:]
				return nil
			}
		}
		if ended {
			t.Fatalf("tail ended with code %d:\n%s", l.code, tail(l.said.String(), 10))
		}
		return fmt.Errorf("%d other records", len(l.records))
	})
	return part
}

// awaitEnd waits until tail stops by itself, with code 1, and returns what it said.
func (l *Tail) awaitEnd(t testing.TB) string {
	t.Helper()
	select {
	case <-l.done:
	case <-time.After(30 * time.Second):
		t.Errorf("tail goes on; it has to stop")
		l.stop()
	}
	if l.code != 1 {
		t.Errorf("tail ended with code %d, want 1", l.code)
	}
	return l.said.String()
}
