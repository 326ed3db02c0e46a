package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/cmd/internal/pipeline"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

func TestTailRefuses(t *testing.T) {
	const url = "mysql://u:s3cret@h/db"
	for name, test := range map[string]struct {
		args  []string
		flags tailFlags
		want  string
	}{
		"nothing":            {want: "nothing to read"},
		"two URLs":           {args: []string{url, url}, want: "more than one URL"},
		"URL and config":     {args: []string{url}, flags: tailFlags{config: "c.json"}, want: "a URL and --config"},
		"URL and binlog":     {args: []string{url}, flags: tailFlags{binlog: []string{"mysql-bin.000001"}}, want: "a URL and --binlog"},
		"history, no binlog": {args: []string{url}, flags: tailFlags{history: "h"}, want: "with --binlog only"},
	} {
		_, _, err := tailConfig(test.args, test.flags, zap.NewNop())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q", name, err, test.want)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password is in %v", name, err)
		}
	}
}

// ended is a source that ends with err.
type ended struct{ err error }

func (e ended) Start() offset.Offset                       { return offset.Offset{} }
func (e ended) Close() error                               { return nil }
func (e ended) Read(context.Context) (binlog.Event, error) { return nil, e.err }

// A server that shuts down is not the end of binlog files: tail says so.
func TestTailSaysThatTheServerClosed(t *testing.T) {
	out := &pipeline.Output{Delivery: &printed{printer: printer{form: printValues}, out: bufio.NewWriter(io.Discard)}}
	if err := printEvents(t.Context(), ended{io.EOF}, out); err != nil {
		t.Errorf("the end of files: %v", err)
	}
	if err := printEvents(t.Context(), ended{fmt.Errorf("MySQL ended the binlog stream: %w", io.EOF)}, out); !errors.Is(err, io.EOF) {
		t.Errorf("a closed stream: %v", err)
	}
}

// Without --registry tail writes what the converters do, but registers nothing in their registries.
func TestTailKeepsTheConverters(t *testing.T) {
	log := zap.NewNop()
	c := &config.Connector{Value: config.Converter{Avro: &config.Avro{
		Apicurio: true, Wide: true, Strategy: config.TopicStrategy, URLs: []string{"http://r/apis/registry/v2"}, User: "u", Password: "p",
	}}}
	regs, end, err := tailRegistries(c, &registryFlag{}, log)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	em, err := emitter.New(emitter.Config{Prefix: "p", Key: converter(&c.Key, regs, true), Value: converter(&c.Value, regs, false)})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	w := bufio.NewWriter(&out)
	p := &printed{printer: printer{form: printRecords, key: regs.text(c, true), value: regs.text(c, false)}, out: w}
	table := &schema.Table{Database: "d", Name: "t", Key: []int{0}, Columns: []schema.Column{{Name: "id", Type: 3}}}
	rows, err := binlog.NewRows(binlog.Info{File: "f.1", Pos: 4}, binlog.Create, table, offset.Offset{File: "f.1", Pos: 4}, []byte{0, 7, 0, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&pipeline.Output{Emitter: em, Delivery: p, Schema: regs.resolve}).Event(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	for _, want := range []string{`"key":"{\"id\":7}","value":`, `"value_schema_id":1,"value_b64":"AAAAAAAAAAAB`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
}

// Where a registry refuses a schema, tail names the statement and the column as they are in MySQL, as run does.
func TestTailNamesTheStatement(t *testing.T) {
	first := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := strings.Split(r.URL.Path, "/")[2]
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"subject":%q,"version":1,"id":1,"schema":%q}`, subject, first[subject])
			return
		}
		var asked struct{ Schema string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		if before, there := first[subject]; there && before != asked.Schema {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"error_code":409,"message":"incompatible"}`)
			return
		}
		first[subject] = asked.Schema
		fmt.Fprintf(w, `{"id":%d}`, len(first))
	}))
	defer server.Close()
	packed, err := os.Open("../../it/testdata/golden/avro-evolution-incompatible/mysql-bin.000001.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "mysql-bin.000001")
	content, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := tailFlags{binlog: []string{name}, registry: registryFlag{value: server.URL}}
	err = tail(t.Context(), nil, flags, false, zap.NewNop(), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "The table was changed last, at mysql-bin.000001:") || !strings.Contains(err.Error(), "by: ALTER TABLE") {
		t.Errorf("got %v", err)
	}
}
