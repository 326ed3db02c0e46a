package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/term"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/avro"
)

// schemaFlags are the flags of schema.
type schemaFlags struct {
	config     string
	format     schemaFormat
	key, value bool // what is printed; neither: both
	pretty     bool
	lenient    bool
}

// schemaFormat is how a schema is written.
type schemaFormat string

const (
	asConverter   schemaFormat = "" // as the converter that writes the records
	connectSchema schemaFormat = "connect"
	avroSchema    schemaFormat = "avro"
)

func schemaCommand() *cobra.Command {
	var f schemaFlags
	cmd := &cobra.Command{
		Use:   "schema mysql|mariadb://user[:password]@host[:port]/[database] TABLE… | --config connector.json TABLE…",
		Short: "Print the key and value schemas of tables of a server, as Connect JSON or Avro",
		Long: `schema prints the schemas that the records of tables have as the tables are now, one JSON object for each table: topic,
schema of the key (null without one), schema of the value, and of schemas in Avro the subject in the registry.

It asks the server for the definitions only. It needs no rows, no binlog, no Kafka and no registry, and registers nothing.
TABLE is database.table, or the table alone if one captured table has that name. The schemas of a table that the connector
does not capture are printed with a warning; where a table has none, those of the others are, and the exit code is 1.

Of a table that was created or altered while a connector streams, Debezium keeps what the statement says, and so do run and
tail: BOOL is a boolean then, while the server prints TINYINT(1) for it, which schema has as an int16.`,
		Example: `  tidemark schema 'mysql://tidemark@db/shop' orders              (the password from TIDEMARK_PASSWORD)
  tidemark schema --config connector.json shop.orders shop.customers --pretty
  tidemark schema --config connector.json shop.orders --format avro --value | jq .value.schema`,
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := logger(cmd)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("pretty") {
				f.pretty = term.IsTerminal(int(os.Stdout.Fd()))
			}
			return printSchemas(cmd.Context(), args, f, log, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "a connector's file, as for run; its name, snapshot.mode and server id are not used")
	flags.StringVar((*string)(&f.format), "format", "", "connect or avro, whatever the converters are (default: avro for an Avro converter, else connect)")
	flags.BoolVar(&f.key, "key", false, "print the key's schema only")
	flags.BoolVar(&f.value, "value", false, "print the value's schema only")
	flags.BoolVar(&f.pretty, "pretty", false, "indent (default on a terminal)")
	flags.BoolVar(&f.lenient, "lenient", false, "warn about keys that are not built yet instead of refusing them")
	return cmd
}

// printSchemas writes the schemas of args' tables to out. A table that has none does not keep those of the others from being
// printed; that it has none is the error.
func printSchemas(ctx context.Context, args []string, f schemaFlags, log *zap.Logger, out io.Writer) error {
	connector, names, err := schemaConfig(args, &f, log)
	if err != nil {
		return err
	}
	if f.format == avroSchema && (connector.Key.Avro == nil || connector.Value.Avro == nil) {
		connector.UseAvro("http://unused.invalid") // for its settings: no registry is asked for anything
	}
	em, err := newEmitter(connector, nil, log)
	if err != nil {
		return err
	}
	definitions, bad, err := definitionsOf(ctx, connector, names, log)
	if err != nil {
		return err
	}
	return errors.Join(writeDefinitions(em, connector, definitions, &f, out), bad)
}

// writeDefinitions writes the schemas of tables that have some, and returns why others have none.
func writeDefinitions(em *emitter.Emitter, connector *config.Connector, definitions []*schema.Definition, f *schemaFlags, out io.Writer) error {
	var all []tableText
	var bad []error
	for _, def := range definitions {
		text, err := newTableText(em, connector, def, f)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		all = append(all, text)
	}
	return errors.Join(writeTables(out, all, f.pretty), errors.Join(bad...))
}

// writeTables writes one object for each table.
func writeTables(out io.Writer, tables []tableText, pretty bool) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false) // so that the texts of schemas stay as they are
	if pretty {
		e.SetIndent("", "  ")
	}
	for i := range tables {
		if err := e.Encode(&tables[i]); err != nil {
			return err
		}
	}
	return nil
}

// schemaConfig reads the connector from args' URL or the flags' file, and returns the tables that args name.
func schemaConfig(args []string, f *schemaFlags, log *zap.Logger) (*config.Connector, []string, error) {
	var urls, tables []string
	for _, arg := range args {
		if strings.Contains(arg, "://") {
			urls = append(urls, arg)
		} else {
			tables = append(tables, arg)
		}
	}
	switch f.format {
	case asConverter, connectSchema, avroSchema:
	default:
		return nil, nil, fmt.Errorf("--format %s is neither connect nor avro", f.format)
	}
	var connector *config.Connector
	var warnings []config.Warning
	var err error
	switch {
	case f.config != "" && len(urls) > 0:
		return nil, nil, errors.New("a URL and --config: give one of the two")
	case len(urls) > 1:
		return nil, nil, errors.New("more than one URL: give one")
	case f.config == "" && len(urls) == 0:
		return nil, nil, errors.New("no server to ask: give mysql://user@host/database (mariadb:// for MariaDB) or --config connector.json before the tables")
	case len(tables) == 0:
		return nil, nil, errors.New("no table: give at least one, as database.table")
	case f.config != "":
		connector, warnings, err = config.LoadTail(f.config, config.Options{Lenient: f.lenient})
	default:
		connector, warnings, err = config.ParseURL(urls[0], os.Getenv)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, w := range warnings {
		log.Warn(w.String())
	}
	return connector, tables, nil
}

// definitionsOf asks the connector's server for the tables of these names, in their order. Bad says of which there is no
// definition.
func definitionsOf(ctx context.Context, c *config.Connector, names []string, log *zap.Logger) (definitions []*schema.Definition, bad, err error) {
	conn, err := server.Connect(ctx, serverConfig(c, log))
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	info, err := conn.Info(ctx)
	if err != nil {
		return nil, nil, err
	}
	if info.MariaDB() != c.MariaDB {
		return nil, nil, otherKind(c, conn.Address(), info)
	}
	opts := catalogOptions(c)
	opts.IgnoreCase, opts.Version = info.LowerCaseNames != 0, info.VersionNumber()
	tables, err := conn.Tables(ctx, func(string, string) bool { return true })
	if err != nil {
		return nil, nil, err
	}
	finder := tableFinder{
		tables: tables, filter: c.Filter, ignoreCase: opts.IgnoreCase,
		show: func(database, table string) (string, error) { return conn.ShowCreate(ctx, database, table) },
	}
	catalog := schema.NewCatalog(opts)
	var faults []error
	for _, name := range names {
		id, sql, err := finder.definition(name)
		if err != nil && (ctx.Err() != nil || server.Transient(err)) {
			return nil, nil, err // the server cannot be asked
		}
		var def *schema.Definition
		if err == nil {
			def, err = catalog.ReadCreateTable(id.Database, sql)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", conn.Address(), err))
			continue
		}
		if why := finder.notCaptured(id); why != "" {
			log.Warn(why+": no records have its schemas", zap.Stringer("table", id))
		}
		definitions = append(definitions, def)
	}
	return definitions, errors.Join(faults...), nil
}

// otherKind is the error for a server that is not of the kind that the connector is for.
func otherKind(c *config.Connector, address string, info *server.Info) error {
	if c.File == "" {
		scheme := map[bool]string{true: "mariadb", false: "mysql"}
		return fmt.Errorf("the server at %s is a %s (%s): begin the URL with %s:// instead of %s://", address, info.Flavor, info.Version, scheme[info.MariaDB()], scheme[c.MariaDB])
	}
	return fmt.Errorf("connector.class is that of another kind of server: the server at %s is a %s (%s); set connector.class to %s",
		address, info.Flavor, info.Version, config.ClassOf(info.MariaDB()))
}

// tableText is what is printed of a table.
type tableText struct {
	Table string `json:"table"`
	Topic string `json:"topic"`
	Key   any    `json:"key,omitempty"` // nil: it is not wanted; noSchema; a schemaText
	Value any    `json:"value,omitempty"`
}

// noSchema stands for the schema of a key that records do not have.
var noSchema = json.RawMessage("null")

// schemaText is what is printed of a schema.
type schemaText struct {
	Subject string          `json:"subject,omitempty"` // of Avro
	Schema  json.RawMessage `json:"schema"`
}

func newTableText(em *emitter.Emitter, c *config.Connector, def *schema.Definition, f *schemaFlags) (tableText, error) {
	schemas, err := em.TableSchemas(def)
	if err != nil {
		return tableText{}, err
	}
	t := tableText{Table: def.Database + "." + def.Name, Topic: schemas.Topic}
	var needed []emitter.SchemaNeeded // nil: not asked yet
	for _, side := range []struct {
		name      string
		key       bool
		out       *any
		wanted    bool
		typ       *schema.Type
		converter *config.Converter
	}{
		{"key", true, &t.Key, f.key || !f.value, schemas.Key, &c.Key},
		{"value", false, &t.Value, f.value || !f.key, schemas.Value, &c.Value},
	} {
		switch {
		case !side.wanted:
			continue
		case side.typ == nil:
			*side.out = noSchema
			continue
		}
		var text schemaText
		if f.format == avroSchema || f.format == asConverter && side.converter.Avro != nil {
			if needed == nil {
				if needed, err = em.Needed(def); err != nil {
					return t, err
				}
			}
			i := slices.IndexFunc(needed, func(n emitter.SchemaNeeded) bool { return n.Key == side.key })
			if i < 0 {
				return t, fmt.Errorf("table %s: the emitter has no schema of its %s in Avro: this is a fault in tidemark", t.Table, side.name)
			}
			if err := avro.Check(needed[i].Text); err != nil {
				return t, fmt.Errorf("table %s: the schema of its %s is none that Avro takes: %w", t.Table, side.name, err)
			}
			text.Subject, text.Schema = needed[i].Subject, json.RawMessage(needed[i].Text)
		} else {
			converter := emitter.Converter{NumericDecimals: side.converter.NumericDecimals}
			if text.Schema, err = converter.AppendConnectSchema(nil, side.typ); err != nil {
				return t, fmt.Errorf("table %s: the schema of its %s: %w", t.Table, side.name, err)
			}
		}
		*side.out = text
	}
	return t, nil
}
