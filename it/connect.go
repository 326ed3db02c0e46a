package it

import (
	"path/filepath"
	"strings"
	"testing"
)

// StandaloneConnect starts a real Kafka Connect worker with the Debezium MySQL connector for the connector's files, whose offsets
// have to be in a file.
func (c *Connector) StandaloneConnect(t testing.TB) *Process {
	t.Helper()
	worker, connector := c.Files(t)
	var more []string
	if strings.HasPrefix(c.Config["value.converter"], "io.apicurio.") {
		more = append(more, Image(t, "avro-java"))
	}
	return Start(t, "connect", append(connectCommand(t, more...), "org.apache.kafka.connect.cli.ConnectStandalone", worker, connector)...)
}

// connectCommand is the command line of a Connect worker up to its class. More class paths may be added behind the worker's own, whose
// classes win.
func connectCommand(t testing.TB, more ...string) []string {
	t.Helper()
	classes := strings.Join(append([]string{filepath.Join(Image(t, "connect"), "*")}, more...), string(filepath.ListSeparator))
	return []string{
		"java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", classes,
	}
}
