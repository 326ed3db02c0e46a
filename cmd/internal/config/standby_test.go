package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStandbySessionTimeout(t *testing.T) {
	for value, want := range map[string]any{"": 10 * time.Second, "6000": 6 * time.Second, "1999": "from 2000", "1800001": "to 1800000", "soon": "whole number"} {
		folder := t.TempDir()
		line := ""
		if value != "" {
			line = "standby.session.timeout.ms=" + value + "\n"
		}
		write := func(name, text string) string {
			path := filepath.Join(folder, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		worker := write("worker.properties", "bootstrap.servers=k:9092\ngroup.id=g\noffset.storage.topic=offsets\n"+line)
		connector := write("c.json", `{"name":"c","config":{"connector.class":"io.debezium.connector.mysql.MySqlConnector","database.hostname":"m","database.user":"u",
			"database.server.id":"7","topic.prefix":"p","snapshot.mode":"no_data"}}`)
		cfg, err := Load([]string{worker, connector}, Options{})
		switch text, bad := want.(string); {
		case bad && (err == nil || !strings.Contains(err.Error(), "standby.session.timeout.ms") || !strings.Contains(err.Error(), text)):
			t.Errorf("%q: %v", value, err)
		case !bad && (err != nil || cfg.Worker.StandbySession != want):
			t.Errorf("%q: %+v, %v", value, cfg, err)
		}
	}
}
