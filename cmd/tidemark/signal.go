package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how soon after a signal another one is the same: timeout(1) sends it to its child and to the group of both.
const sameSignal = 200 * time.Millisecond

// untilSignal returns a context that the first SIGTERM or SIGINT cancels, for an orderly stop. The second one ends the
// process at once: nothing is lost by that, since what is not stored yet is read again at the next start.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	done := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				switch {
				case first.IsZero():
					first = time.Now()
					cancel()
				case time.Since(first) > sameSignal:
					os.Exit(128 + int(s.(syscall.Signal)))
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
