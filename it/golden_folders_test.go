package it

// goldenFolder is a folder of captures and how it is compared.
type goldenFolder struct {
	name     string
	belongs  string // it is not compared here: to which part it belongs
	replayed bool   // it holds offsets to restart from: see golden_replay_test.go
	least    int    // so many records are compared at least
	// Titles of the lines of docs/debezium-differences.md about what follows.
	titles []string

	// The whole stream as it has to be, where Debezium stopped or lost rows.
	rows         []rightRow
	wrongRecords []string // records of Debezium, "table key", that are wrong as a whole
	stops        []string // it stops after rows, and says this (regular expressions)

	// Rows of XA transactions, as "table key", and where they belong: xaRolledBack, xaAtOnce, or the record ("table key", or the
	// status and key of transaction metadata) that comes before them at XA COMMIT.
	xa map[string]string

	heartbeats int // at least so many
}

const (
	xaRolledBack = "rolled back"
	xaAtOnce     = "at once"
)

const (
	ofSnapshots  = "snapshot records belong to snapshots"
	ofAvro       = "TestGoldenAvro compares it"
	ofTransforms = "transforms belong to transforms"
)

// imageStop is what is said when a row image lacks a column for which nothing can stand.
var imageStop = []string{`inventory\.t\b`, `binlog_row_image`, `(?i)thread`, `SET (GLOBAL|PERSIST|SESSION) binlog_row_image`}

const unavailable = `"__debezium_unavailable_value"`

var sentinelRow = rightRow{"sentinel", "c", `{"id":999999}`, "", `{"id":999999}`}

// goldenFolders are all folders of captures.
var goldenFolders = []goldenFolder{
	{name: "basics", least: 100},
	{name: "basics-file-mode", least: 100},
	{name: "basics-query", least: 100},
	{name: "compressed", least: 50, xa: map[string]string{`orders {"id":1010}`: xaAtOnce}, titles: []string{"rows of XA transactions"}},
	{name: "ddl", least: 140},
	{
		name: "ddl-skip-unparseable", least: 6, titles: []string{"DDL under ANSI_QUOTES"},
		rows: []rightRow{
			{"t", "c", `{"id":1}`, "", `{"id":1,"v":"before"}`},
			{"t", "c", `{"id":2}`, "", `{"id":2,"v":"after"}`},
			{"ansi", "ddl", `{"databaseName":"inventory"}`, "", `CREATE TABLE "ansi" ("id" INT NOT NULL PRIMARY KEY, "txt" VARCHAR(10) DEFAULT 'd')`},
			{"ansi", "c", `{"id":1}`, "", `{"id":1,"txt":"q"}`},
			sentinelRow,
		},
		wrongRecords: []string{` {"databaseName":"inventory"}`}, // the skipped CREATE, of which it knows no table
	},
	{name: "exactly-once", least: 5},
	{
		name: "fail-ddl-ansi-quotes", least: 6, titles: []string{"DDL under ANSI_QUOTES"},
		rows: ansiRows,
	},
	{
		name: "fail-ddl-skip-row-size", least: 6, titles: []string{"DDL under ANSI_QUOTES"},
		rows: ansiRows,
	},
	{
		name: "fail-invalid-date", titles: []string{"dates that are not in the calendar"},
		rows: []rightRow{
			{"t", "c", `{"id":1}`, "", `{"id":1,"d":18686,"dt":1614474123000}`},
			{"t", "c", `{"id":2}`, "", `{"id":2,"d":null,"dt":null}`},
			{"t", "c", `{"id":3}`, "", `{"id":3,"d":null,"dt":null}`},
			sentinelRow,
		},
	},
	{name: "fail-names-avro-collision", belongs: "the task stops before any row: TestLiveProtocol/two_columns_with_one_adjusted_name"},
	{name: "fail-row-image-minimal-server", belongs: "it needs a server: TestRowImageOfTheServer"},
	{
		name: "fail-row-image-noblob", least: 7, titles: []string{"row images without all columns"},
		rows: noblobRows,
	},
	{name: "fail-row-image-noblob-server", belongs: "it needs a server: TestRowImageOfTheServer"},
	{name: "fail-snapshot-zerofill", belongs: "the task stops in the snapshot, and no row comes after it"},
	{
		name: "fail-time-connect", titles: []string{"TIME below 0 or above 24:00:00"},
		rows: []rightRow{
			{"t", "c", `{"id":1}`, "", `{"id":1,"t":45296000,"tn":45296000}`},
			{"t", "c", `{"id":2}`, "", `{"id":2,"t":null,"tn":0}`},
			{"t", "c", `{"id":3}`, "", `{"id":3,"t":86400000,"tn":86399000}`},
			{"t", "c", `{"id":4}`, "", `{"id":4,"t":null,"tn":0}`},
			sentinelRow,
		},
	},
	{name: "heartbeat", least: 6},
	{name: "heartbeat-action-query", least: 2},
	{name: "heartbeat-each-event", least: 5, heartbeats: 1, xa: map[string]string{`orders {"id":4}`: xaAtOnce}, titles: []string{"rows of XA transactions"}},
	{name: "heartbeat-idle", belongs: "it has no binlog: TestHeartbeats holds it on a server"},
	{name: "minimal-metadata", least: 80},
	{name: "names", least: 20},
	{name: "names-avro", least: 20},
	{name: "offsets-compressed", least: 20},
	{name: "offsets-distributed", least: 20},
	{name: "offsets-file-mode", least: 20},
	{name: "offsets-rows-query", least: 20},
	{name: "offsets-transaction-metadata", least: 30},
	{name: "offsets-xa", least: 9, xa: offsetsXA, titles: []string{"rows of XA transactions"}},
	{name: "offsets-xa-file-mode", least: 9, xa: offsetsXA, titles: []string{"rows of XA transactions"}},
	{name: "partial-json", least: 2, rows: partialRows, titles: []string{"PARTIAL_JSON"}},
	{name: "replay-compressed-file-mode", replayed: true},
	{name: "replay-ddl", replayed: true},
	{name: "replay-ddl-file-mode", replayed: true},
	{name: "replay-from-offset", replayed: true},
	{name: "replay-from-offset-file-mode", replayed: true},
	{name: "replay-transaction-metadata", replayed: true},
	{name: "replay-xa", replayed: true},
	{name: "replay-xa-file-mode", replayed: true},
	{name: "restart-mid-transaction", replayed: true},
	{name: "restart-mid-transaction-file-mode", least: 120},
	{name: "restart-mid-transaction-small", least: 120},
	{
		name: "row-image-minimal", least: 7, stops: imageStop, titles: []string{"row images without all columns"},
		rows: append(fullImageRows[:len(fullImageRows):len(fullImageRows)],
			rightRow{"t", "c", `{"id":10}`, "", `{"id":10,"a":10,"b":null,"n":7,"txt":null,"bl":null,"j":null,"txtnn":"m","g":null,"ts":1767323045000}`}),
	},
	{name: "row-image-minimal-update", least: 7, stops: imageStop, rows: fullImageRows},
	{
		name: "row-image-noblob", least: 8, titles: []string{"row images without all columns"},
		rows: []rightRow{
			{"nopk", "c", "", "", `{"a":1,"b":"one","txt":"t1"}`},
			{"nopk", "c", "", "", `{"a":2,"b":"two","txt":"t2"}`},
			{"uk", "c", `{"a":1}`, "", `{"a":1,"b":"one","c":1,"txt":"t1"}`},
			{"uk", "c", `{"a":2}`, "", `{"a":2,"b":"two","c":2,"txt":"t2"}`},
			{"uk", "c", `{"a":3}`, "", `{"a":3,"b":"three","c":3,"txt":"t3"}`},
			{"uk", "c", `{"a":4}`, "", `{"a":4,"b":"four","c":4,"txt":"t4"}`},
			{"nopk", "c", "", "", `{"a":3,"b":"three","txt":"t3"}`},
			// Its before image is whole, so what the after image lacks is as it was.
			{"nopk", "u", "", `{"a":3,"b":"three","txt":"t3"}`, `{"a":3,"b":"tres","txt":"t3"}`},
			{"uk", "u", `{"a":3}`, `{"a":3,"b":"three","c":3,"txt":` + unavailable + `}`, `{"a":3,"b":"three","c":300,"txt":` + unavailable + `}`},
			sentinelRow,
		},
	},
	{name: "snapshot-initial", least: 5},
	{name: "snapshot-select", least: 2},
	{name: "topics-exclude", least: 40},
	{name: "topics-filters", least: 10},
	{name: "topics-keys", least: 15},
	{name: "topics-masks", least: 15},
	{
		name: "transactions", least: 40, titles: []string{"rows of XA transactions"},
		xa: transactionsXA(`END {"id":"d5cbf8d6-ec28-11f1-821d-0242ac11000f:23"}`),
	},
	{
		name: "transactions-file-mode", least: 40, titles: []string{"rows of XA transactions"},
		xa: transactionsXA(`END {"id":"file=mysql-bin.000001,pos=7731"}`),
	},
	{name: "types-alt1", least: 80},
	{name: "types-alt2", least: 80},
	{name: "types-alt3", least: 80},
	{name: "types-alt4", least: 80},
	{name: "types-ddl", least: 80},
	{name: "types-default", least: 80},
	{name: "types-snapshot"},

	// Not copied here.
	{name: "avro-basics", belongs: ofAvro},
	{name: "avro-evolution", belongs: ofAvro},
	{name: "avro-evolution-incompatible", belongs: ofAvro},
	{name: "avro-names", belongs: ofAvro},
	{name: "avro-names-unicode", belongs: ofAvro},
	{name: "avro-tx", belongs: ofAvro},
	{name: "avro-types", belongs: ofAvro},
	{name: "avro-types-modes", belongs: ofAvro},
	{name: "blocking-snapshot", belongs: ofSnapshots},
	{name: "incremental-control", belongs: ofSnapshots},
	{name: "incremental-insert-delete", belongs: ofSnapshots},
	{name: "incremental-kafka-signal", belongs: ofSnapshots},
	{name: "incremental-read-only", belongs: ofSnapshots},
	{name: "incremental-snapshot", belongs: ofSnapshots},
	{name: "incremental-window", belongs: ofSnapshots},
	{name: "snapshot-modes", belongs: ofSnapshots},
	{name: "smt-outbox", belongs: ofTransforms},
	{name: "smt-route", belongs: ofTransforms},
	{name: "smt-unwrap", belongs: ofTransforms},
	{name: "smt-unwrap-schemaless", belongs: ofTransforms},
	{name: "failures", belongs: "messages of Kafka Connect, without a binlog"},
	{name: "file-stream", belongs: "the file source, without a binlog"},
	{name: "metrics", belongs: "metrics, without a binlog"},
	{name: "rest", belongs: "the REST interface, without a binlog"},
}

// offsetsXA are the XA rows of offsets-xa: x1 is committed, x2 rolled back, x3 committed in one phase.
var offsetsXA = map[string]string{
	`orders {"id":11}`: xaAtOnce, `orders {"id":12}`: xaAtOnce, `orders {"id":13}`: xaRolledBack, `orders {"id":14}`: xaAtOnce,
	`customers {"id":1}`: xaAtOnce, `customers {"id":2}`: xaAtOnce,
}

func transactionsXA(beforeLate string) map[string]string {
	return map[string]string{
		`orders {"id":10}`: xaAtOnce, `order_lines {"id":100}`: xaAtOnce, `orders {"id":11}`: xaRolledBack,
		`orders {"id":12}`: xaAtOnce, `orders {"id":13}`: beforeLate,
	}
}

var ansiRows = []rightRow{
	{"t", "c", `{"id":1}`, "", `{"id":1,"v":"before"}`},
	{"t", "ddl", `{"databaseName":"inventory"}`, "", `ALTER TABLE "t" ADD COLUMN "w x" INT DEFAULT 5`},
	{"t", "c", `{"id":2}`, "", `{"id":2,"v":"after","w x":6}`},
	{"ansi", "ddl", `{"databaseName":"inventory"}`, "", `CREATE TABLE "ansi" ("id" INT NOT NULL PRIMARY KEY, "txt" VARCHAR(10) DEFAULT 'd')`},
	{"ansi", "c", `{"id":1}`, "", `{"id":1,"txt":"q"}`},
	sentinelRow,
}

// fullImageRows are the rows with full images that row-image-minimal and fail-row-image-noblob begin with.
var fullImageRows = []rightRow{
	{"t", "c", `{"id":1}`, "", `{"id":1,"a":1,"b":"full","n":7,"txt":"text","bl":"YmxvYg==","j":"{\"a\":1}","txtnn":"nn","g":null,"ts":1767323045000}`},
	{"t", "c", `{"id":2}`, "", `{"id":2,"a":2,"b":"full","n":7,"txt":null,"bl":null,"j":null,"txtnn":"","g":null,"ts":1767323045000}`},
	{"t", "c", `{"id":3}`, "", `{"id":3,"a":3,"b":"full","n":7,"txt":"t3","bl":"YjM=","j":"[3]","txtnn":"nn3","g":null,"ts":1767323045000}`},
	{"nopk", "c", "", "", `{"a":1,"b":"one","txt":"t1"}`},
	{"nopk", "c", "", "", `{"a":2,"b":"two","txt":"t2"}`},
	{"uk", "c", `{"a":1}`, "", `{"a":1,"b":"one","c":1,"txt":"t1"}`},
	{"uk", "c", `{"a":2}`, "", `{"a":2,"b":"two","c":2,"txt":"t2"}`},
}

// noblobRow is a row of table t in which columns are missing: txt, bl and txtnn are JSON texts or "" for unavailable.
func noblobRow(id, a, txt, bl, j, txtnn string) string {
	or := func(s, without string) string {
		if s == "" {
			return without
		}
		return s
	}
	const bytes = `"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="` // the placeholder's bytes
	return `{"id":` + id + `,"a":` + a + `,"b":"noblob","n":7,"txt":` + or(txt, unavailable) + `,"bl":` + or(bl, bytes) + `,"j":` + j +
		`,"txtnn":` + or(txtnn, unavailable) + `,"g":null,"ts":1767323045000}`
}

var noblobRows = append(fullImageRows[:len(fullImageRows):len(fullImageRows)],
	// What an insert does not name is NULL, its default.
	rightRow{"t", "c", `{"id":20}`, "", noblobRow("20", "20", `"t20"`, "null", "null", `"nn20"`)},
	rightRow{"t", "c", `{"id":21}`, "", noblobRow("21", "21", "null", "null", "null", `"nn21"`)},
	rightRow{"t", "u", `{"id":20}`, noblobRow("20", "20", "", "", "null", ""), noblobRow("20", "21", "", "", "null", "")},
	rightRow{"t", "u", `{"id":20}`, noblobRow("20", "21", "", "", "null", ""), noblobRow("20", "21", `"changed"`, "", "null", "")},
	rightRow{"t", "u", `{"id":21}`, noblobRow("21", "21", "", "", "null", ""), noblobRow("21", "21", "", `"Y2hhbmdlZA=="`, `"{\"z\":1}"`, "")},
	rightRow{"t", "d", `{"id":20}`, noblobRow("20", "21", "", "", "null", ""), ""},
	rightRow{"t", "tombstone", `{"id":20}`, "", ""},
	rightRow{"t", "c", `{"id":200}`, "", noblobRow("200", "21", "", "", "null", "")},
	rightRow{"t", "d", `{"id":21}`, noblobRow("21", "21", "", "", `"{\"z\":1}"`, ""), ""},
	rightRow{"t", "tombstone", `{"id":21}`, "", ""},
	sentinelRow,
)

// Every UPDATE but the last one is a partial update event, which Debezium drops without a word.
var partialRows = []rightRow{
	{"t", "c", `{"id":1}`, "", partial0},
	{"t", "c", `{"id":2}`, "", `{"id":2,"j":"{\"a\":\"bbbbbbbbbb\"}","k":null,"n":0}`},
	{"t", "u", `{"id":1}`, partial0, partial1},
	{"t", "u", `{"id":1}`, partial1, partial2},
	{"t", "u", `{"id":1}`, partial2, partial3},
	{"t", "u", `{"id":1}`, partial3, partial4},
	{"t", "u", `{"id":1}`, partial4, partial5},
	{"t", "u", `{"id":2}`, `{"id":2,"j":"{\"a\":\"bbbbbbbbbb\"}","k":null,"n":0}`, `{"id":2,"j":"{\"whole\":\"replaced\"}","k":null,"n":0}`},
	{"t", "d", `{"id":1}`, partial5, ""},
	{"t", "tombstone", `{"id":1}`, "", ""},
	{"t", "c", `{"id":11}`, "", `{"id":11,"j":"{\"a\":\"short\",\"b\":[1,9,3],\"x\":1,\"new\":1}","k":"[7]","n":2}`},
	{"t", "d", `{"id":2}`, `{"id":2,"j":"{\"whole\":\"replaced\"}","k":null,"n":0}`, ""},
	{"t", "tombstone", `{"id":2}`, "", ""},
	{"t", "c", `{"id":12}`, "", `{"id":12,"j":"{\"x\":1,\"whole\":\"replaced\"}","k":null,"n":0}`},
	{"t", "u", `{"id":11}`, `{"id":11,"j":"{\"a\":\"short\",\"b\":[1,9,3],\"x\":1,\"new\":1}","k":"[7]","n":2}`, `{"id":11,"j":"{\"a\":\"short\",\"b\":[1,9,3],\"x\":2,\"new\":1}","k":"[7]","n":2}`},
	sentinelRow,
}

const (
	partial0 = `{"id":1,"j":"{\"a\":\"aaaaaaaaaa\",\"b\":[1,2,3],\"c\":{\"d\":true}}","k":"[1]","n":0}`
	partial1 = `{"id":1,"j":"{\"a\":\"aaaaaaaaaa\",\"b\":[1,2,3],\"c\":{\"d\":true}}","k":"[1]","n":1}`
	partial2 = `{"id":1,"j":"{\"a\":\"short\",\"b\":[1,2,3],\"c\":{\"d\":true}}","k":"[1]","n":1}`
	partial3 = `{"id":1,"j":"{\"a\":\"short\",\"b\":[1,9,3],\"c\":{\"d\":true}}","k":"[1]","n":2}`
	partial4 = `{"id":1,"j":"{\"a\":\"short\",\"b\":[1,9,3]}","k":"[1]","n":2}`
	partial5 = `{"id":1,"j":"{\"a\":\"short\",\"b\":[1,9,3],\"new\":1}","k":"[7]","n":2}`
)
