package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/cmd/internal/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/internal/standby"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

func runCommand() *cobra.Command {
	var lenient bool
	var flag registryFlag
	var memory memorySize
	cmd := &cobra.Command{
		Use:   "run [worker.properties] connector.json…",
		Short: "Stream the changes of MySQL servers to Kafka",
		Long: `run reads the binlog of each connector's server and writes its row changes to Kafka as Debezium change events. It goes on
from the stored offset, Debezium's own included, and without one where snapshot.mode and start.position say.

The connector files are those of Debezium's MySQL connector, the properties file is that of a Kafka Connect worker. SIGTERM or
SIGINT ends reading, flushes, stores the offset and exits with 0; a second one exits at once. Several connectors run in one
process; when one of them stops with an error, the others are stopped in order and the exit code is 1, or 75 when another instance
has taken its place.

Several processes may be started with the same files when offsets are kept in a topic and group.id is set: one of them runs a
connector, and the others stand by. When it stops, one of them takes over at once, and when it dies, after standby.session.timeout.ms.

--memory bounds the process, all connectors together: the heap of Go, and in it the records on their way to Kafka, for which reading
waits when the share of their connector is used up (8 MiB at most, and never more than half of its buffer.memory). The default is nine
tenths of the container's limit; without one, a connector with some hundreds of tables stays below 80 MB. The size of a transaction does
not matter: its rows are sent as they come, and those of an XA transaction wait in a file. A single row does: one of 64 MiB takes several
times as much while it is read and written, on top. So do tables: 1 to 12 KB for each that has rows. The bound is a soft one: where more
is in use, the process takes more rather than stop, and spends more time on collecting garbage. GOMEMLIMIT and GOGC, where they are set, win.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no file is given: tidemark run worker.properties connector.json")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := logger(cmd)
			if err != nil {
				return err
			}
			return run(cmd.Context(), args, lenient, &flag, memory, log)
		},
	}
	cmd.Flags().BoolVar(&lenient, "lenient", false, "warn about keys that are not built yet instead of refusing them")
	cmd.Flags().Var(&memory, "memory", "how much memory the process may take, such as 256MiB (default: the container's limit, or what keeps it below 80 MB)")
	flag.add(cmd, ", instead of what key.converter and value.converter say")
	return cmd
}

func run(ctx context.Context, files []string, lenient bool, flag *registryFlag, asked memorySize, log *zap.Logger) error {
	cfg, err := config.Load(files, config.Options{Lenient: lenient, Registry: flag.given()})
	if err != nil {
		return err
	}
	memory, err := boundMemory(asked, len(cfg.Connectors), log)
	if err != nil {
		return err
	}
	log.Info("tidemark", zap.String("version", version), zap.Int("connectors", len(cfg.Connectors)),
		zap.String("memory", sizeText(memory.total)), zap.String("memory_from", memory.source))
	for _, w := range cfg.Warnings {
		log.Warn(w.String())
	}
	registry, closeEmbedded, err := flag.open(log)
	if err != nil {
		return err
	}
	defer closeEmbedded()
	for _, c := range cfg.Connectors {
		flag.use(c, registry)
	}
	standbys := make([]*standby.Standby, len(cfg.Connectors))
	lines := make([]kafka.Line, len(cfg.Connectors))
	for i, c := range cfg.Connectors {
		if standbys[i], err = newStandby(ctx, c, cfg.Worker, &lines[i], log.With(zap.String("connector", c.Name))); err != nil {
			return fmt.Errorf("connector %s: %w", c.Name, err)
		}
	}
	store, definitions, err := openStores(ctx, cfg.Worker, log)
	if err != nil {
		return stopped(ctx, err)
	}
	group, connectors := errgroup.WithContext(ctx)
	for i, c := range cfg.Connectors {
		group.Go(func() error {
			log := log.With(zap.String("connector", c.Name))
			err := oneOfSeveral(connectors, standbys[i], func(ctx context.Context, may func() bool) error {
				return runConnector(ctx, c, cfg.Worker, store, definitions, memory.records, &lines[i], may, log)
			})
			if err != nil {
				return fmt.Errorf("connector %s: %w", c.Name, err)
			}
			return nil
		})
	}
	return errors.Join(stopped(ctx, group.Wait()), definitions.Close(), store.Close())
}

// stopped is nil for the error that a stop by signal causes.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// openStores opens the places of the offsets and of the tables' definitions, both at once.
func openStores(ctx context.Context, w *config.Worker, log *zap.Logger) (store offset.Store, definitions schema.Store, err error) {
	both, opening := errgroup.WithContext(ctx)
	both.Go(func() error {
		opened, err := openStore(opening, w, log)
		if err == nil {
			store = opened
		}
		return err
	})
	both.Go(func() error {
		opened, err := openDefinitions(opening, w, log)
		if err == nil {
			definitions = opened
		}
		return err
	})
	if err = both.Wait(); err == nil {
		return store, definitions, nil
	}
	if store != nil {
		err = errors.Join(err, store.Close())
	}
	if definitions != nil {
		err = errors.Join(err, definitions.Close())
	}
	return nil, nil, err
}

// openStore opens the place of the offsets, which all connectors share. For a topic it waits until Kafka can be reached.
func openStore(ctx context.Context, w *config.Worker, log *zap.Logger) (offset.Store, error) {
	if w.OffsetFile != "" {
		return offset.OpenFile(w.OffsetFile, &offset.FileOptions{Warn: func(message string) { log.Warn(message) }})
	}
	return kafka.OpenTopicStore(ctx, topicStore(w, log))
}

// openDefinitions opens the place of the tables' definitions, beside that of the offsets.
func openDefinitions(ctx context.Context, w *config.Worker, log *zap.Logger) (schema.Store, error) {
	if w.OffsetFile != "" {
		return schema.OpenFileStore(w.OffsetFile + ".schemas")
	}
	return kafka.OpenSchemaTopic(ctx, topicStore(w, log))
}

func topicStore(w *config.Worker, log *zap.Logger) kafka.TopicStoreConfig {
	return kafka.TopicStoreConfig{
		ClientConfig:      kafka.ClientConfig{Properties: w.Client, Reread: w.ClientReread, ClientID: "tidemark-offsets", Log: log},
		Topic:             w.OffsetTopic.Name,
		Partitions:        w.OffsetTopic.Partitions,
		ReplicationFactor: w.OffsetTopic.ReplicationFactor,
		Settings:          w.OffsetTopic.Config,
	}
}

// topicSpec says how the connector's topics are made.
func topicSpec(c *config.Connector) kafka.TopicSpec {
	t := c.TopicCreation
	if t == nil {
		return kafka.TopicSpec{}
	}
	return kafka.TopicSpec{Create: true, Partitions: t.Partitions, ReplicationFactor: t.ReplicationFactor, Settings: t.Config}
}

// topicGroups are the groups of topic.creation.groups.
func topicGroups(c *config.Connector) []kafka.TopicGroup {
	any := func(patterns []*regexp.Regexp) func(string) bool {
		return func(topic string) bool {
			return slices.ContainsFunc(patterns, func(r *regexp.Regexp) bool { return r.MatchString(topic) })
		}
	}
	groups := make([]kafka.TopicGroup, len(c.TopicGroups))
	for i, g := range c.TopicGroups {
		groups[i] = kafka.TopicGroup{
			Name: g.Name, Include: any(g.Include), Exclude: any(g.Exclude),
			Spec: kafka.TopicSpec{Partitions: g.Partitions, ReplicationFactor: g.ReplicationFactor, Settings: g.Config},
		}
	}
	return groups
}

// runConnector streams one connector until ctx is done. records bounds the bytes of its records on their way; line is what has become of
// earlier runs; may says whether this process may still send and store.
func runConnector(ctx context.Context, c *config.Connector, w *config.Worker, store offset.Store, definitions schema.Store, records int, line *kafka.Line, may func() bool, log *zap.Logger) error {
	regs, err := openRegistries(c, false, log)
	if err != nil {
		return err
	}
	defer regs.close()
	em, err := newEmitter(c, regs, log)
	if err != nil {
		return err
	}
	s, err := openSchemas(c, definitions, em, regs, log)
	if err != nil {
		return err
	}
	defer s.close()
	s.may = may
	topic, _ := store.(*kafka.TopicStore)
	if c.OffsetsTopic != "" {
		own, err := openOwnStore(ctx, c, w, store, log)
		if err != nil {
			return stopped(ctx, err)
		}
		defer func() { _ = own.Close() }()
		store, topic = own, own.TopicStore
	}
	key := offset.Key{Connector: c.Name, Server: c.Prefix}
	delivery := &deliveries{c: c, records: records, line: line, may: may, log: log, topic: topic, key: key, flush: w.FlushInterval}
	poison := newPoison(c, regs, log)
	defer poison.close()
	delivery.poison = poison
	beat := newBeat(c, log)
	defer beat.close()
	renew := renewals{c: c}
	p := pipeline.Pipeline{
		Open: func(ctx context.Context, stored offset.Offset) (binlog.Source, error) {
			from, err := begin(c, stored)
			if err != nil {
				return nil, err
			}
			source, err := s.open(ctx, from)
			return source, renew.opened(err)
		},
		Deliver:       delivery.open,
		DeliverFirst:  c.ExactlyOnce != nil,
		Transient:     renew.transient,
		Withdrawn:     kafka.Withdrawn,
		May:           may,
		SchemaChange:  s.changed,
		Schema:        regs.resolve,
		Emitter:       em,
		Store:         delivery.loopStore(store),
		Key:           key,
		Heartbeat:     c.Heartbeats.Interval,
		Beat:          beat.run,
		SkipRows:      skipRows(c, log),
		Poison:        poison.rows(),
		MaxRetries:    c.MaxRetries,
		FlushInterval: w.FlushInterval,
		FlushTimeout:  w.FlushTimeout,
		Log:           log,
	}
	if err := p.Run(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return errors.New("the binlog stream ended, though nobody stopped it and it reported no fault: this is a fault in tidemark; start it again, it goes on from the stored offset")
}

// skipRows is what event.processing.failure.handling.mode wants for rows that cannot be written; nil: the stream stops.
func skipRows(c *config.Connector, log *zap.Logger) func(error) {
	switch c.Unprocessable {
	case config.Warn:
		return func(err error) {
			log.Warn("a row is left out, as event.processing.failure.handling.mode=warn asks", zap.Error(err))
		}
	case config.Skip:
		said := false
		return func(err error) {
			if !said {
				said = true
				log.Warn("a row is left out, as event.processing.failure.handling.mode=skip asks; others like it are not reported", zap.Error(err))
			}
		}
	}
	return nil
}

// skipTables is what inconsistent.schema.handling.mode wants for rows of tables that are not known; nil: the stream stops.
func skipTables(c *config.Connector, log *zap.Logger) func(database, table string, err error) {
	if c.UnknownTables == config.Fail {
		return nil
	}
	told := map[string]bool{}
	return func(database, table string, err error) {
		if name := database + "." + table; c.UnknownTables == config.Warn && !told[name] || len(told) == 0 {
			told[name] = true
			log.Warn("rows of a table that is not known are left out, as inconsistent.schema.handling.mode asks", zap.String("mode", string(c.UnknownTables)),
				zap.String("table", name), zap.Error(err))
		}
	}
}

// transient says whether waiting can heal an error.
func transient(err error) bool { return server.Transient(err) || kafka.Transient(err) }

// begin says where the stream starts: at the stored offset if there is one, else where the configuration says.
func begin(c *config.Connector, stored offset.Offset) (binlog.Start, error) {
	if err := resumable(c, stored); err != nil {
		return binlog.Start{}, err
	}
	start, err := c.Begin(!stored.IsZero())
	if err != nil {
		return binlog.Start{}, err
	}
	if !stored.IsZero() {
		return binlog.Start{Offset: &stored}, nil
	}
	return startOf(start)
}

// resumable refuses an offset that lies inside a snapshot.
func resumable(c *config.Connector, stored offset.Offset) error {
	if snapshot, ok := stored.Member("snapshot"); ok && snapshot != "false" && snapshot != "null" {
		return fmt.Errorf("the stored offset of %s lies inside a snapshot that Debezium has not finished (\"snapshot\":%s): the rest of the snapshot would be missing. "+
			"Snapshots are not built yet: run the Debezium connector until its snapshot is done, stop it, and start tidemark again", c.Name, snapshot)
	}
	for _, m := range stored.Extra {
		if strings.HasPrefix(m.Name, "incremental_snapshot_") {
			return fmt.Errorf("the stored offset of %s lies inside an incremental snapshot (it has the member %s): the rest of the snapshot would be missing. "+
				"Snapshots are not built yet: let Debezium finish it or send it the signal stop-snapshot, stop it, and start tidemark again", c.Name, m.Name)
		}
	}
	return nil
}
