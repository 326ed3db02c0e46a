package it

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// avroColumns are the columns of the table of TestAvro: each with the SQL expression for the JSON value that its event has to carry.
var avroColumns = []struct{ name, definition, want string }{
	{"id", "INT NOT NULL PRIMARY KEY", "id"},
	{"tiny", "TINYINT", "tiny"},
	{"whole", "INT UNSIGNED NOT NULL", "whole"},
	{"big", "BIGINT", "big"},
	{"huge", "BIGINT UNSIGNED", "CAST(huge AS SIGNED)"}, // bigint.unsigned.handling.mode=long
	{"price", "DECIMAL(10,2)", "IF(price IS NULL, NULL, JSON_OBJECT('decimal', CAST(price AS CHAR)))"},
	{"exact", "DECIMAL(38,10) NOT NULL", "JSON_OBJECT('decimal', CAST(exact AS CHAR))"},
	// NULL in a nullable column with a default is written as the default.
	{"def", "DECIMAL(6,3) DEFAULT 1.5", "JSON_OBJECT('decimal', CAST(COALESCE(def, CAST(1.5 AS DECIMAL(6,3))) AS CHAR))"},
	{"defn", "INT DEFAULT 7", "COALESCE(defn, 7)"},
	{"deft", "VARCHAR(20) DEFAULT 'd\"ä'", "COALESCE(deft, 'd\"ä')"},
	{"single", "FLOAT", "CAST(single AS DOUBLE)"},
	{"dbl", "DOUBLE", "dbl"},
	{"truth", "BIT(1)", "IF(truth IS NULL, NULL, CAST(IF(truth, 'true', 'false') AS JSON))"},
	{"bits", "BIT(12)", "IF(bits IS NULL, NULL, JSON_OBJECT('bytes', LOWER(CONCAT(LPAD(HEX(bits & 255), 2, '0'), LPAD(HEX(bits >> 8), 2, '0')))))"},
	{"txt", "VARCHAR(200)", "txt"},
	{"long_txt", "MEDIUMTEXT", "long_txt"},
	{"bin", "VARBINARY(40)", "IF(bin IS NULL, NULL, JSON_OBJECT('bytes', LOWER(HEX(bin))))"},
	{"choice", "ENUM('a','b c','ü')", "choice"},
	{"many", "SET('x','y','z')", "many"},
	{"doc", "JSON", "REPLACE(REPLACE(CAST(doc AS CHAR), ': ', ':'), ', ', ',')"},
	{"d", "DATE", "DATEDIFF(d, '1970-01-01')"},
	{"ti", "TIME(6)", "TIME_TO_SEC(ti)*1000000 + IF(ti < 0, -1, 1)*MICROSECOND(ti)"},
	{"dt", "DATETIME", "TIMESTAMPDIFF(SECOND, '1970-01-01', dt)*1000"},
	{"dt6", "DATETIME(6)", "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', dt6)"},
	{"ts", "TIMESTAMP NULL", "DATE_FORMAT(ts, '%Y-%m-%dT%H:%i:%sZ')"},
	{"ts6", "TIMESTAMP(6) NULL", "DATE_FORMAT(ts6, '%Y-%m-%dT%H:%i:%s.%fZ')"},
	{"y", "YEAR", "y"},
	{"pt", "POINT", "IF(pt IS NULL, NULL, JSON_OBJECT('x', ST_X(pt), 'y', ST_Y(pt), 'wkb', JSON_OBJECT('bytes', LOWER(HEX(ST_AsWKB(pt)))), 'srid', NULL))"},
	{"vec", "VECTOR(3)", "CAST(VECTOR_TO_STRING(vec) AS JSON)"},
}

// avroStatements change the table of TestAvro in every way.
var avroStatements = []string{
	`INSERT INTO avro.t VALUES (1, -128, 4294967295, -9223372036854775808, 18446744073709551615, -0.01, -1234567890123456789012345678.0123456789,
		-0.001, -1, '', 0.1, -1.5e300, b'1', b'101010101011', 'plain', REPEAT('long ä€🦀 ', 3000), x'00ff7f80', 'ü', 'x,z', '{"k": [1, "a", null], "m": {}}',
		'1969-12-31', '-838:59:59', '1970-01-01 00:00:00', '2026-01-02 03:04:05.000001', '2026-01-02 03:04:05', '2026-01-02 03:04:05.123456', 2155,
		POINT(1.5, -2.5), STRING_TO_VECTOR('[1.5,-2,0.25]'))`,
	`INSERT INTO avro.t (id, whole, exact, def, defn, deft) VALUES (2, 0, 0, NULL, NULL, NULL)`,
	`INSERT INTO avro.t VALUES (-2147483648, 127, 1, 9223372036854775807, 9223372036854775807, 99999999.99, 1.28, 128, 64, '"quoted" \\ \t', 3, 1e10, b'0', 0,
		'', '', '', 'a', '', '[]', '9999-12-31', '00:00:00.000001', '9999-12-31 23:59:59', '1970-01-01 00:00:00', '1970-01-01 00:00:01',
		'2038-01-19 03:14:07.499999', 1901, POINT(0, 1e300), STRING_TO_VECTOR('[0,0,0]'))`,
	`INSERT INTO avro.t (id, whole, exact) VALUES (10, 10, 10.5), (11, 11, -127), (12, 12, -128), (13, 13, -129), (14, 14, 32768)`,
	`UPDATE avro.t SET big = 5, txt = CONCAT('changed ', id), price = NULL WHERE id < 12`,
	`UPDATE avro.t SET id = id + 100, bits = 4095 WHERE id >= 12`,
	`DELETE FROM avro.t WHERE id IN (11, 113)`,
	`INSERT INTO avro.nokey VALUES (NULL, 'a'), (2, NULL)`,
	`DELETE FROM avro.nokey WHERE a = 2`,
}

// TestAvro shows that consumers in three languages, each with its own Avro library, read from Tidemark's topics what the table holds:
// with Confluent's converter, and with Apicurio's in its forms, which Apicurio's own deserializer reads.
func TestAvro(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	registry := StartRegistry(t, "BACKWARD")
	m := rig.MySQL
	avroTables(t, m)
	m.Exec(t, avroStatements...)
	rows := avroRows(t, m)
	for _, kind := range []string{"confluent", "apicurio", "apicurio4", "content4"} {
		t.Run(kind, func(t *testing.T) {
			c := rig.Connector(t, "avro_"+kind, "file", "avro\\..*")
			c.Config = c.Config.With(registry.AvroConverter(t, kind)).With(Properties{
				"start.position": "oldest", "topic.creation.default.partitions": "1",
			})
			p := c.RunStreaming(t)
			c.AwaitDrained(t, time.Minute)
			p.Terminate(t)
			consumeAvro(t, rig.Kafka, registry, c.Prefix, kind, rows)
		})
	}
}

// avroTables makes the tables of TestAvro.
func avroTables(t *testing.T, m *MySQL) {
	t.Helper()
	var definitions []string
	for _, c := range avroColumns {
		definitions = append(definitions, c.name+" "+c.definition)
	}
	m.Exec(t, "CREATE DATABASE avro CHARACTER SET utf8mb4", "CREATE TABLE avro.t ("+strings.Join(definitions, ", ")+")",
		"CREATE TABLE avro.nokey (a INT, b VARCHAR(5))")
}

// avroRows are the rows of the table by id, each as the JSON text that its last event has to carry.
func avroRows(t *testing.T, m *MySQL) map[string]string {
	t.Helper()
	var members []string
	for _, c := range avroColumns {
		members = append(members, "'"+c.name+"', "+c.want)
	}
	rows := map[string]string{}
	for _, r := range m.Query(t, "SELECT id, JSON_OBJECT("+strings.Join(members, ", ")+") FROM avro.t") {
		row, err := plainJSON([]byte(r[1]))
		if err != nil {
			t.Fatal(err)
		}
		rows[r[0]] = canonical(row)
	}
	if len(rows) != 6 {
		t.Fatalf("the table has %d rows, want 6", len(rows))
	}
	return rows
}

// consumeAvro reads the topics with every consumer that takes this kind of id. Each has to find the table, and all the same.
func consumeAvro(t *testing.T, k *Kafka, registry *Registry, prefix, kind string, rows map[string]string) {
	t.Helper()
	right := k.ConsumeGo(t, prefix+".", registry.AvroDecoder(kind))
	if kind == "content4" {
		kind = "confluent"
	}
	consumers := map[string][]AvroRecord{"goavro": right, "Java": k.ConsumeJava(t, prefix+".", kind, registry)}
	if kind == "confluent" {
		consumers["fastavro"] = k.ConsumePython(t, prefix+".", registry)
	}
	for name, records := range consumers {
		foldAvro(t, name, prefix, records, rows)
		if len(records) != len(right) {
			t.Errorf("%s read %d records, goavro %d", name, len(records), len(right))
		}
		for i := range min(len(records), len(right)) {
			if got, want := records[i].String(), right[i].String(); got != want {
				t.Errorf("%s read\n  %s\ngoavro\n  %s", name, got, want)
			}
		}
	}
	t.Logf("%d records, read by %d consumers", len(right), len(consumers))
}

// foldAvro applies the events of TestAvro's table to nothing, which has to become the table; each before has to be what the events
// before it left.
func foldAvro(t *testing.T, who, prefix string, records []AvroRecord, rows map[string]string) {
	t.Helper()
	state := map[string]string{}
	var last string // key of the delete that a tombstone has to follow
	var nokey []string
	for _, r := range records {
		value, _ := r.Value.(map[string]any)
		if r.Topic == prefix+".avro.nokey" {
			if r.Key != nil {
				t.Errorf("%s: a key in a table without one: %s", who, r)
			}
			if value == nil {
				nokey = append(nokey, "tombstone")
			} else {
				nokey = append(nokey, fmt.Sprint(value["op"], canonical(value["before"]), canonical(value["after"])))
			}
			continue
		}
		key, ok := r.Key.(map[string]any)
		if r.Topic != prefix+".avro.t" || !ok {
			t.Errorf("%s: unexpected: %s", who, r)
			continue
		}
		id := canonical(key["id"])
		if value == nil {
			if id != last {
				t.Errorf("%s: a tombstone of %s after a delete of %q", who, id, last)
			}
			continue
		}
		last = ""
		before := ""
		if value["before"] != nil {
			before = canonical(value["before"])
		}
		if before != state[id] {
			t.Errorf("%s: row %s: before is\n  %s\nthe events before it left\n  %s", who, id, before, state[id])
		}
		switch value["op"] {
		case "c", "u":
			state[id] = canonical(value["after"])
		case "d":
			delete(state, id)
			last = id
		default:
			t.Errorf("%s: op %v", who, value["op"])
		}
	}
	for id, want := range rows {
		if state[id] != want {
			t.Errorf("%s: row %s: the events end in\n  %s\nthe table in\n  %s", who, id, state[id], want)
		}
		delete(state, id)
	}
	for id, row := range state {
		t.Errorf("%s: row %s is not in the table: %s", who, id, row)
	}
	if want := []string{`cnull{"a":null,"b":"a"}`, `cnull{"a":2,"b":null}`, `d{"a":2,"b":null}null`, "tombstone"}; !slices.Equal(nokey, want) {
		t.Errorf("%s: the table without a key: %v, want %v", who, nokey, want)
	}
}
