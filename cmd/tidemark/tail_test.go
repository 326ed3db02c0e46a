package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/cmd/internal/pipeline"
	"github.com/tidemark-cdc/tidemark/offset"
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
