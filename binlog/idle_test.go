package binlog

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemark-cdc/tidemark/binlog/server"
)

// heartbeatAt is a heartbeat of a server that stands at a position of a file.
func heartbeatAt(file string, pos uint32) []byte {
	raw := make([]byte, headerSize, headerSize+len(file))
	raw[4] = evHeartbeat
	binary.LittleEndian.PutUint32(raw[9:], uint32(headerSize+len(file)))
	binary.LittleEndian.PutUint32(raw[13:], pos)
	return append(raw, file...)
}

// TestIdleStreamIsComparedWithTheServer: a server whose binlog was reset goes on sending heartbeats and nothing that is written from then on. So
// an idle stream is compared with the binlog now and then, and begins anew where they do not agree. A server that only takes long to leave
// out what is done moves on, and is left alone.
func TestIdleStreamIsComparedWithTheServer(t *testing.T) {
	const file = "mysql-bin.000003"
	for name, c := range map[string]struct {
		tip     func(n int) (string, int64, error) // of the n-th look
		reached func(n int) uint32                 // what the heartbeats say; nil: 500
		want    string                             // "": nothing
		kind    error
		looks   int // until then, or in ten minutes
	}{
		"nothing new":         {tip: func(int) (string, int64, error) { return file, 500, nil }, looks: 10},
		"the binlog is short": {tip: func(int) (string, int64, error) { return file, 158, nil }, want: "mysql-bin.000003:158, and the stream has come to mysql-bin.000003:500: the binlog was reset", kind: server.ErrAstray, looks: 1},
		"an earlier file":     {tip: func(int) (string, int64, error) { return "mysql-bin.000001", 900, nil }, want: "was reset", kind: server.ErrAstray, looks: 1},
		"a later file":        {tip: func(int) (string, int64, error) { return "mysql-bin.000004", 158, nil }, want: "nothing came after mysql-bin.000003:500", kind: server.ErrAstray, looks: 2},
		"more, once": {tip: func(n int) (string, int64, error) {
			if n == 1 {
				return file, 700, nil
			}
			return file, 500, nil
		}, looks: 10},
		"it leaves out what is done": {tip: func(int) (string, int64, error) { return file, 1 << 20, nil }, reached: func(n int) uint32 { return uint32(500 + n) }, looks: 10},
		"another server":             {tip: func(int) (string, int64, error) { return "", 0, server.ErrMoved }, want: "nothing comes from the server that is read", kind: server.ErrMoved, looks: 1},
		"the password was changed":   {tip: func(int) (string, int64, error) { return "", 0, mysql.NewDefaultError(1045, "u", "h", "YES") }, looks: 1},
		"it does not answer":         {tip: func(int) (string, int64, error) { return "", 0, errors.New("connection refused") }, looks: 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looks := 0
				i := idle{tip: func(context.Context) (string, int64, error) {
					looks++
					return c.tip(looks)
				}}
				var err error
				for beat := 0; beat <= 60 && err == nil; beat++ {
					reached := uint32(500)
					if c.reached != nil {
						reached = c.reached(beat)
					}
					err = i.heartbeat(t.Context(), heartbeatAt(file, reached), file, 500)
					time.Sleep(10 * time.Second)
				}
				switch {
				case c.want == "" && err != nil, c.want != "" && (!errors.Is(err, c.kind) || !server.Transient(err) || !strings.Contains(err.Error(), c.want)):
					t.Errorf("got %v", err)
				}
				if looks != c.looks {
					t.Errorf("%d looks, want %d", looks, c.looks)
				}
			})
		})
	}
}

// TestIdleStreamOfAReader: a reader looks when heartbeats come, and its error ends the stream.
func TestIdleStreamOfAReader(t *testing.T) {
	b := numberedBinlog()
	b.transaction(func() { b.insert("t", 1) })
	end := b.end
	b.events, b.pos = append(b.events, heartbeatAt("mysql-bin.000001", uint32(end)), heartbeatAt("mysql-bin.000001", uint32(end))), append(b.pos, -1, -1)
	r, err := newReader(Config{Captured: func(string, string) bool { return true }}, b)
	if err != nil {
		t.Fatal(err)
	}
	r.idle.tip = func(context.Context) (string, int64, error) { return "mysql-bin.000001", 158, nil }
	for {
		r.idle.next = time.Now().Add(-time.Second)
		if _, err = r.Read(t.Context()); err != nil {
			break
		}
	}
	if !errors.Is(err, server.ErrAstray) {
		t.Errorf("got %v", err)
	}
	if _, again := r.Read(t.Context()); again == nil || again.Error() != err.Error() {
		t.Errorf("a later Read: %v", again)
	}
}
