// Package sim runs the product in a simulated world: one process, virtual time (testing/synctest), a network and a disk in memory,
// a MySQL primary that plays generated binlogs, a Kafka cluster of kfake, and faults from a seed. Everything is in its tests.
//
// The loop, the reader, the emitter, the delivery, the tracker and the stores are the product's own; what is here takes the place
// of machines. A run is a list of faults, and then a check of what the topics hold against what the primary executed, of
// each stored offset against what was acknowledged when it was stored, and of the end: everything arrives without help.
//
//	go test ./it/sim -run 'TestSim$' -args -seed=7
//
// runs one seed. Goroutines are scheduled by Go, so the same seed gives the same faults, not the same run to the last step:
// one that fails may have to be run several times (-count).
package sim
