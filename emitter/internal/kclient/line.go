package kclient

import (
	"math"
	"sync"
)

// Line is the producers without transactions that follow one another, say of one connector in one process. Each has the id of the one
// before it and a later epoch, so that a partition that it has written to takes nothing more of what that one still had on its way, which
// would be older than what is there. The zero value begins a line. Safe for concurrent use.
type Line struct {
	mu      sync.Mutex
	cluster string
	id      int64
	epoch   int16
	left    bool
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
