package it

import (
	"path/filepath"
	"testing"
)

// StandaloneConnect starts a real Kafka Connect worker with the Debezium MySQL connector for the connector's files, whose offsets
// have to be in a file.
func (c *Connector) StandaloneConnect(t testing.TB) *Process {
	t.Helper()
	worker, connector := c.Files(t)
	return Start(t, "connect", append(connectCommand(t), "org.apache.kafka.connect.cli.ConnectStandalone", worker, connector)...)
}

// connectCommand is the command line of a Connect worker up to its class.
func connectCommand(t testing.TB) []string {
	t.Helper()
	return []string{
		"java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", filepath.Join(image(t, "connect"), "*"),
	}
}
