package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A signal that comes twice at once is one; a later one ends the process.
func TestSignals(t *testing.T) {
	const child = "TIDEMARK_SIGNALS"
	send := func(n int) {
		for range n {
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			time.Sleep(sameSignal / 10) // or the system makes one of them
		}
	}
	switch os.Getenv(child) {
	case "once":
		ctx, stop := untilSignal(t.Context())
		send(3)
		<-ctx.Done()
		time.Sleep(2 * sameSignal)
		stop()
		return
	case "again":
		ctx, stop := untilSignal(t.Context())
		defer stop()
		send(1)
		<-ctx.Done()
		time.Sleep(2 * sameSignal)
		send(1)
		time.Sleep(time.Minute)
		return
	}
	for how, want := range map[string]int{"once": 0, "again": 128 + int(syscall.SIGTERM)} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSignals$")
		cmd.Env = append(os.Environ(), child+"="+how)
		code := 0
		if err := cmd.Run(); err != nil {
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok {
				t.Fatal(err)
			}
			code = exit.ExitCode()
		}
		if code != want {
			t.Errorf("%s: exit code %d, want %d", how, code, want)
		}
	}
}
