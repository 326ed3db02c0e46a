package it

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestLostEndOfATransaction has partitions hold transactions for open whose end their coordinator takes for written, as Kafka leaves them
// behind since 4.3.0 when the only broker of partitions is restarted between the end of a transaction and its markers. The next start
// gives them the end that they had: nobody waits there, and nothing is there twice or missing.
func TestLostEndOfATransaction(t *testing.T) {
	t.Parallel()
	rig := newRigWith(t, broker{version: "new"}, gtidFlags...) // where transaction.version is below 2 the start stops instead
	c := rig.Connector(t, "lostend", "topic", "lostend\\..*")
	c.Config["exactly.once.support"] = "required"
	c.Config["start.position"] = "oldest"
	for _, sql := range []string{
		"CREATE DATABASE lostend", "CREATE TABLE lostend.t (id INT PRIMARY KEY)", "INSERT INTO lostend.t VALUES (1)",
		"CREATE TABLE lostend.u (id INT PRIMARY KEY)", "INSERT INTO lostend.u VALUES (1)",
	} {
		rig.MySQL.Exec(t, sql)
	}
	streams := func(rows int64) {
		t.Helper()
		p := c.RunStreaming(t)
		defer p.Terminate(t)
		c.AwaitCommitted(t, "lostend.lostend.t", rows)
	}
	streams(1)
	const id = "lostend-lostend-0"
	rig.Kafka.TrustProducers(t)

	// Of one that was rolled back nobody has a marker.
	producer := rig.Kafka.Producer(t, id)
	rig.Kafka.LeaveOpen(t, producer, "lostend.lostend.t", 0)
	rig.Kafka.LeaveOpen(t, producer, c.OffsetTopic(), 0)
	rig.MySQL.Exec(t, "INSERT INTO lostend.t VALUES (2)")
	streams(2)

	// Of one that was committed the offset's partition has its marker.
	producer = rig.Kafka.Producer(t, id)
	rig.Kafka.LeaveOpen(t, producer, "lostend.lostend.t", 0)
	rig.Kafka.Mark(t, producer, true, c.OffsetTopic(), 0)
	rig.MySQL.Exec(t, "INSERT INTO lostend.t VALUES (3)")
	streams(4) // with the record that was left open

	// It was where the offset's partition has lost the marker, too, and one of records has it.
	producer = rig.Kafka.Producer(t, id)
	for _, topic := range []string{"lostend.lostend.t", "lostend.lostend.u", c.OffsetTopic()} {
		rig.Kafka.LeaveOpen(t, producer, topic, 0)
	}
	rig.Kafka.Mark(t, producer, true, "lostend.lostend.u", 0)
	rig.MySQL.Exec(t, "INSERT INTO lostend.t VALUES (4)")
	streams(6)

	var values []string
	for _, m := range c.Records(t) {
		if m.Topic == "lostend.lostend.t" {
			_, after, _ := strings.Cut(string(m.Value), `"after":`)
			after, _, _ = strings.Cut(after, ",")
			values = append(values, after)
		}
	}
	slices.Sort(values)
	if got, want := fmt.Sprint(values), `[  {"id":1} {"id":2} {"id":3} {"id":4}]`; got != want {
		t.Errorf("consumers of committed records see %s, want %s", got, want)
	}
}

// AwaitCommitted waits until consumers of committed records can read to the end of a topic, and see so many records there.
func (c *Connector) AwaitCommitted(t testing.TB, topic string, records int64) {
	t.Helper()
	admin := c.rig.Kafka.admin(t)
	defer admin.Close()
	eventually(t, time.Minute, "committed records", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for _, name := range append(c.rig.Kafka.Topics(t, c.Prefix), c.OffsetTopic()) {
			ends, err := admin.ListEndOffsets(ctx, name)
			if err != nil {
				return err
			}
			stable, err := admin.ListCommittedOffsets(ctx, name)
			if err != nil {
				return err
			}
			var open error
			ends.Each(func(end kadm.ListedOffset) {
				if at, _ := stable.Lookup(end.Topic, end.Partition); at.Offset < end.Offset {
					open = fmt.Errorf("%s-%d: %d of %d are decided", end.Topic, end.Partition, at.Offset, end.Offset)
				}
			})
			if open != nil {
				return open
			}
		}
		n := int64(0)
		for _, m := range c.rig.Kafka.Read(t, topic) {
			if m.Topic == topic {
				n++
			}
		}
		if n != records {
			return fmt.Errorf("there are %d of %d records", n, records)
		}
		return nil
	})
}

// TransactionalProducer is the last producer of a transactional id.
type TransactionalProducer struct {
	ID    int64
	Epoch int16
}

// Producer is the last producer of a transactional id, which has no transaction open.
func (k *Kafka) Producer(t testing.TB, id string) TransactionalProducer {
	t.Helper()
	admin := k.admin(t)
	defer admin.Close()
	described, err := admin.DescribeTransactions(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	one := described[id]
	if one.Err != nil || !strings.HasPrefix(one.State, "Complete") && one.State != "Empty" {
		t.Fatalf("%s is %s (%v)", id, one.State, one.Err)
	}
	return TransactionalProducer{one.ProducerID, one.ProducerEpoch}
}

// TrustProducers has the broker not ask the coordinator whether a transaction is open before it takes records for it.
func (k *Kafka) TrustProducers(t testing.TB) {
	t.Helper()
	admin := k.admin(t)
	defer admin.Close()
	no := "false"
	results, err := admin.AlterBrokerConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "transaction.partition.verification.enable", Value: &no}})
	if err == nil {
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// LeaveOpen writes a record without a value to a partition, in a transaction that nobody else knows of.
func (k *Kafka) LeaveOpen(t testing.TB, of TransactionalProducer, topic string, partition int32) {
	t.Helper()
	const noSize, record = 12, "\x0e\x00\x00\x00\x02k\x01\x00"
	b := kmsg.NewRecordBatch()
	b.PartitionLeaderEpoch, b.Magic, b.Attributes = -1, 2, 0x10
	b.FirstTimestamp, b.MaxTimestamp = time.Now().UnixMilli(), time.Now().UnixMilli()
	b.ProducerID, b.ProducerEpoch, b.NumRecords, b.Records = of.ID, of.Epoch, 1, []byte(record)
	batch := b.AppendTo(nil)
	binary.BigEndian.PutUint32(batch[8:], uint32(len(batch)-noSize))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))

	c, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	id := "whichever"
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.TransactionID = -1, 10_000, &id
	in := kmsg.NewProduceRequestTopic()
	in.Topic = topic
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, batch
	in.Partitions = append(in.Partitions, part)
	req.Topics = append(req.Topics, in)
	eventually(t, time.Minute, "a record in "+topic, func() error {
		resp, err := c.SeedBrokers()[0].RetriableRequest(context.Background(), &versioned{req, 11}) // since version 12 a record begins its transaction by itself
		if err != nil {
			return err
		}
		for _, topic := range resp.(*kmsg.ProduceResponse).Topics {
			for _, p := range topic.Partitions {
				if p.ErrorCode != 0 { // as until the broker trusts producers
					return kerr.ErrorForCode(p.ErrorCode)
				}
			}
		}
		return nil
	})
}

// versioned is a request that is sent with a version at most.
type versioned struct {
	*kmsg.ProduceRequest
	most int16
}

func (v *versioned) MaxVersion() int16 { return v.most }

// Mark writes a transaction's marker to a partition.
func (k *Kafka) Mark(t testing.TB, of TransactionalProducer, commit bool, topic string, partition int32) {
	t.Helper()
	admin := k.admin(t)
	defer admin.Close()
	topics := make(kadm.TopicsSet)
	topics.Add(topic, partition)
	written, err := admin.WriteTxnMarkers(context.Background(), kadm.TxnMarkers{ProducerID: of.ID, ProducerEpoch: of.Epoch + 1, Commit: commit, Topics: topics})
	if err != nil {
		t.Fatal(err)
	}
	written.EachPartition(func(p kadm.TxnMarkersPartitionResponse) {
		if p.Err != nil {
			t.Fatalf("%s-%d: %v", p.Topic, p.Partition, p.Err)
		}
	})
}
