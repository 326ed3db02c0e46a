package kclient

import (
	"math"
	"testing"
)

func TestLine(t *testing.T) {
	var l Line
	if _, _, ok := l.Follow("a"); ok {
		t.Error("follows nobody")
	}
	l.Leave("a", 7, 3)
	if id, epoch, ok := l.Follow("a"); !ok || id != 7 || epoch != 4 {
		t.Errorf("id %d, epoch %d, %v", id, epoch, ok)
	}
	if _, _, ok := l.Follow("a"); ok {
		t.Error("two follow one")
	}
	l.Leave("a", 7, 3)
	if _, _, ok := l.Follow("b"); ok {
		t.Error("follows in another cluster")
	}
	l.Leave("a", 7, math.MaxInt16)
	if _, _, ok := l.Follow("a"); ok {
		t.Error("follows the last epoch")
	}
}
