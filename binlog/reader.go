package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// rawStream gives raw events in order. next returns an event without its checksum, valid until the next call, and its
// position, or -1 when only the header tells it.
type rawStream interface {
	next(ctx context.Context) (raw []byte, start int64, err error)
	close() error
}

// Reader is a [Source] over a server's replication stream ([Open]) or over binlog files ([OpenFiles]). It is for one
// goroutine, and starts none.
type Reader struct {
	raw   rawStream
	asm   assembler
	start offset.Offset
	begun bool // something has been asked for
	jump  jump
	idle  idle
	err   error

	waiting func(context.Context) error // BeforeWaiting
	without int                         // raw events since it was called
}

var _ Source = (*Reader)(nil)

// newReader makes a reader that stands before the first event of raw.
func newReader(cfg Config, raw rawStream) (*Reader, error) {
	if cfg.Captured == nil {
		return nil, errors.New("binlog.Config.Captured is nil: no table would be captured")
	}
	log := cfg.Log
	if log == nil {
		log = zap.NewNop()
	}
	if cfg.Catalog == nil {
		cfg.Catalog = schema.NewCatalog(schema.CatalogOptions{Captured: cfg.Captured})
	}
	defs := &definitions{catalog: cfg.Catalog, ask: cfg.Refresh, history: len(cfg.History) > 0, fold: cfg.IgnoreCase}
	r := &Reader{raw: raw, jump: jump{least: shortWay, near: shortWay}}
	r.asm = assembler{
		captured:     cfg.Captured,
		queries:      cfg.IncludeQuery,
		transactions: cfg.Transactions,
		skipDDL:      cfg.SkipUnparseableDDL,
		unknownTable: cfg.UnknownTable,
		filtered:     cfg.Filtered,
		recount:      cfg.Recount,
		sources:      cfg.GTIDSources,
		sourceRows:   cfg.SourceRows,
		tables:       tables{captured: cfg.Captured, defs: defs, log: log},
		defs:         defs,
		history:      newHistory(cfg.History),
		catalogAt:    cfg.CatalogAt,
		spool:        &spool{dir: cfg.SpoolDir, limit: spoolMemory},
		ledger:       ledger{server: cfg.ServerUUID, filters: cfg.Filters},
		warn:         func(text string) { log.Warn(text) },
		once:         cfg.Once,
	}
	r.asm.tables.ahead = r.asm.aheadHere
	return r, nil
}

// begin is called when the start is known: the catalog takes what the history says up to there.
func (r *Reader) begin() {
	a := &r.asm
	a.history.advance(r.start, a.defs)
	a.lastSec = r.start.TsSec
	if r.start.Side == nil {
		r.start.Side = a.between()
	}
}

// Start is the offset at which the stream begins.
func (r *Reader) Start() offset.Offset { return r.start }

// longWithout is after how many raw events BeforeWaiting's function is called though there are more.
const longWithout = 8192

// BeforeWaiting has f called whenever Read is about to wait for the server, and now and then while there is always more.
// So what came of the events before can be kept back until then. An error of f is Read's. To be called before the first Read;
// files are never waited for.
func (r *Reader) BeforeWaiting(f func(ctx context.Context) error) { r.waiting = f }

// there is the next raw event if it is in memory and like nearly all, and nothing but the assembler has to do with it; nil: it has
// to be asked for, which may be waiting.
func (r *Reader) there() []byte {
	if r.without++; r.without >= longWithout && r.waiting != nil || r.apart() {
		return nil
	}
	if live, ok := r.raw.(liveStream); ok { // this way for what it costs: it is asked for each raw event
		return live.stream.There()
	}
	return nil
}

// apart says that the next raw event is to be looked at before the assembler has it: see straight.
func (r *Reader) apart() bool { return r.asm.skipping || r.jump.arrived }

// due says that it is time to call BeforeWaiting's function.
func (r *Reader) due() bool {
	live, ok := r.raw.(interface{ ready() bool })
	return r.without >= longWithout || ok && !live.ready()
}

// Read returns the next event; see [Source]. When ctx ends it returns ctx's error, and a later Read goes on.
func (r *Reader) Read(ctx context.Context) (Event, error) {
	if r.err != nil {
		return nil, r.err
	}
	if !r.begun { // until now the caller could change the catalog
		r.begun = true
		r.asm.defs.change()
	}
	if r.asm.holds() {
		ev, err := r.asm.more(ctx)
		if ev != nil || err != nil {
			r.err = err
			return ev, err
		}
	}
	for {
		ev, err := Event(nil), error(nil)
		if raw := r.there(); raw != nil {
			if ev, err = r.asm.take(ctx, raw, -1); err != nil {
				r.err = err
			}
		} else {
			if r.waiting != nil && r.due() {
				r.without = 0
				if err := r.waiting(ctx); err != nil {
					return nil, err
				}
			}
			ev, err = r.step(ctx)
		}
		if ev != nil || err != nil {
			return ev, err
		}
	}
}

// step asks for the next raw event and returns the first event of it, if it has any.
func (r *Reader) step(ctx context.Context) (Event, error) {
	raw, start, err := r.raw.next(ctx)
	if err == nil && r.apart() {
		raw, start, err = r.straight(ctx, raw, start)
	}
	if err != nil {
		if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			r.err = err
		}
		if a := &r.asm; err == io.EOF && !a.silent() {
			// Files may be cut off while the server writes; what is missing comes with the next start.
			switch {
			case a.in:
				a.warn(fmt.Sprintf("the binlog ends inside the transaction that begins at %s", at(a.file, a.begin)))
			case a.xa != nil:
				a.warn(fmt.Sprintf("the binlog ends inside XA transaction %s, which begins at %s", a.xa.XID, at(a.xa.File, a.xa.Pos)))
			}
		}
		return nil, err
	}
	ev, err := r.asm.take(ctx, raw, start)
	if err == nil && (raw[4] == evHeartbeat || raw[4] == evHeartbeatV2) {
		err = r.idle.heartbeat(ctx, raw, r.asm.file, r.asm.next)
	}
	if err != nil {
		r.err = err
	}
	return ev, err
}

// Close frees what the reader reads from.
func (r *Reader) Close() error {
	r.asm.payload.close()
	r.asm.spool.close()
	return r.raw.close()
}

// seek reads up to a position without giving anything out: GTIDs are counted, and what the file says of itself is known.
// The head of the file is always read, if there is anything of the file: the end of the last one leads to the beginning
// of one that is not there yet.
func (r *Reader) seek(ctx context.Context, file string, pos int64) error {
	a := &r.asm
	found, last := false, ""
	for {
		switch {
		case found:
		case a.file == file:
			found = a.next == pos || pos < firstPos
			if !found && a.next > pos {
				return fmt.Errorf("%s: no event begins there; one begins at %d and ends at %d: start at one of these (SHOW BINLOG EVENTS IN '%s' lists all)",
					at(file, pos), a.start, a.next, file)
			}
		case last == file:
			// The end of a file is where the next one begins.
			if found = a.left == pos; !found {
				return fmt.Errorf("%s: there is no such position in the binlog: the file ends at %d (SHOW BINLOG EVENTS IN '%s' lists all)", at(file, pos), a.left, file)
			}
		}
		if found && a.headed {
			break
		}
		last = a.file
		err := r.scan(ctx)
		if err == io.EOF && found {
			break
		}
		if err == io.EOF {
			return fmt.Errorf("%s: there is no such position in the binlog, which ends at %s", at(file, pos), at(a.file, a.next))
		}
		if err != nil {
			return err
		}
	}
	if a.in || a.xa != nil && !a.xa.covered {
		return fmt.Errorf("%s: the position is inside the transaction that begins at %s: start there, or at the end of a transaction",
			at(file, pos), at(file, a.begin))
	}
	return nil
}

// head reads the head of the first file.
func (r *Reader) head(ctx context.Context) error {
	for !r.asm.headed {
		if err := r.scan(ctx); err != nil {
			return err
		}
	}
	return nil
}

// scan reads one raw event without giving anything out.
func (r *Reader) scan(ctx context.Context) error {
	raw, start, err := r.raw.next(ctx)
	if err != nil {
		return err
	}
	a := &r.asm
	headed := a.headed
	a.scan = true
	_, err = a.feed(ctx, raw, start)
	a.scan = false
	if err == nil && !headed && a.headed && len(raw) > 4 && raw[4] != evPreviousGTIDs && raw[4] != evMariaGTIDList {
		err = a.errorf(errors.New("the file does not begin with FORMAT_DESCRIPTION and PREVIOUS_GTIDS: binlogs of servers before MySQL 5.6 cannot be read"), "")
	}
	return err
}

// position is the offset at which the assembler stands, between transactions.
func (r *Reader) position() offset.Offset {
	a := &r.asm
	o := offset.Offset{File: a.file, Pos: a.next, Side: a.between()}
	if a.gtids {
		o.GTIDs = a.set
	}
	return o
}
