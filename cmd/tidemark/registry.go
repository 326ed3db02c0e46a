package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/registry"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/avro"
)

// registries are the schema registries of a connector's converters; nil is that of a connector without any.
type registries struct {
	key, value *registry.Client // the same one if both converters say the same; nil: the converter needs none
	altered    map[schema.TableName]alteration
	looked     bool            // the lookups of the start have been begun …
	life       context.Context // … which go on until close, whatever becomes of the attempt that began them
	end        context.CancelFunc
	lookupTime time.Duration
	log        *zap.Logger

	onlyColumns, ownKeys bool // the connector has a column.include.list, message.key.columns: for advice
}

// alteration is the last DDL statement that changed a table, as far as it is known, and what the table is since.
type alteration struct {
	where, statement string
	def              *schema.Definition
}

// openRegistries makes the clients of a connector's registries. It asks them nothing. texts says that records are to be read
// here, too.
func openRegistries(c *config.Connector, texts bool, log *zap.Logger) (*registries, error) {
	r := &registries{log: log, lookupTime: lookupTime, onlyColumns: c.OnlyColumns, ownKeys: len(c.Keys) > 0}
	r.life, r.end = context.WithCancel(context.Background())
	var err error
	if c.Key.Avro != nil {
		if r.key, err = openRegistry("key.converter", c.Key.Avro, texts, log); err != nil {
			r.end()
			return nil, err
		}
	}
	switch {
	case c.Value.Avro == nil:
	case r.key != nil && reflect.DeepEqual(sameRegistry(c.Key.Avro), sameRegistry(c.Value.Avro)):
		r.value = r.key
	default:
		if r.value, err = openRegistry("value.converter", c.Value.Avro, texts, log); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

// sameRegistry is what two converters must have in common to share a client.
func sameRegistry(a *config.Avro) config.Avro {
	s := *a
	s.Strategy, s.IgnoreDefaults, s.NoMeta, s.Scrub, s.Wide, s.LoginOfURL = "", false, false, false, false, false
	return s
}

func openRegistry(converter string, a *config.Avro, texts bool, log *zap.Logger) (*registry.Client, error) {
	tls, err := a.TLSConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", converter, err)
	}
	cfg := registry.Config{
		URLs: a.URLs, User: a.User, Password: a.Password.Reveal(), Token: a.Token.Reveal(), TLS: tls, Proxy: a.Proxy,
		AutoRegister: a.AutoRegister, UseLatest: a.UseLatest, Normalize: a.Normalize,
		ConnectTimeout: a.ConnectTimeout, ReadTimeout: a.ReadTimeout,
		Group: a.Group, ApicurioKeys: a.ApicurioKeys, URLsFrom: a.URLsFrom, KeepTexts: texts, Log: log,
	}
	if a.Apicurio && !a.LikeConfluent {
		cfg.API = registry.Apicurio
		if a.ContentID {
			cfg.IDs = registry.ContentID
		}
	}
	client, err := registry.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", converter, err)
	}
	return client, nil
}

func (r *registries) close() {
	r.end()
	if r.key != nil {
		r.key.Close()
	}
	if r.value != nil && r.value != r.key {
		r.value.Close()
	}
}

// client is the registry of a record's key or value.
func (r *registries) client(key bool) *registry.Client {
	if key {
		return r.key
	}
	return r.value
}

// avroConverter is the emitter's configuration for a converter; nil for JSON. Without registries nothing can be written:
// schemas can be asked for only.
func (r *registries) avroConverter(a *config.Avro, key bool) *emitter.Avro {
	if a == nil {
		return nil
	}
	subject := registry.TopicName(key)
	switch a.Strategy {
	case "record":
		subject = registry.RecordName
	case "topic-record":
		subject = registry.TopicRecordName
	}
	converter := &emitter.Avro{Text: avro.Options{NoMeta: a.NoMeta, Scrub: a.Scrub}, Subject: subject, Wide: a.Wide, IDs: noIDs{}}
	if r != nil && r.client(key) != nil {
		converter.IDs = r.client(key)
	}
	return converter
}

// noIDs is in the place of a registry where nobody writes records.
type noIDs struct{}

func (noIDs) ID(string, string) (int64, bool) { return 0, false }

// resolve gets the id of a schema: [pipeline.Output.Schema].
func (r *registries) resolve(ctx context.Context, n *emitter.SchemaNeeded) error {
	client := r.client(n.Key)
	err := client.Resolve(ctx, registrySchema(n))
	var refused *registry.Refused
	if !errors.As(err, &refused) || !refused.Incompatible() {
		return err
	}
	return r.incompatible(ctx, n, refused)
}

func registrySchema(n *emitter.SchemaNeeded) registry.Schema {
	return registry.Schema{Subject: n.Subject, Text: n.Text, Record: n.Record, Topic: n.Topic}
}

// changed notes what a statement has changed, for messages.
func (r *registries) changed(ev *binlog.SchemaChange) {
	for i := range ev.Tables {
		r.note(&ev.Tables[i], func(*schema.StoredVersion) bool { return true })
	}
}

// note remembers the last statement of a table in the schema store that reached says holds. Of a table that is gone nothing
// is kept, and nothing of the text that the names are pieces of.
func (r *registries) note(t *schema.StoredTable, reached func(*schema.StoredVersion) bool) {
	if r == nil || r.key == nil && r.value == nil || t.Table == "" {
		return
	}
	name := schema.TableName{Database: t.Database, Table: t.Table}
	for i := range t.Versions {
		switch v := &t.Versions[i]; {
		case !reached(v):
		case v.Definition == nil:
			delete(r.altered, name)
		case v.Statement != "":
			if r.altered == nil {
				r.altered = make(map[schema.TableName]alteration)
			}
			own := schema.TableName{Database: strings.Clone(name.Database), Table: strings.Clone(name.Table)}
			r.altered[own] = alteration{fmt.Sprintf("%s:%d", v.File, v.Pos), strings.Clone(v.Statement), v.Definition}
		}
	}
}

// lookup asks in the background for the schemas of the tables that are known at the start, so that the first record of
// each does not wait for an answer. It registers nothing, and does nothing when the stream is opened again.
func (r *registries) lookup(em *emitter.Emitter, captured func(database, table string) bool, catalog *schema.Catalog) {
	if r == nil || r.key == nil && r.value == nil || r.looked {
		return
	}
	r.looked = true
	// The catalog moves on with the stream, definitions stay as they are. The texts of ten thousand tables would take seconds
	// and a hundred megabytes, so that each is made when it can be asked for.
	var tables []schema.TableName
	var definitions []*schema.Definition
	for _, database := range catalog.Databases() {
		for _, table := range catalog.Tables(database) {
			if def := catalog.Definition(database, table); def != nil {
				tables, definitions = append(tables, schema.TableName{Database: database, Table: table}), append(definitions, def)
			}
		}
	}
	ask := func(client *registry.Client, wanted func(*emitter.SchemaNeeded) bool) {
		ctx, cancel := context.WithTimeout(r.life, r.lookupTime)
		defer cancel()
		client.Lookup(ctx, func(yield func(registry.Schema) bool) {
			for i, def := range definitions {
				if ctx.Err() != nil {
					return
				}
				if !captured(tables[i].Database, tables[i].Table) {
					continue
				}
				needed, err := em.Needed(def)
				if err != nil {
					continue // its first row says it, with a position
				}
				for i := range needed {
					if wanted(&needed[i]) && !yield(registrySchema(&needed[i])) {
						return
					}
				}
			}
		})
	}
	if r.key == r.value {
		go ask(r.key, func(*emitter.SchemaNeeded) bool { return true })
		return
	}
	for key, client := range map[bool]*registry.Client{true: r.key, false: r.value} {
		if client != nil {
			go ask(client, func(n *emitter.SchemaNeeded) bool { return n.Key == key })
		}
	}
}

// lookupTime is how long the lookups at a start may take: a registry that hangs is none that helps.
const lookupTime = 30 * time.Second

// text makes text of a connector's keys or values; nil if they are text.
func (r *registries) text(c *config.Connector, key bool) *avroText {
	converter := c.Value.Avro
	if key {
		converter = c.Key.Avro
	}
	if converter == nil {
		return nil
	}
	return newAvroText(r.client(key), converter.Wide)
}
