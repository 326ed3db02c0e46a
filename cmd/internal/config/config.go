// Package config turns connector and worker files into checked, typed settings.
//
// There is one table of properties ([Properties]). Parsing, validation and docs/properties.md come from it, so a key
// cannot be read without being documented, nor documented without being checked. Names are Debezium's and Kafka
// Connect's own; what is ours alone is marked so in the table.
//
// A key that is not built yet stops the start when its value would change events, delivery or security. A key without
// meaning here is accepted. An unknown key is warned about with the nearest known name.
package config

import (
	"crypto/tls"
	"time"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Config is all that one process runs: a worker and its connectors. It is not changed after [Load] returned it.
type Config struct {
	Worker     *Worker
	Connectors []*Connector // in the order of the files; names are unique
	Warnings   []Warning    // to be logged once at the start
}

// Options say how strictly files are read.
type Options struct {
	// Lenient turns the refusal of a key that is not built yet into a warning. Keys that security hangs on, malformed
	// values and a snapshot.mode that needs a snapshot stay refused.
	Lenient bool
	// Registry says that --registry replaces the converters of keys and values, so that what is wrong with them as such, or with
	// where their registry is, becomes a warning. What of their settings stays in use stays checked: see [Connector.UseAvro].
	Registry bool
	// Offline is for reading binlog files: host, user and the other connection keys are not required.
	Offline bool
}

// Warning is something about a key that does not stop the start.
type Warning struct {
	File string // file that the key is in; "" for a URL
	Key  string
	Text string // a sentence that does not repeat the key
}

// String is the warning in one line.
func (w Warning) String() string { return place(w.File, w.Key) + ": " + w.Text }

// KeyError is one fault of a configuration. Load returns all of them joined; errors.As finds the first.
type KeyError struct {
	File string // file that the key is in or is missing from; "" for a URL
	Key  string // "" when the file as a whole cannot be read
	Text string // what is wrong and what to do; values of secret keys never appear in it
}

// Error is the fault in one line.
func (e *KeyError) Error() string { return place(e.File, e.Key) + ": " + e.Text }

func place(file, key string) string {
	switch {
	case file == "":
		return key
	case key == "":
		return file
	}
	return file + ": " + key
}

// Worker is what Kafka Connect calls a worker: what all connectors of a process share.
type Worker struct {
	Bootstrap string // bootstrap.servers as written: host:port, separated by commas
	GroupID   string // group.id; "" when it is not set

	// Where offsets are kept: exactly one of the two is set.
	OffsetFile  string
	OffsetTopic *OffsetTopic

	FlushInterval time.Duration // between two saves of an offset; 1 s when offset.flush.interval.ms is not set
	FlushTimeout  time.Duration // how long a stop waits for acknowledgements

	StandbySession time.Duration // after how much silence of one process another takes over; 10 s when standby.session.timeout.ms is not set

	// Client holds the worker's own Kafka client settings (bootstrap.servers, security.protocol, sasl.*, ssl.*,
	// client.id …) by their Java names: for reading and writing the offsets topic.
	Client map[string]string
	// ClientReread is Client with what config providers give now; nil when no value asks one. It reads files.
	ClientReread func() (map[string]string, error)
}

// OffsetTopic is the compacted topic that offsets are kept in.
type OffsetTopic struct {
	Name              string
	Partitions        int32             // for its creation; -1: the broker's default
	ReplicationFactor int16             // for its creation; -1: the broker's default
	Config            map[string]string // topic settings for its creation, by their broker names
}

// SSLMode says whether the connection to MySQL is encrypted.
type SSLMode string

// The SSL modes. With authorities to trust (database.ssl.truststore) the certificate must be from one of them in all modes but
// the first.
const (
	SSLDisabled       SSLMode = "disabled"
	SSLPreferred      SSLMode = "preferred"       // when the server offers it
	SSLRequired       SSLMode = "required"        // always
	SSLVerifyCA       SSLMode = "verify_ca"       // the certificate must be from a trusted authority
	SSLVerifyIdentity SSLMode = "verify_identity" // and for the server's name
)

// Connector is one connector's settings.
type Connector struct {
	Name string // first item of the offset's key
	File string // where it was read from; "" for a URL

	Host           string
	Port           uint16
	User           string
	Password       Secret
	ServerID       uint32 // unique among all replicas of the server
	SSL            SSLMode
	ConnectTimeout time.Duration // for reaching the server and logging in; 0: the client's default
	Heartbeat      time.Duration // how often the server shows that the connection lives; 0: the client's default
	// AllowPublicKeyRetrieval lets the password be sent over a plain connection, encrypted with a key that the server
	// gives and nobody vouches for.
	AllowPublicKeyRetrieval bool
	// ReadPassword gives the password anew, when a config provider has it; else nil. It reads files.
	ReadPassword func() (string, error)
	// TLS reads the stores of database.ssl.keystore and .truststore anew: RootCAs and Certificates. Nil: there are none.
	TLS               func() (*tls.Config, error)
	CleartextPassword bool   // the password itself may be sent to a server whose certificate is right
	PublicKeyFile     string // the server's public key; "": not known

	// Fingerprint is the same for configurations with the same properties, secrets aside.
	Fingerprint string

	Prefix string  // topic.prefix: logical server name
	Filter *Filter // which tables are captured

	MariaDB           bool     // connector.class is that of MariaDB
	InitialStatements []string // database.initial.statements, run on every connection but the binlog's

	// GTIDSources says which servers' transactions count; nil: all (gtid.source.*). GTIDDML leaves the rows of the others
	// out. IgnoreGTIDs restarts by file and position.
	GTIDSources func(uuid string) bool
	GTIDDML     bool
	IgnoreGTIDs bool

	MostTables     int  // guardrail.collections.max; 0: no limit
	MostTablesFail bool // whether more of them stop the start

	SnapshotMode string // lower case; see Begin
	Start        Start  // start.position; where to begin without a stored offset

	Key, Value      Converter
	HeaderConverter HeaderConverter
	Tombstones      bool // a null record after each delete
	ExtendedHeaders bool // the __debezium.context.* headers

	Modes          schema.Modes
	Columns        func(database, table, column string) bool   // which columns are in the events, besides those of the key; nil: all
	OnlyColumns    bool                                        // Columns is column.include.list, beside which there can be no column.exclude.list
	Keys           []func(database, table, column string) bool // message.key.columns; nil: the table's own key
	SkipOperations map[string]bool                             // c, u, d, t
	SkipUnchanged  bool                                        // updates of columns that are not in the events give none
	SchemaChanges  bool                                        // DDL gives events
	IncludeQuery   bool                                        // statement texts in the source block
	Transactions   bool                                        // BEGIN and END records and the transaction block
	Placeholder    string                                      // what stands for a value that the binlog does not have
	SchemaNames    string                                      // schema.name.adjustment.mode: none, avro, avro_unicode
	FieldNames     string                                      // field.name.adjustment.mode
	Naming         Naming
	Heartbeats     Heartbeats
	History        History
	Unprocessable  Failure    // event.processing.failure.handling.mode
	UnknownTables  Failure    // inconsistent.schema.handling.mode
	Tolerance      *Tolerance // errors.tolerance=all; nil: what cannot be written stops the stream
	MaxRetries     int        // attempts after an interruption; -1: without end

	// Producer holds the settings of the Kafka client that writes the records, by their Java names: the worker's
	// producer.* under the connector's producer.override.*, with bootstrap.servers and client.id. Nil without a worker.
	Producer map[string]string
	// ProducerReread is Producer with what config providers give now; nil when no value asks one. It reads files.
	ProducerReread func() (map[string]string, error)
	// TopicCreation says how missing topics are made; nil leaves it to the broker.
	TopicCreation *TopicCreation
	TopicGroups   []TopicGroup // the first that takes a topic counts, before TopicCreation

	OffsetsTopic string // offsets.storage.topic: the connector's own offsets topic; "": the worker's place

	// TransactionalID is <group.id>-<name>-0; "" without group.id.
	TransactionalID string
	ExactlyOnce     *ExactlyOnce // nil: delivery is at least once
}

// ExactlyOnce says how the Kafka transactions of a connector are made.
type ExactlyOnce struct {
	Boundary string        // transaction.boundary: poll, interval, connector or source
	Interval time.Duration // of interval
	Timeout  time.Duration // after which the cluster ends a transaction by itself
}

// Converter says how a key or value becomes bytes.
type Converter struct {
	// Of JSON.
	Schemas                bool // {"schema":…,"payload":…} instead of the payload alone
	ReplaceNullWithDefault bool // a NULL in a column with a default is written as that default
	NumericDecimals        bool // decimals as JSON numbers instead of base64

	Avro *Avro // nil: JSON. Connectors may share it, so it is not to be changed
}

// HeaderConverter says how the headers of records become bytes.
type HeaderConverter struct {
	Class string // SimpleHeaderConverter, StringConverter or JsonConverter
	JSON  Converter
}

// TopicCreation is how Kafka Connect makes a topic before it writes the first record to it.
type TopicCreation struct {
	Partitions        int32             // -1: the broker's default
	ReplicationFactor int16             // -1: the broker's default
	Config            map[string]string // topic settings by their broker names
}
