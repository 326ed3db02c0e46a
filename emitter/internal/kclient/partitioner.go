package kclient

import "github.com/twmb/franz-go/pkg/kgo"

// Partitioner has records where Java's default partitioner has them, by the key's hash, but for those whose Partition is
// [Fixed]. All that franz-go's producer writes has one of the two.
func Partitioner() kgo.Partitioner { return partitioner{} }

type partitioner struct{}

func (p partitioner) ForTopic(string) kgo.TopicPartitioner { return p }

// Fixed is the Partition that a record for partition n has before it is produced. Zero stands for none, as franz-go has it
// in every record.
func Fixed(n int32) int32 { return ^n }

// RequiresConsistency keeps a record on its partition also while that partition has no leader (I7).
func (partitioner) RequiresConsistency(*kgo.Record) bool { return true }

func (partitioner) Partition(r *kgo.Record, n int) int {
	if r.Partition < 0 {
		return int(Fixed(r.Partition))
	}
	return Partition(r.Key, n)
}

// Keyless tells the partitions of a topic's records that have no key, as Java's default partitioner: they stay on one until
// about 16 KiB (Java's batch.size) have gone there, then move to the next. It is for one goroutine.
type Keyless struct{ at, bytes int }

// Partition is the partition of n for a record with a value of that many bytes.
func (k *Keyless) Partition(bytes, n int) int {
	const stay = 16384
	k.bytes += bytes
	if k.bytes >= stay {
		k.bytes = 0
		k.at++
	}
	return k.at % n
}
