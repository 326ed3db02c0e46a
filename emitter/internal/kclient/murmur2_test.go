package kclient

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The values are those of org.apache.kafka.common.utils.Utils.murmur2.
func TestMurmur2(t *testing.T) {
	for key, want := range map[string]uint32{
		"": 275646681, "a": 2731586172, "ab": 316155434, "abc": 479470107, "abcd": 2971317748, "abcde": 461995741,
		"\u00ff\u0100": 1925129163, "é😀表": 1686761936,
	} {
		if got := Murmur2([]byte(key)); got != want {
			t.Errorf("Murmur2(%q) = %d, want %d", key, got, want)
		}
	}
}

// Keys of a Connect worker's offsets topic of 25 partitions, and where it wrote them.
func TestPartition(t *testing.T) {
	for key, want := range map[string]int{
		`["inventory-connector",{"server":"dbserver1"}]`:                                   11,
		`["my-connector",{"server":"prefix"}]`:                                             17,
		`["inventory-connector",{"server":"dbserver1g"}]`:                                  16,
		`["inventory-file-mode",{"server":"dbserver1f"}]`:                                  23,
		`["inventory-txmeta",{"server":"dbserver1t"}]`:                                     15,
		`["file-source-2",{"filename":"/data/log.txt"}]`:                                   20,
		`["inventory-connector",null]`:                                                     4,
		`["smt-unwrap-default",{"server":"smt_unwrap_default"}]`:                           0,
		`["route-logical-table-no-unique",{"server":"smt_route_logical_table_no_unique"}]`: 20,
	} {
		if got := Partition([]byte(key), 25); got != want {
			t.Errorf("Partition(%s) = %d, want %d", key, got, want)
		}
	}
}

func TestI7_KeysStayOnTheirPartition(t *testing.T) {
	p := Partitioner().ForTopic("t")
	keyed := &kgo.Record{Key: []byte("abc")}
	empty := &kgo.Record{Key: []byte{}}
	if !p.RequiresConsistency(keyed) || !p.RequiresConsistency(empty) {
		t.Error("a key may move while its partition has no leader")
	}
	if got, want := p.Partition(keyed, 25), int(Murmur2([]byte("abc"))%25); got != want {
		t.Errorf("partition %d, want %d", got, want)
	}
	if got, want := p.Partition(empty, 25), Partition(nil, 25); got != want {
		t.Errorf("empty key: partition %d, want %d", got, want)
	}
}
