package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/cmd/internal/demo"
	"github.com/tidemark-cdc/tidemark/cmd/internal/pipeline"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

func demoCommand() *cobra.Command {
	var flag registryFlag
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show events, a kill in the middle of a transaction and the exact resume, with nothing else installed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(cmd)
			if err != nil {
				return err
			}
			signal.Ignore(syscall.SIGPIPE) // a reader that has seen enough must not keep the worker and the files from going
			self, err := os.Executable()
			if err != nil {
				return err
			}
			hold, mine, err := os.Pipe() // its end, when this process is gone, ends the worker
			if err != nil {
				return err
			}
			defer hold.Close()
			defer mine.Close()
			url, closeRegistry, err := flag.open(log)
			if err != nil {
				return err
			}
			defer closeRegistry()
			worker := func(ctx context.Context, broker, binlogFile, offsetFile string, pauseAfter int) *exec.Cmd {
				w := exec.CommandContext(ctx, self, "demo-worker", "--log-level", "warn", broker, binlogFile, offsetFile, strconv.Itoa(pauseAfter))
				w.Stdin, w.Stderr = hold, os.Stderr
				w.Env = append(os.Environ(), demoRegistry+"="+url) // not an argument: others can see those
				return w
			}
			err = demo.Run(cmd.Context(), cmd.OutOrStdout(), worker, func(path string) (offset.Store, error) {
				return offset.OpenFile(path, nil)
			}, url)
			if cmd.Context().Err() != nil {
				return errors.New("the demo was interrupted; its worker and its files are gone")
			}
			return err
		},
	}
	flag.add(cmd, "")
	return cmd
}

// demoRegistry is the variable by which the worker gets the registry's URL.
const demoRegistry = "TIDEMARK_DEMO_REGISTRY"

// demoWorkerCommand is the process that the demo starts and kills: the pipeline of run, over a binlog file.
func demoWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-worker BROKER BINLOG OFFSETS PAUSE",
		Hidden: true,
		Args:   cobra.ExactArgs(4),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := logger(cmd)
			if err != nil {
				return err
			}
			pause, err := strconv.Atoi(args[3])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin)
				cancel()
			}()
			return demoWorker(ctx, args[0], args[1], args[2], pause, os.Getenv(demoRegistry), log)
		},
	}
}

func demoWorker(ctx context.Context, broker, binlogFile, offsetFile string, pauseAfter int, registry string, log *zap.Logger) error {
	c := &config.Connector{Name: demo.Key.Connector}
	c.Key.ReplaceNullWithDefault, c.Value.ReplaceNullWithDefault = true, true
	(&registryFlag{value: registry}).use(c, registry)
	regs, err := openRegistries(c, false, log)
	if err != nil {
		return err
	}
	defer regs.close()
	em, err := emitter.New(emitter.Config{
		Prefix:     demo.Key.Server,
		Key:        converter(&c.Key, regs, true),
		Value:      converter(&c.Value, regs, false),
		Tombstones: true, ExtendedHeaders: true,
	})
	if err != nil {
		return err
	}
	store, err := offset.OpenFile(offsetFile, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	client, err := kafka.NewClient(kafka.ClientConfig{Properties: map[string]string{"bootstrap.servers": broker}, Log: log})
	if err != nil {
		return err
	}
	defer client.Close()
	topics := kafka.NewTopics(client, kafka.TopicSpec{Create: true, Partitions: 1, ReplicationFactor: 1})
	p := pipeline.Pipeline{
		Open: func(ctx context.Context, stored offset.Offset) (binlog.Source, error) {
			from := binlog.Start{Oldest: true}
			if !stored.IsZero() {
				from = binlog.Start{Offset: &stored}
			}
			return binlog.OpenFiles(ctx, binlog.Config{Captured: func(string, string) bool { return true }, Log: log}, []string{binlogFile}, from)
		},
		Deliver: func(ctx context.Context) (emitter.Delivery, error) {
			return &slowly{Delivery: emitter.NewAtLeastOnce(client, emitter.DeliveryConfig{Topics: topics}), left: pauseAfter}, nil
		},
		Transient:     func(error) bool { return false },
		Schema:        regs.resolve,
		Emitter:       em,
		Store:         store,
		Key:           demo.Key,
		FlushInterval: 20 * time.Millisecond,
		FlushTimeout:  5 * time.Second,
		Log:           log,
	}
	return p.Run(ctx)
}

// slowly is a delivery that a person can watch. After a number of rows it stands still until the process is killed.
type slowly struct {
	emitter.Delivery
	left  int // rows before it stands still; 0: it does not
	rows  int
	pause bool           // a row has been delivered and not been watched yet
	batch *emitter.Batch // given out last …
	had   int            // … with so many records
}

// look counts the row whose records have been appended since the batch was given out.
func (s *slowly) look() {
	if s.batch != nil && len(s.batch.Records) > s.had {
		s.rows++
		s.pause = true
	}
	s.batch = nil
}

// Batch waits after each row, when all of it has been delivered.
func (s *slowly) Batch(ctx context.Context) (*emitter.Batch, error) {
	s.look()
	if s.pause {
		s.pause = false
		if err := s.Delivery.Deliver(ctx); err != nil {
			return nil, err
		}
		pause := time.After(120 * time.Millisecond)
		if s.rows == s.left {
			pause = nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-pause:
		}
	}
	b, err := s.Delivery.Batch(ctx)
	if err == nil {
		s.batch, s.had = b, len(b.Records)
	}
	return b, err
}

// Deliver counts the last row of an event.
func (s *slowly) Deliver(ctx context.Context) error {
	s.look()
	return s.Delivery.Deliver(ctx)
}
