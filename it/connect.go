package it

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// ConnectWorker is a real Kafka Connect worker in distributed mode, alone in its group.
type ConnectWorker struct {
	*Process
	rest string // its address
	name string // of the connector
}

// DistributedConnect starts a worker with the Debezium MySQL connector for the connector's worker properties, whose offsets have to be
// in a topic. What a distributed worker needs beside them is added to the properties. It does not wait.
func (c *Connector) DistributedConnect(t testing.TB) *ConnectWorker {
	t.Helper()
	address := fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	c.Worker["listeners"] = address
	for _, kind := range []string{"config", "status"} {
		c.Worker[kind+".storage.topic"] = "connect-" + kind + "-" + c.Name
		c.Worker[kind+".storage.replication.factor"] = "1"
	}
	worker, _ := c.Files(t)
	p := Start(t, "connect", append(connectCommand(t), "org.apache.kafka.connect.cli.ConnectDistributed", worker)...)
	return &ConnectWorker{Process: p, rest: address, name: c.Name}
}

// Create makes the connector in the worker, once that answers.
func (w *ConnectWorker) Create(t testing.TB, config Properties) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"name": w.name, "config": config})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 90*time.Second, "creating the connector", func() error {
		_, err := w.call(http.MethodPost, "/connectors", body)
		return err
	})
}

// RestartTask has the worker begin the connector's only task anew.
func (w *ConnectWorker) RestartTask(t testing.TB) {
	t.Helper()
	eventually(t, 30*time.Second, "restarting the task", func() error {
		_, err := w.call(http.MethodPost, w.connector()+"/tasks/0/restart", nil)
		return err
	})
}

// AwaitTask waits until the connector's only task is in this state, as Connect names it, and returns what it says of an error.
func (w *ConnectWorker) AwaitTask(t testing.TB, most time.Duration, state string) (trace string) {
	t.Helper()
	eventually(t, most, "the task's state", func() error {
		text, err := w.call(http.MethodGet, w.connector()+"/status", nil)
		if err != nil {
			return err
		}
		var status struct {
			Tasks []struct{ State, Trace string }
		}
		if err := json.Unmarshal(text, &status); err != nil {
			return err
		}
		if len(status.Tasks) != 1 || status.Tasks[0].State != state {
			return fmt.Errorf("want %s: %s", state, text)
		}
		trace = status.Tasks[0].Trace
		return nil
	})
	return trace
}

func (w *ConnectWorker) connector() string { return "/connectors/" + url.PathEscape(w.name) }

// call sends a request to the worker's REST API and returns the body of the answer.
func (w *ConnectWorker) call(method, path string, body []byte) ([]byte, error) {
	if w.Ended() {
		return nil, errors.New("the worker has ended")
	}
	request, err := http.NewRequest(method, w.rest+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: 30 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return text, nil
}
