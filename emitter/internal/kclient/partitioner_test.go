package kclient

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestFixedPartition(t *testing.T) {
	p := Partitioner().ForTopic("t")
	key := []byte(`["inventory-connector",{"server":"dbserver1"}]`)
	for n := range int32(3) {
		r := &kgo.Record{Partition: Fixed(n), Key: key}
		if got := p.Partition(r, 25); got != int(n) || !p.RequiresConsistency(r) {
			t.Errorf("partition %d, want %d", got, n)
		}
		if got := p.Partition(&kgo.Record{Partition: Fixed(n)}, 25); got != int(n) {
			t.Errorf("without a key: partition %d, want %d", got, n)
		}
	}
	if got := p.Partition(&kgo.Record{Key: key}, 25); got != 11 {
		t.Errorf("partition %d, want 11", got)
	}
}

// Records without a key and a partition stay together, then move on, as Java's.
func TestKeylessRecordsMoveOn(t *testing.T) {
	var k Keyless
	var got [6]int
	for i := range got {
		got[i] = k.Partition(10_000, 2)
	}
	if want := [6]int{0, 1, 1, 0, 0, 1}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
