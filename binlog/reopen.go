package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/offset"
)

// liveAgain opens streams beside that of a reader, on connections of their own.
type liveAgain struct {
	conn    *server.Conn
	replica Replica
	gtids   bool
	server  string
	asm     *assembler
}

func (l *liveAgain) dump(ctx context.Context, from server.DumpFrom, toEnd bool) (rawStream, error) {
	stream, err := l.conn.Dump(ctx, server.DumpRequest{
		ServerID: l.replica.ServerID, Identity: l.replica.Name, From: from, Beside: true, ToEnd: toEnd, Queries: l.asm.queries,
	})
	if err != nil {
		return nil, err
	}
	return liveStream{stream}, nil
}

// reopen opens the binlog at the beginning of a prepared XA transaction: by its GTID, where the server has GTIDs, since
// it may stand elsewhere there, else by its position.
func (l *liveAgain) reopen(ctx context.Context, p offset.Prepared) (rawStream, bool, error) {
	from := server.DumpFrom{File: p.File, Pos: p.Pos, Origin: server.Stored}
	if p.GTID != "" && l.gtids {
		id, err := offset.ParseGTID(p.GTID)
		if err != nil {
			return nil, false, err
		}
		if !id.MariaDB { // whose positions cannot leave out one transaction
			var one offset.GTIDSet
			from.GTIDs, from.ByGTID = l.asm.set.Subtract(one.Add(id)).String(), true
		}
	}
	if !from.ByGTID && p.Server != l.server {
		return nil, false, fmt.Errorf("they stand in the binlog of the server with server_uuid %s, and this one is %s: %w; %s", p.Server, l.server, server.ErrOtherServer, xaWaysOut(p.XID))
	}
	stream, err := l.dump(ctx, from, false)
	return stream, true, err
}

// unchanged reads from the present position to the end of the server's binlog, and says whether no statement on the way
// mentions the table. The server says where that is: on a busy one a stream that waits for more would never be idle.
func (l *liveAgain) unchanged(ctx context.Context, _, table string) (bool, error) {
	stream, err := l.dump(ctx, server.DumpFrom{File: l.asm.file, Pos: l.asm.next, Origin: server.Stored}, true)
	if err != nil {
		return false, err
	}
	defer stream.close()
	return mentionedNowhere(ctx, stream, table)
}

// mentionedNowhere reads a stream to its end, or to the heartbeat that says that nothing more is there.
func mentionedNowhere(ctx context.Context, stream rawStream, table string) (bool, error) {
	for {
		raw, _, err := stream.next(ctx)
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		var h header
		if err := h.parse(raw); err != nil {
			return false, err
		}
		switch h.typ {
		case evHeartbeat, evHeartbeatV2:
			return true, nil
		case evQueryCompressed:
			return false, nil // it could say anything
		case evQuery:
			q, err := parseQuery(raw[headerSize:], 0)
			if err != nil {
				return false, err
			}
			if k := classify(q.database, q.text).kind; k != kindDDL && k != kindOther {
				continue
			}
			for _, name := range mentioned(decodeStatement(q)) {
				if strings.EqualFold(name, table) {
					return false, nil
				}
			}
		}
	}
}

// filesAgain opens binlog files a second time.
type filesAgain struct{ files []string }

// reopen opens the file of a prepared XA transaction where it begins; with a GTID all files, since the position may be
// that of another server.
func (f *filesAgain) reopen(_ context.Context, p offset.Prepared) (rawStream, bool, error) {
	if p.GTID != "" {
		return &fileStream{files: f.files}, false, nil
	}
	for i, path := range f.files {
		if filepath.Base(path) == p.File {
			return &fileStream{files: f.files[i:], jump: p.Pos}, true, nil
		}
	}
	return nil, false, errors.New("binlog file " + p.File + " is not among those given; " + xaWaysOut(p.XID))
}
