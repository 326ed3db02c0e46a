package config

import (
	"strconv"
	"strings"
	"time"
)

// transactions reads whether delivery is exactly once, and how.
func (c *checked) transactions(conn *Connector, worker *checked) {
	group := worker.text("group.id")
	if group != "" && conn.Name != "" {
		conn.TransactionalID = group + "-" + conn.Name + "-0"
	}
	var asks *checked
	key := ""
	switch {
	case c.enum("exactly.once.support") == "required":
		asks, key = c, "exactly.once.support"
	case worker.enum("exactly.once.source.support") == "enabled":
		asks, key = worker, "exactly.once.source.support"
	default:
		return
	}
	if worker.path == "" || asks.failed(key) { // there is no worker, or another connector has met the same
		return
	}
	value := asks.enum(key)
	if conn.OffsetsTopic == "" && worker.text("offset.storage.file.filename") != "" && worker.text("offset.storage.topic") == "" {
		asks.fail(key, "%s needs the offsets in a topic: records and offset are written in one Kafka transaction, and a file cannot be part of it. "+
			"Set offset.storage.topic in the worker's file instead of offset.storage.file.filename, or offsets.storage.topic in the connector's", value)
	}
	if group == "" {
		asks.fail(key, "%s needs group.id in the worker's file: the transactional id is <group.id>-<name>-0, as in Kafka Connect", value)
	}
	e := &ExactlyOnce{Boundary: c.enum("transaction.boundary"), Interval: c.millis("transaction.boundary.interval.ms"), Timeout: time.Minute}
	if !c.has("transaction.boundary.interval.ms") {
		e.Interval = worker.millis("offset.flush.interval.ms")
	}
	// What is malformed has been said with the other properties of the producer.
	if ms, err := strconv.ParseInt(strings.TrimSpace(conn.Producer["transaction.timeout.ms"]), 10, 32); err == nil {
		e.Timeout = time.Duration(ms) * time.Millisecond
	}
	switch e.Boundary {
	case "connector":
		c.warn("transaction.boundary", "connector is taken like poll: Debezium's connector defines no transaction boundaries, so Kafka Connect refuses it. Kafka transactions end at commits of MySQL in any case")
	case "interval":
		switch {
		case e.Interval > e.Timeout/2 && e.Interval < e.Timeout:
			c.warn("transaction.boundary.interval.ms", "%d ms is more than half of transaction.timeout.ms=%d: what has been read when the interval is over is still to be written, and a Kafka that is slow then rolls the transaction back; "+
				"set it to less, or producer.override.transaction.timeout.ms to more", e.Interval.Milliseconds(), e.Timeout.Milliseconds())
		case e.Interval >= e.Timeout:
			c.fail("transaction.boundary", "interval: each Kafka transaction would last %d ms, and after transaction.timeout.ms=%d the brokers roll it back; "+
				"set transaction.boundary.interval.ms to less, or producer.override.transaction.timeout.ms to more", e.Interval.Milliseconds(), e.Timeout.Milliseconds())
		}
	}
	conn.ExactlyOnce = e
}
