// Package emitter turns row events into Debezium's Kafka records, byte for byte, and delivers them.
//
// An [Emitter] compiles each version of a table once: a shape (the tree of the envelope or key, whose leaves say where
// their values come from) becomes a program (text, and the cells that go in between) for the configured format. A row
// then costs the decoding of its cells and a few copies, and allocates nothing. A [Delivery] owns the memory that records
// are appended to, hands them to Kafka in order, and knows up to which offset everything is acknowledged.
//
//	em, err := emitter.New(emitter.Config{Prefix: "dbserver1", …})
//	d := emitter.NewAtLeastOnce(client, emitter.DeliveryConfig{Topics: topics})
//	for {
//		switch ev := next().(type) {
//		case *binlog.Begin:
//			b, err := d.Batch(ctx)
//			err = em.Transaction(b, ev)
//		case *binlog.Rows:
//			err = em.Begin(ev)
//			for ev.Next() {
//				b, err := d.Batch(ctx)
//				err = em.Row(b, ev) // a row that is left out appends nothing; the next boundary covers it
//			}
//		case *binlog.SchemaChange:
//			b, err := d.Batch(ctx)
//			err = em.SchemaChange(b, ev)
//			err = d.Boundary(ctx, ev.Offset)
//		case *binlog.Truncate:
//			b, err := d.Batch(ctx)
//			err = em.Truncate(b, ev)
//			err = d.Boundary(ctx, ev.Offset)
//		case *binlog.Boundary:
//			b, err := d.Batch(ctx)
//			err = em.Commit(b, ev)
//			err = d.Boundary(ctx, em.Mark(ev.Offset))
//		}
//		err = d.Deliver(ctx) // at the latest before waiting for the next event
//		if o, ok := d.Safe(); ok {
//			… // now and then: store o
//		}
//	}
//
// In Avro ([Avro]) a record begins with the id of its schema. When that is not known yet, the method that was to append the
// record changes nothing and returns a [SchemaNeeded]; once the id is there it is called again. Ids are put into what is
// compiled, so that a row costs no look for them.
//
// Without Kafka, a caller keeps a [Batch] of its own, reads its Records after each row or event and resets it.
package emitter
