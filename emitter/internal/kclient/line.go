package kclient

import (
	"math"
	"sync"
	"time"
)

// Line is the producers that follow one another, say of one connector in one process. One without transactions has the id of the one
// before it and a later epoch, so that a partition that it has written to takes nothing more of what that one still had on its way, which
// would be older than what is there. One with a transactional id can tell whether somebody else has taken that since. The zero value
// begins a line. Safe for concurrent use.
type Line struct {
	mu      sync.Mutex
	cluster string
	id      int64
	epoch   int16
	left    bool
	held    *Held
}

// Held is a transactional id as the last producer of a line has left it.
type Held struct {
	ID      int64 // of the producer
	Epoch   int16
	Version int16     // transaction.version
	Used    time.Time // until then the transactional id was certainly its own

	Unanswered bool      // the end of a transaction was sent, and there was no answer
	Open       time.Time // when the transaction began that it may have left open; zero: there is none
}

// Follow gives the id and the epoch for the next producer, if the one before it has left them, in this cluster.
func (l *Line) Follow(cluster string) (id int64, epoch int16, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ok = l.left && l.cluster == cluster && l.epoch < math.MaxInt16
	l.left = false // of two at the same time, one has another id
	return l.id, l.epoch + 1, ok
}

// Leave keeps what a producer had, when it has ended.
func (l *Line) Leave(cluster string, id int64, epoch int16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cluster, l.id, l.epoch, l.left = cluster, id, epoch, true
}

// Hold keeps a transactional id as a producer had it that has ended.
func (l *Line) Hold(h Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = &h
}

// Held is what the last producer with a transactional id has left; nil: that is not known, or there is none.
func (l *Line) Held() *Held {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// Release forgets what was held: the next producer takes the transactional id, whoever has it.
func (l *Line) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = nil
}

// Forget begins the line anew.
func (l *Line) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.held = false, nil
}
