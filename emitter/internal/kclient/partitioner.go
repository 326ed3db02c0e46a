package kclient

import "github.com/twmb/franz-go/pkg/kgo"

// Partitioner is Java's default partitioner: the key's hash; records without a key stay on one partition until about
// 16 KiB (Java's batch.size) have gone there, then move to the next. A record whose Partition is [Fixed] goes there.
func Partitioner() kgo.Partitioner { return partitioner{} }

type partitioner struct{}

func (partitioner) ForTopic(string) kgo.TopicPartitioner { return new(topicPartitioner) }

// Fixed is the Partition that a record for partition n has before it is produced. Zero stands for none, as franz-go has it
// in every record.
func Fixed(n int32) int32 { return ^n }

// topicPartitioner needs no lock: franz-go partitions the records of one topic one after the other.
type topicPartitioner struct{ keyless Keyless }

// RequiresConsistency keeps a key on its partition also while that partition has no leader (I7).
func (*topicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Key != nil || r.Partition < 0
}

func (t *topicPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Partition < 0 {
		return int(Fixed(r.Partition))
	}
	if r.Key != nil {
		return Partition(r.Key, n)
	}
	return t.keyless.Partition(len(r.Value), n)
}

// Keyless tells the partitions of a topic's records that have no key. It is for one goroutine.
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
