// Package bench measures Tidemark beside other tools that do the same work: one tool at a time, on one machine, in one run, over the
// same binlog of a real MySQL and to the same real Kafka. It is run by "make bench-side", and in a tiny size, which proves only that
// everything runs, by "make bench-smoke". What is measured, and how, is in docs/benchmarks.md.
//
// The tools are the built binary, also with exactly-once delivery, of which only what is committed counts; a real Debezium in a
// standalone Connect worker; a program as one writes it by hand on go-mysql and franz-go (folder canal); and
// the floor, which is not a tool but what no tool can save: reading the binlog's bytes and producing records that are ready (folder
// floor).
//
// A workload is written before a tool starts, so that each tool reads the same bytes from the past and none waits for the writer; only
// the workloads of latency, of starts and of idleness are written while it runs. What counts is the second half of the records, when a
// JVM is warm: time and CPU between the moment when half of them are in Kafka and the moment when all are. CPU is that of the tool's own
// process, user and system. Tools take turns in each round, and of the rounds the medians are shown.
//
// The servers are tuned for the test, not for safety: MySQL does not wait for its disk, and Kafka's log is memory.
//
// All sizes come from the environment:
//
//	TIDEMARK_BENCH_WORKLOADS       which of W1 W2 W3 W4 W3by10 W5 W6 W7 W8 start idle growth (all); they run in this order
//	TIDEMARK_BENCH_TOOLS           which of tidemark exactly-once debezium canal floor (all), in the order in which they take turns; exactly-once
//	                               takes part in W1 and W2 with JSON, and in W5 but for max
//	TIDEMARK_BENCH_W1_FORMS        formats of W1 with their compression, as json/none: json, json-schema, avro; none, snappy, lz4, zstd, gzip
//	                               (json with none, snappy and lz4, the others with none and snappy); the program by hand writes only json
//	TIDEMARK_BENCH_FORMS           the same of the other workloads (json/none); growth is always json/none
//	TIDEMARK_BENCH_ROUNDS          rounds (3)
//	TIDEMARK_BENCH_WARM            how often exactly-once reads the first workload before what counts, for the broker to have compiled what
//	                               transactions take (2)
//	TIDEMARK_BENCH_ROWS            row changes of W2, W3 and W8 (1000000); W1 has four times as many, W6 three tenths, W7 a fiftieth
//	TIDEMARK_BENCH_W1_ROWS …       row changes of one workload (W1 W2 W3 W6 W7 W8)
//	TIDEMARK_BENCH_W1_SCHEMA_ROWS  row changes of W1 for json-schema (a quarter of W1's)
//	TIDEMARK_BENCH_START_ROWS      rows before and after a start (1000)
//	TIDEMARK_BENCH_GROWTH_ROWS     rows of a usual size in growth (twice as many as TIDEMARK_BENCH_ROWS)
//	TIDEMARK_BENCH_STATEMENT       most rows of a statement of W1 (100, which makes three statements a transaction)
//	TIDEMARK_BENCH_TABLES          tables of W8 (5000)
//	TIDEMARK_BENCH_PARTITIONS      partitions of a topic (3; with several tables always 1)
//	TIDEMARK_BENCH_RATES           transactions a second of W5; max is 80 % of what can be (200,5000,max)
//	TIDEMARK_BENCH_SECONDS         how long each rate of W5 lasts; its second half counts (20)
//	TIDEMARK_BENCH_IDLE            how long nothing is written in idle, in seconds (10)
//	TIDEMARK_BENCH_DEBEZIUM        more settings of Debezium's connector, as name=value,name=value
//	TIDEMARK_BENCH_TIDEMARK        the same of Tidemark's
//	TIDEMARK_BENCH_REPORT          file for the report, written anew behind each workload (standard output, at the end)
package bench
