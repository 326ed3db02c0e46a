// Command canal is change data capture as one writes it by hand in an afternoon, to be measured beside others: go-mysql's binlog
// syncer with all rows decoded, a map a row, encoding/json, and franz-go's producer with one record a row. It does what go-mysql's
// package canal does for each event, without its cache of table definitions (the names of columns come with the binlog) and without
// parsing the text of each BEGIN; the package itself would bring a general SQL parser into this module.
//
// Its events have the shape of Debezium's, though not each of its encodings. Once a second, and at SIGTERM, it waits until all is
// acknowledged and stores the end of the last transaction.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// program is a running capture.
type program struct {
	prefix   string
	database string
	state    string // file of the stored position
	producer *kgo.Client
	failed   atomic.Pointer[error]

	file string         // the binlog file that is read
	done mysql.Position // the end of the last transaction
	gtid string
}

func run() error {
	p := &program{}
	address := flag.String("mysql", "", "address of MySQL")
	user := flag.String("user", "", "user")
	password := flag.String("password", "", "password")
	id := flag.Uint("server-id", 5001, "server id of this replica")
	brokers := flag.String("kafka", "", "address of a Kafka broker")
	compression := flag.String("compression", "none", "compression")
	file := flag.String("file", "", "binlog file to begin with")
	pos := flag.Uint("pos", 4, "position in it")
	flag.StringVar(&p.prefix, "prefix", "", "prefix of topics")
	flag.StringVar(&p.database, "database", "", "database to capture")
	flag.StringVar(&p.state, "state", "", "file to keep the position in")
	flag.Parse()

	codec, err := codecOf(*compression)
	if err != nil {
		return err
	}
	p.producer, err = kgo.NewClient(kgo.SeedBrokers(*brokers), kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(1<<20))
	if err != nil {
		return err
	}
	defer p.producer.Close()

	p.file, p.done = *file, mysql.Position{Name: *file, Pos: uint32(*pos)}
	if err := p.load(); err != nil {
		return err
	}
	host, portText, err := net.SplitHostPort(*address)
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return err
	}
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: uint32(*id), Flavor: mysql.MySQLFlavor, Host: host, Port: uint16(port), User: *user, Password: *password,
		Charset: "utf8mb4", Logger: slog.New(slog.DiscardHandler),
	})
	defer syncer.Close()
	stream, err := syncer.StartSync(p.done)
	if err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for saved := time.Now(); ; {
		event, err := next(ctx, stream)
		if err != nil {
			return err
		}
		if event != nil {
			if err := p.event(event); err != nil {
				return err
			}
		}
		if time.Since(saved) > time.Second || ctx.Err() != nil {
			if err := p.save(); err != nil || ctx.Err() != nil {
				return err
			}
			saved = time.Now()
		}
	}
}

func codecOf(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "none":
		return kgo.NoCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	}
	return kgo.NoCompression(), fmt.Errorf("no compression %q", name)
}

// next is the next event, or nil after a second without one and when ctx is done.
func next(ctx context.Context, stream *replication.BinlogStreamer) (*replication.BinlogEvent, error) {
	waiting, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	event, err := stream.GetEvent(waiting)
	if waiting.Err() != nil && errors.Is(err, waiting.Err()) {
		return nil, nil
	}
	return event, err
}

func (p *program) event(e *replication.BinlogEvent) error {
	if failed := p.failed.Load(); failed != nil {
		return *failed
	}
	switch v := e.Event.(type) {
	case *replication.RotateEvent:
		p.file = string(v.NextLogName)
	case *replication.GTIDEvent:
		if set, err := v.GTIDNext(); err == nil {
			p.gtid = set.String()
		}
	case *replication.XIDEvent:
		p.done = mysql.Position{Name: p.file, Pos: e.Header.LogPos}
	case *replication.RowsEvent:
		if string(v.Table.Schema) == p.database {
			return p.rows(e.Header, v)
		}
	}
	return nil
}

func (p *program) rows(h *replication.EventHeader, e *replication.RowsEvent) error {
	table := string(e.Table.Table)
	topic := p.prefix + "." + p.database + "." + table
	columns := e.Table.ColumnNameString()
	source := map[string]any{
		"version": "1", "connector": "mysql", "name": p.prefix, "ts_ms": int64(h.Timestamp) * 1000, "snapshot": "false", "db": p.database,
		"table": table, "server_id": h.ServerID, "gtid": p.gtid, "file": p.file, "pos": h.LogPos, "row": 0, "thread": nil, "query": nil,
	}
	for i := 0; i < len(e.Rows); i++ {
		event := map[string]any{"before": nil, "after": nil, "source": source, "ts_ms": time.Now().UnixMilli(), "transaction": nil}
		source["row"] = i
		row := object(columns, e.Rows[i])
		switch e.Type() {
		case replication.EnumRowsEventTypeInsert:
			event["op"], event["after"] = "c", row
		case replication.EnumRowsEventTypeDelete:
			event["op"], event["before"] = "d", row
		case replication.EnumRowsEventTypeUpdate:
			event["op"], event["before"] = "u", row
			i++
			row = object(columns, e.Rows[i])
			event["after"] = row
		}
		key := map[string]any{}
		for _, k := range e.Table.PrimaryKey {
			key[columns[k]] = row[columns[k]]
		}
		keyText, err := json.Marshal(key)
		if err != nil {
			return err
		}
		value, err := json.Marshal(event)
		if err != nil {
			return err
		}
		p.produce(topic, keyText, value)
		if event["op"] == "d" {
			p.produce(topic, keyText, nil)
		}
	}
	return nil
}

// object is a row by the names of its columns. Binary values become base64, as encoding/json does it.
func object(columns []string, row []any) map[string]any {
	o := make(map[string]any, len(row))
	for i, v := range row {
		o[columns[i]] = v
	}
	return o
}

func (p *program) produce(topic string, key, value []byte) {
	p.producer.Produce(context.Background(), &kgo.Record{Topic: topic, Key: key, Value: value}, func(_ *kgo.Record, err error) {
		if err != nil {
			p.failed.Store(&err)
		}
	})
}

// save stores the end of the last transaction when all before it is acknowledged.
func (p *program) save() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.producer.Flush(ctx); err != nil {
		return err
	}
	if failed := p.failed.Load(); failed != nil {
		return *failed
	}
	b, err := json.Marshal(p.done)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.state+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(p.state+".new", p.state)
}

// load takes up the stored position, if there is one.
func (p *program) load() error {
	b, err := os.ReadFile(p.state)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &p.done); err != nil {
		return err
	}
	p.file = p.done.Name
	return nil
}
