// Package avro writes Connect schemas as Avro schemas, as Kafka Connect's AvroConverter does, and checks and compares
// them.
//
// The text is compared byte for byte with what Confluent's io.confluent.connect.avro.AvroData 8.3.1 and Avro Java
// 1.12.1 make of the same Connect schema, for a registry gives an old schema's id only to the same text. Apicurio's
// AvroData makes the same text. What only other sources than Debezium have is not supported: Connect's unions, Avro's
// enums and fixed made of Connect's parameters, and the docs that come from parameters.
//
// Nothing here does I/O or holds state, and everything is safe for concurrent use.
package avro
