package pipeline

import (
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/offset"
)

// trouble says an interruption once and then counts. It is said again when its reason has become another one for good, and as a reminder,
// ever more seldom.
type trouble struct {
	attempts int
	since    time.Time
	said     string        // the reason
	other    string        // the last attempts failed for this one instead …
	times    int           // … so many of them
	remind   time.Duration // after since
	streamed int           // attempts since then that came as far as that …
	back     time.Time     // … the last of them when
}

const (
	settled     = 2 // attempts in a row that make another reason worth saying
	firstRemind = 5 * time.Minute
	mostRemind  = time.Hour // between two reminders
	// healed is how long the stream has to run to have gone on though nothing new was stored: there may have been nothing.
	healed = time.Minute
)

// tell is called with the error of each attempt and the wait behind it.
func (t *trouble) tell(log *zap.Logger, err error, retryIn time.Duration) {
	if !t.back.IsZero() && time.Since(t.back) >= healed {
		*t = trouble{}
	}
	t.attempts++
	reason := reasonOf(err)
	if t.attempts == 1 {
		t.streamed, t.since, t.said, t.remind = 0, time.Now(), reason, firstRemind
		log.Warn("the stream is interrupted; it goes on by itself from the stored offset as soon as it can", zap.Error(err))
		return
	}
	if reason != t.other {
		t.other, t.times = reason, 0
	}
	t.times++
	took := time.Since(t.since)
	counted := []zap.Field{zap.Error(err), zap.Int("attempts", t.attempts), zap.Duration("for", took.Round(time.Second))}
	switch {
	case reason != t.said && t.times >= settled:
		t.said = reason
		log.Warn("the stream is still interrupted, now for another reason; it goes on by itself as soon as it can", counted...)
	case took >= t.remind:
		t.remind = took + min(took, mostRemind)
		log.Warn("the stream is still interrupted", counted...)
	default:
		log.Debug("still waiting", zap.Error(err), zap.Duration("retry_in", retryIn))
	}
}

// streaming says that an attempt has come so far; of one trouble that ends it again and again, only once.
func (t *trouble) streaming(log *zap.Logger, from offset.Offset) {
	say := log.Info
	if t.attempts > 0 && t.streamed > 0 {
		say = log.Debug
	}
	say("streaming", append(t.over(), zap.Stringer("offset", from))...)
	t.streamed++
	t.back = time.Now()
}

// goesOn is told of each new offset that is stored: nothing stands in the way any more.
func (t *trouble) goesOn(log *zap.Logger) {
	if t.attempts > 0 && t.streamed > 1 {
		log.Info("the stream goes on", t.over()...)
	}
	*t = trouble{}
}

// over is what is said of the interruption when the stream goes on.
func (t *trouble) over() []zap.Field {
	if t.attempts == 0 {
		return []zap.Field{zap.Bool("again", false)}
	}
	return []zap.Field{zap.Bool("again", true), zap.Int("attempts", t.attempts), zap.Duration("interrupted_for", time.Since(t.since).Round(time.Millisecond))}
}

// reasonOf is an error's text without numbers: positions, ports and counts change with each attempt.
func reasonOf(err error) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}
