// Package sim runs the product in a simulated world: one process, virtual time (testing/synctest), a network and a disk in memory,
// a MySQL primary that plays generated binlogs, a Kafka cluster of kfake, and faults from a seed. Everything is in its tests.
//
// The loop, the reader, the emitter, the deliveries, the tracker, the stores of offsets and the lock are the product's own; what is here
// takes the place of machines, and of the topic of tables' definitions. A run is a list of faults, and then a check of what the topics hold
// against what the primary executed, of each stored offset against what was acknowledged when it was stored, and of the end: everything
// arrives without help. A seed delivers at least once or exactly once, to Kafka 3.9 or 4, with offsets in a file or a topic, and there with or
// without a group whose members take over from each other.
//
//	go test ./it/sim -run 'TestSim$' -args -seed=7
//
// runs one seed. Goroutines are scheduled by Go, so the same seed gives the same faults, not the same run to the last step:
// one that fails may have to be run several times (-count). SIM_FROM=201 SIM_SEEDS=200 go test ./it/sim runs the seeds from 201 to 400.
//
// # What is checked
//
//   - C1, no loss: each record of each change of a captured table is in the partition of its key (history.checkOrder).
//   - C2, no invention: each record is of a row that the primary has executed, with its very values (history.element).
//   - C3, order: a partition has its records in the binlog's order. At least once, records come again only from an offset at which an
//     attempt began.
//   - C4, exactly once: none comes again for who reads what is committed.
//   - C5, at least once: what comes again is not older than the intervals of saving leave, where no fault kept them (history.checkRepeats).
//   - C6, an offset covers only what is acknowledged: at least once by the topics' ends when it is stored (history.checkAcknowledged),
//     exactly once by the records being in the transaction of the offset behind them (history.checkTransactions).
//   - C7, offsets only move forward, and what is loaded is what was stored last (history.checkOffsets).
//   - C8, transactions: what is between two stored offsets is one Kafka transaction; with transaction.boundary=source none ends inside a
//     transaction of MySQL; none is open when there is nothing to do.
//   - C9, the before of each event is the after of the one before it (checkChain).
//   - C11, columns: each row has those of its table at its place in the binlog, by name, over ALTERs, restarts and failovers (same).
//   - C12, liveness: when the faults are over everything arrives, with no help, and a stop is in order (simulation.arrive and finish).
//   - C13, bounds: records on their way are not more than the window; no goroutine is left of a process (synctest sees to that).
//   - C14, each fault and each crash point came about, in both modes (TestSim).
//   - Of what can never arrive any more the process says so and stops, and leaves nothing out (endings).
//   - Two processes never both go on, and one that was replaced stores nothing (handOver, takeOver); with a lock they never take turns (only).
//
// The checks themselves are checked by histories that are made wrong (TestCheckerFindsFaults) and by builds of the product in which a line
// is broken (TestBrokenTrackerIsFound, TestBrokenExactlyOnceIsFound).
//
// Not here: C10, the sum over accounts that transfers keep, follows from C2 and C8, and is looked at where there are readers, in it. XA
// transactions, whose prepared parts the servers here would have to keep, are held by the tests of package binlog and by TestVortex. A process
// that is at least once and frozen while another takes over could still send what it had in hand, which nothing in Kafka prevents.
package sim
