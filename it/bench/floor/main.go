// Command floor does what no capture can do without, and nothing else. "floor read" takes the bytes of a binlog from a server and
// throws them away; "floor produce" writes records that it was given to Kafka, over and over. What each has cost is printed as JSON.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("read or produce?")
	}
	var err error
	switch flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError); os.Args[1] {
	case "read":
		err = read(flags, os.Args[2:])
	case "produce":
		err = produce(flags, os.Args[2:])
	default:
		err = fmt.Errorf("no %q", os.Args[1])
	}
	if err != nil {
		log.Fatal(err)
	}
}

// cost is what is printed.
type cost struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"` // seconds
	RSS     int64   `json:"rss"` // the most, in bytes
}

// meter measures from a moment on.
type meter struct {
	begun time.Time
	cpu   time.Duration
}

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak is the most memory that was resident. What getrusage tells is also that of the process that started this one.
func peak() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

func begin() meter {
	return meter{time.Now(), used()}
}

func (m meter) tell() error {
	took, cpu := time.Since(m.begun), used()-m.cpu
	return json.NewEncoder(os.Stdout).Encode(cost{took.Seconds(), cpu.Seconds(), peak()})
}

// nonBlock asks the server to end the stream at the end of its binlog.
const nonBlock = 1

// read dumps the binlog from a position to its end.
func read(flags *flag.FlagSet, arguments []string) error {
	address := flags.String("mysql", "", "address of MySQL")
	user := flags.String("user", "", "user")
	password := flags.String("password", "", "password")
	id := flags.Uint("server-id", 6001, "server id of this replica")
	file := flags.String("file", "", "binlog file to begin with")
	pos := flags.Uint("pos", 4, "position in it")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	m := begin()
	c, err := client.Connect(*address, *user, *password, "")
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Execute("SET @source_binlog_checksum = @@GLOBAL.binlog_checksum"); err != nil {
		return err
	}
	command := append(make([]byte, 4), mysql.COM_BINLOG_DUMP)
	command = binary.LittleEndian.AppendUint32(command, uint32(*pos))
	command = binary.LittleEndian.AppendUint16(command, nonBlock)
	command = binary.LittleEndian.AppendUint32(command, uint32(*id))
	c.ResetSequence()
	if err := c.WritePacket(append(command, *file...)); err != nil {
		return err
	}
	// The client has read nothing ahead, since the server sends nothing unasked, so the stream is read below it.
	if err := drain(c.Conn.Conn); err != nil {
		return err
	}
	return m.tell()
}

// drain reads packets up to an EOF packet.
func drain(c net.Conn) error {
	const most = 1<<24 - 1 // bytes of a packet; a longer one goes on in the next
	buf := make([]byte, 128<<10)
	var r, w int
	continued := false
	for {
		for w-r < 5 {
			w = copy(buf, buf[r:w])
			r = 0
			n, err := c.Read(buf[w:])
			if err != nil {
				return err
			}
			w += n
		}
		size := int(buf[r]) | int(buf[r+1])<<8 | int(buf[r+2])<<16
		if !continued {
			switch kind := buf[r+4]; {
			case kind == mysql.EOF_HEADER && size < 9:
				return nil
			case kind != mysql.OK_HEADER:
				return fmt.Errorf("the server sent an error instead of an event: %q", buf[r+4:w])
			}
		}
		continued = size == most
		for r += 4 + size; r > w; {
			n, err := c.Read(buf)
			if err != nil {
				return err
			}
			r, w = r-w, n
		}
	}
}

// record is one that is ready.
type record struct {
	key, value []byte
}

// produce writes records from a file, over and over, without making anything anew.
func produce(flags *flag.FlagSet, arguments []string) error {
	brokers := flags.String("kafka", "", "address of a Kafka broker")
	topic := flags.String("topic", "", "topic")
	partitions := flags.Int("partitions", 1, "its partitions")
	compression := flags.String("compression", "none", "compression")
	file := flags.String("records", "", "file of records: lengths of key and value, 4 bytes each, then both; a value of length 0 is null")
	count := flags.Int("count", 0, "how many records")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	records, err := load(*file)
	if err != nil {
		return err
	}
	codec, ok := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
		"gzip": kgo.GzipCompression(),
	}[*compression]
	if !ok {
		return fmt.Errorf("no compression %q", *compression)
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(*brokers), kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(1_000_000),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(20_000), kgo.MaxBufferedBytes(32<<20))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Ping(context.Background()); err != nil {
		return err
	}

	const many = 512 // records that go round together
	type slab struct {
		records [many]kgo.Record
		left    atomic.Int32
		done    func(*kgo.Record, error)
	}
	free := sync.Pool{}
	var failed atomic.Pointer[error]
	m := begin()
	for i := 0; i < *count; {
		s, _ := free.Get().(*slab)
		if s == nil {
			s = &slab{}
			s.done = func(_ *kgo.Record, err error) {
				if err != nil {
					failed.Store(&err)
				}
				if s.left.Add(-1) == 0 {
					free.Put(s)
				}
			}
		}
		n := min(many, *count-i)
		s.left.Store(int32(n))
		stamp := time.Now()
		for j := range n {
			from := records[(i+j)%len(records)]
			s.records[j] = kgo.Record{Topic: *topic, Partition: int32((i + j) % *partitions), Key: from.key, Value: from.value, Timestamp: stamp}
			c.Produce(context.Background(), &s.records[j], s.done)
		}
		i += n
		if err := failed.Load(); err != nil {
			return *err
		}
	}
	if err := c.Flush(context.Background()); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return m.tell()
}

// load reads a file of records.
func load(path string) ([]record, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []record
	for len(b) > 0 {
		if len(b) < 8 {
			return nil, io.ErrUnexpectedEOF
		}
		key, value := int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))
		b = b[8:]
		if key > len(b) || value > len(b)-key {
			return nil, io.ErrUnexpectedEOF
		}
		r := record{key: b[:key:key]}
		if value > 0 {
			r.value = b[key : key+value : key+value]
		}
		all = append(all, r)
		b = b[key+value:]
	}
	if len(all) == 0 {
		return nil, errors.New("no records")
	}
	return all, nil
}
