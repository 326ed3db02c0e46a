package binlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/offset"
)

// idleLook is how often an idle stream is compared with the server's binlog.
const idleLook = time.Minute

// idle asks a server from which nothing but heartbeats comes whether there really is nothing. When its binlog is reset (RESET BINARY LOGS AND
// GTIDS), MySQL goes on sending heartbeats, and leaves out what is written from then on, until the new file is longer than the old one was. And
// behind one address a failover may have left the stream with the old server, which nobody writes to any more.
type idle struct {
	tip  func(ctx context.Context) (file string, pos int64, err error)
	next time.Time // when to look; zero: not decided yet
	file string    // where the last heartbeat said that the stream was, when the server had more than that; "": it had not
	pos  int64
}

// heartbeat is called with each heartbeat and the place that the stream has come to. Its error ends the stream, which then begins anew.
func (i *idle) heartbeat(ctx context.Context, raw []byte, file string, pos int64) error {
	if i.tip == nil || file == "" {
		return nil
	}
	now := time.Now()
	if i.next.IsZero() {
		i.next = now.Add(idleLook)
	}
	if now.Before(i.next) {
		return nil
	}
	i.next = now.Add(idleLook)
	var h header
	if err := h.parse(raw); err != nil {
		return err
	}
	there, reached, _, err := parseHeartbeat(h, raw[headerSize:]) // which also moves while the server leaves out what is done
	if err != nil {
		return err
	}
	tip, end, err := i.tip(ctx)
	switch {
	case errors.Is(err, server.ErrMoved):
		return fmt.Errorf("nothing comes from the server that is read after %s: %w", at(file, pos), err)
	case server.WrongPassword(err):
		i.next = now.Add(time.Hour) // a server may lock an account for that
		return nil
	case err != nil || tip == "":
		return nil // the stream itself shows what is wrong
	}
	before, known := offset.Offset{File: tip, Pos: end}.Before(offset.Offset{File: file, Pos: pos})
	switch {
	case known && before:
		return fmt.Errorf("the binlog of the server ends at %s, and the stream has come to %s: the binlog was reset (RESET BINARY LOGS AND GTIDS, RESET MASTER): %w",
			at(tip, end), at(file, pos), server.ErrAstray)
	case tip == file && end == pos:
		i.file = ""
	case i.file == there && i.pos == reached:
		return fmt.Errorf("the binlog of the server has come to %s, and nothing came after %s for %v but heartbeats: %w", at(tip, end), at(file, pos), idleLook, server.ErrAstray)
	default:
		i.file, i.pos = there, reached
	}
	return nil
}
