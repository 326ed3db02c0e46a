// Package it tests the built binary as a black box: a real MySQL and a real Kafka in containers, a proxy in between that cuts and
// holds connections, a kill -9 at random moments, and a checker that knows from the writers' own log what the topics have to hold.
//
// Nothing here imports the packages under test, so a fault of a decoder cannot hide itself. The images are made by the scripts in
// images; a test that needs an engine starts one as root on Debian and fails with what is missing elsewhere. It never skips.
//
// Four kinds of truth are compared with: the writers' own log; recorded binlogs with what a Debezium connector wrote for them
// (testdata/golden); SQL with the rows that it has to give, on live servers of MySQL and MariaDB; and, in it/differential, a real
// Debezium that reads the same server. Records in Avro are read from a real registry by goavro, by Avro Java and by fastavro, none of
// which knows how they were made.
//
// Sizes come from the environment, so that one test is both the short one of "make test" and the long one of "make soak-…":
//
//	TIDEMARK_IT_KILLS      kill -9 in the chaos test (5)
//	TIDEMARK_IT_STORE      where it keeps offsets: topic or file (topic)
//	TIDEMARK_IT_BULK       rows of its biggest transactions (10000)
//	TIDEMARK_IT_SEED       its random seed, and that of the registry test (printed; a new one each run)
//	TIDEMARK_IT_BIGTX      rows of the big transaction (100000)
//	TIDEMARK_IT_KEEP       folder to keep logs of the processes in
//	TIDEMARK_IT_KAFKA      old: with Kafka 3.9, whose transaction.version is below 2, where a test does not need another (new)
//	TIDEMARK_IT_BINARY     a built binary to test, instead of building one
package it
