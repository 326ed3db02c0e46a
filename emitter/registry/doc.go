// Package registry gets the ids of Avro schemas from a schema registry: Confluent's API, which Karapace and others speak
// as well, or the core API (version 2) of Apicurio Registry.
//
// A caller asks the cache, and the registry only for what is not in it:
//
//	id, ok := client.ID(subject, text) // never blocks
//	if !ok {
//		err := client.Resolve(ctx, registry.Schema{Subject: subject, Text: text}) // blocks until the id is known
//	}
//
// [Embedded] is a registry in this process, for trying out.
package registry
