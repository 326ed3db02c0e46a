package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/term"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/cmd/internal/pipeline"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/schema"
)

// tailFlags are the flags of tail.
type tailFlags struct {
	config  string
	binlog  []string
	history string
	from    string
	records bool
	pretty  bool
	schemas bool
	lenient bool

	registry registryFlag
}

func tailCommand() *cobra.Command {
	var f tailFlags
	cmd := &cobra.Command{
		Use:   "tail mysql|mariadb://user[:password]@host[:port]/[database][?tables=a,b] | --config connector.json [--binlog FILE…]",
		Short: "Print the change events of a server or of binlog files, without Kafka and without state",
		Long: `tail prints the events that run would write to Kafka. It stores nothing and needs no Kafka.

From a server it reads on until it is interrupted, from binlog files until their end. On a terminal events are indented and
without schemas; otherwise each line is the value of one record, the exact text that Kafka would get, or with --records one
object with topic, key, value, headers and source offset.

Records in Avro are printed in Avro's JSON encoding, with --records their exact bytes (key_b64, value_b64) and schema ids
beside it, and with --records --schemas each schema on a line of its own before the first record that has it. Their schemas
are registered nowhere but in an embedded registry, so that the ids are not those of the registry that the configuration
names; give --registry URL to register them in a real one.`,
		Example: `  tidemark tail 'mysql://tidemark@db/shop?tables=orders'        (the password from TIDEMARK_PASSWORD)
  tidemark tail --config connector.json --from oldest --records
  tidemark tail --config connector.json --binlog mysql-bin.000007 --binlog mysql-bin.000008`,
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := logger(cmd)
			if err != nil {
				return err
			}
			terminal := term.IsTerminal(int(os.Stdout.Fd()))
			if !cmd.Flags().Changed("pretty") {
				f.pretty = terminal && !f.records
			}
			if cmd.Flags().Changed("from") && f.from == "" {
				return errors.New("--from is empty; give oldest, now, FILE:POS, a GTID set or the JSON of an offset")
			}
			if f.pretty && f.records {
				return errors.New("--pretty and --records exclude each other")
			}
			override := cmd.Flags().Changed("schemas") || f.pretty
			return tail(cmd.Context(), args, f, override, log, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "a connector's file, as for run; its name, snapshot.mode and server id are not used")
	flags.StringArrayVar(&f.binlog, "binlog", nil, "read this binlog file instead of a server; repeat it for several, or give more as arguments, in their order")
	flags.StringVar(&f.history, "schema-history", "", "with --binlog: Debezium's schema history, one record a line, for what the binlog does not say of tables")
	flags.StringVar(&f.from, "from", "", "oldest, now, FILE:POS (FILE is a base name), a GTID set or the JSON of a stored offset (default: now; with --binlog: oldest)")
	flags.BoolVar(&f.records, "records", false, "print one JSON object a record: topic, key, value, headers, offset")
	flags.BoolVar(&f.pretty, "pretty", false, "indent events (default on a terminal)")
	flags.BoolVar(&f.schemas, "schemas", false, "print schemas or not, whatever the converters say (default on a terminal: not)")
	f.registry.add(cmd, " (default: embedded, when the converters are Avro)")
	flags.BoolVar(&f.lenient, "lenient", false, "warn about keys that are not built yet instead of refusing them")
	return cmd
}

// tail streams the events of args' URL or of the flags' files to out.
func tail(ctx context.Context, args []string, f tailFlags, overrideSchemas bool, log *zap.Logger, out io.Writer) error {
	connector, files, err := tailConfig(args, f, log)
	if err != nil {
		return err
	}
	if overrideSchemas {
		connector.Key.Schemas, connector.Value.Schemas = f.schemas, f.schemas
	}
	regs, closeRegistries, err := tailRegistries(connector, &f.registry, log)
	if err != nil {
		return err
	}
	defer closeRegistries()
	em, err := newEmitter(connector, regs, log)
	if err != nil {
		return err
	}
	source, err := tailSource(ctx, connector, files, f, em, log)
	if err != nil {
		return err
	}
	defer source.Close()
	if len(files) == 0 {
		log.Info("reading the binlog", zap.Stringer("from", source.Start()))
	}
	print := printer{schemas: overrideSchemas && f.schemas, key: regs.text(connector, true), value: regs.text(connector, false)}
	switch {
	case f.records:
		print.form = printRecords
	case f.pretty:
		print.form = printPretty
	}
	w := bufio.NewWriterSize(out, 64<<10)
	em.Resume(source.Start())
	printed := &printed{printer: print, out: w}
	history := printHistory(connector, f.records, em, printed)
	changed := func(ctx context.Context, ev *binlog.SchemaChange) error {
		regs.changed(ev)
		return history(ctx, ev)
	}
	output := &pipeline.Output{
		Emitter: em, Delivery: printed, Heartbeat: connector.Heartbeats.Interval,
		SkipRows: skipRows(connector, log), SchemaChange: changed, Schema: regs.resolve,
	}
	err = printEvents(ctx, source, output)
	if ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())) {
		err = nil // interrupted, as it is meant to end
	}
	return errors.Join(err, w.Flush())
}

// tailRegistries opens the flag's registry in place of those that the configuration names: for a look at events nothing is
// to be registered there. What it returns closes it.
func tailRegistries(c *config.Connector, flag *registryFlag, log *zap.Logger) (*registries, func(), error) {
	unasked := !flag.given() && (c.Key.Avro != nil || c.Value.Avro != nil)
	if unasked {
		flag = &registryFlag{value: "embedded"}
	}
	url, closeEmbedded, err := flag.open(log)
	if err != nil {
		return nil, nil, err
	}
	if unasked {
		c.Key.Avro, c.Value.Avro = registeredAt(c.Key.Avro, url), registeredAt(c.Value.Avro, url)
	} else {
		flag.use(c, url)
	}
	regs, err := openRegistries(c, true, log)
	if err != nil {
		closeEmbedded()
		return nil, nil, err
	}
	return regs, func() { regs.close(); closeEmbedded() }, nil
}

// tailConfig reads the connector from a URL or a file, and returns the binlog files to read.
func tailConfig(args []string, f tailFlags, log *zap.Logger) (*config.Connector, []string, error) {
	files := f.binlog
	if len(files) > 0 {
		files = slices.Concat(files, args)
	}
	var connector *config.Connector
	var warnings []config.Warning
	var err error
	switch {
	case slices.ContainsFunc(files, func(name string) bool {
		return strings.HasPrefix(name, "mysql://") || strings.HasPrefix(name, "mariadb://")
	}):
		return nil, nil, errors.New("a URL and --binlog: give one of the two; the settings for binlog files come from --config")
	case f.config != "" && len(files) == 0 && len(args) > 0:
		return nil, nil, errors.New("a URL and --config: give one of the two")
	case len(files) == 0 && len(args) > 1:
		return nil, nil, errors.New("more than one URL: give one")
	case f.config != "":
		connector, warnings, err = config.LoadTail(f.config, config.Options{Lenient: f.lenient, Registry: f.registry.given(), Offline: len(files) > 0})
	case len(files) > 0:
		connector, warnings, err = config.ParseURL("mysql://nobody@offline/", func(string) string { return "" })
	case len(args) == 1:
		connector, warnings, err = config.ParseURL(args[0], os.Getenv)
	default:
		return nil, nil, errors.New("nothing to read: give mysql://user@host/database, --config connector.json or --binlog FILE")
	}
	if err != nil {
		return nil, nil, err
	}
	for _, w := range warnings {
		log.Warn(w.String())
	}
	if f.history != "" && len(files) == 0 {
		return nil, nil, errors.New("--schema-history is read together with --binlog only")
	}
	return connector, files, nil
}

// tailSource opens the files, or the server.
func tailSource(ctx context.Context, connector *config.Connector, files []string, f tailFlags, em *emitter.Emitter, log *zap.Logger) (binlog.Source, error) {
	from := connector.Start
	if f.from != "" {
		start, err := config.ParseStart(f.from)
		if err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
		from = start
	} else if len(files) > 0 {
		from = config.Start{Mode: config.Oldest}
	}
	start, err := startOf(from)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	if len(files) == 0 {
		return (&schemas{c: connector, emitter: em, log: log}).open(ctx, start)
	}
	cfg := readerConfig(connector, start, log)
	cfg.Catalog = schema.NewCatalog(catalogOptions(connector))
	if f.history != "" {
		if cfg.History, err = readHistory(f.history); err != nil {
			return nil, err
		}
	}
	source, err := binlog.OpenFiles(ctx, cfg, files, start)
	if err != nil {
		return nil, err
	}
	if err := checkTables(connector, em, cfg.Catalog); err != nil { // those that the binlog has told of before the start
		return nil, errors.Join(err, source.Close())
	}
	return source, nil
}

func readHistory(name string) ([]schema.HistoryEntry, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--schema-history: %w", err)
	}
	defer file.Close()
	entries, err := schema.ReadHistory(file)
	if err != nil {
		return nil, fmt.Errorf("--schema-history %s: %w", name, err)
	}
	return entries, nil
}

// printEvents prints the records of every event until the source ends.
func printEvents(ctx context.Context, source binlog.Source, out *pipeline.Output) error {
	for {
		event, err := source.Read(ctx)
		if err == io.EOF { // bare: within another error it is a connection that the server closed
			return nil
		}
		if err == nil {
			err = out.Event(ctx, event)
		}
		if err != nil {
			return err
		}
	}
}
