package pipeline

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestAnotherReasonIsSaidOnce: while the stream waits, what it waits for may become something else: a server that was away, and then does
// not take the password. That is said when it has come to stay, and the numbers in a text make no other reason.
func TestAnotherReasonIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		var trouble trouble
		for i := range 30 {
			err := fmt.Errorf("read tcp 127.0.0.1:%d: connection refused", 40000+i)
			switch {
			case i == 4 || i == 7:
				err = errors.New("the server shuts down")
			case i >= 10:
				err = errors.New("access denied")
			}
			trouble.tell(zap.New(core), err, time.Second)
			time.Sleep(time.Second)
		}
		if n := logs.FilterMessageSnippet("is interrupted").Len(); n != 1 {
			t.Errorf("the interruption was said %d times", n)
		}
		again := logs.FilterMessageSnippet("another reason").All()
		if len(again) != 1 || again[0].ContextMap()["error"] != "access denied" || again[0].ContextMap()["attempts"] != int64(12) {
			t.Errorf("another reason: %v", again)
		}
		if logs.Len() != 2 {
			t.Errorf("%d lines: %v", logs.Len(), logs.All())
		}
		over := zap.New(core)
		over.Info("streaming", trouble.over()...)
		if last := logs.All()[2].ContextMap(); last["attempts"] != int64(30) || last["interrupted_for"] != 30*time.Second || last["again"] != true {
			t.Errorf("at the end: %v", last)
		}
	})
}
