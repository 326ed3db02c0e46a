package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/offset"
)

// Replica is how a reader presents itself to the server.
type Replica struct {
	ServerID uint32 // database.server.id: no other replica of the server may have it
	Name     string // the connector's name, as SHOW REPLICAS shows it
}

// Open opens a reader over the replication stream of the server that conn is connected to. It asks conn where the
// stream begins, and opens a connection of its own for it; conn stays the caller's. A position of which the server may
// no longer have everything, or that is not its own, is an error ([server.ErrPurged], [server.ErrOtherServer]).
//
// With GTIDs a position given as file and position is read from the beginning of its file, to know the GTIDs before it:
// that may take a while. The caller closes the reader. Errors are to be judged by [server.Transient].
func Open(ctx context.Context, conn *server.Conn, replica Replica, cfg Config, from Start) (*Reader, error) {
	info, err := conn.Info(ctx)
	if err != nil {
		return nil, err
	}
	if cfg.ServerUUID == "" {
		cfg.ServerUUID = info.UUID
	}
	if from.Offset != nil {
		if err := sameServer(conn.Address(), info, *from.Offset); err != nil {
			return nil, err
		}
		sayUnproven(cfg.Log, info, *from.Offset)
		if cfg.Filtered, err = filtered(ctx, conn, cfg, *from.Offset); err != nil {
			return nil, err
		}
	}
	r, err := newReader(cfg, nil)
	if err != nil {
		return nil, err
	}
	plan, err := planLive(ctx, conn, info, cfg, from)
	if err != nil {
		return nil, err
	}
	if err := proveFile(ctx, conn, replica, plan, cfg.ServerUUID); err != nil {
		return nil, err
	}
	again := &liveAgain{conn: conn, replica: replica, gtids: info.UsesGTIDs(), server: cfg.ServerUUID, asm: &r.asm}
	r.asm.reopen, r.asm.defs.unchanged = again.reopen, again.unchanged
	r.jump.open = again.at
	r.idle.tip = conn.Tip
	stream, err := conn.Dump(ctx, server.DumpRequest{ServerID: replica.ServerID, Identity: replica.Name, From: plan.dump, Queries: cfg.IncludeQuery})
	if err != nil {
		return nil, err
	}
	r.raw = liveStream{stream}
	if err := r.startLive(ctx, plan); err != nil {
		r.Close()
		return nil, err
	}
	r.begin()
	return r, nil
}

// sameServer refuses an offset of another server whose position nothing proves: without GTIDs file names and positions
// mean nothing there.
func sameServer(address string, info *server.Info, o offset.Offset) error {
	if o.Side == nil || o.Side.Server == "" || o.Side.Server == info.UUID || !o.GTIDs.IsAbsent() && info.UsesGTIDs() {
		return nil
	}
	why := "without GTIDs its binlog positions have nothing to do with those"
	mend := ""
	if !o.GTIDs.IsAbsent() {
		why = "it does not use the GTIDs that the offset has (gtid_mode is " + info.GTIDMode + "), and its binlog positions have nothing to do with those"
		mend = "set gtid_mode=ON there (SET PERSIST, step by step by way of OFF_PERMISSIVE and ON_PERMISSIVE), or "
	}
	return fmt.Errorf("the stored offset %s is from the server with server_uuid %s; MySQL at %s is %s, and %s: %w. "+
		"Check database.hostname; if this is the right server now, "+mend+startElsewhere, at(o.File, o.Pos), o.Side.Server, address, info.UUID, why, server.ErrOtherServer)
}

// sayUnproven says what going on by position leaves open. Debezium's offset does not say which server it is from.
func sayUnproven(log *zap.Logger, info *server.Info, o offset.Offset) {
	if log == nil || !o.GTIDs.IsAbsent() && info.UsesGTIDs() {
		return
	}
	if !o.GTIDs.IsAbsent() {
		log.Warn("the stored offset has GTIDs, and the server may commit transactions without any (gtid_mode is not ON), so it is gone by file and position: "+
			"they hold on this server only, and a failover needs gtid_mode=ON", zap.String("offset", at(o.File, o.Pos)), zap.String("gtid_mode", info.GTIDMode))
	}
	if o.Side != nil && o.Side.Server != "" {
		return
	}
	log.Warn("the stored offset does not say which server it is from, as those of Debezium do not, and without GTIDs its position is all there is to go by: "+
		"an event that can begin there does, and more cannot be proven. From the next save on Tidemark knows the server again",
		zap.String("offset", at(o.File, o.Pos)), zap.String("server_uuid", info.UUID))
}

// knownFile is what an offset says of its file on the server.
func knownFile(o offset.Offset, uuid string) fileTime {
	if o.Side == nil || o.Side.Server == "" || o.Side.Server != uuid {
		return fileTime{}
	}
	return fileTime{o.File, o.Side.FileTime}
}

// proveFile compares the head of the stored offset's file with what the offset says of it, where the stream itself may not come
// by it: by GTIDs it begins where something is missing. A server that was restored from a backup gives the numbers behind it a second
// time, and then the set alone looks as if nothing had happened. Inside a transaction its commit time says the same.
func proveFile(ctx context.Context, conn *server.Conn, replica Replica, p livePlan, uuid string) error {
	known := knownFile(p.start, uuid)
	if !p.inTx || !p.dump.ByGTID || p.dump.Direct || known.seconds == 0 || p.start.Side.Open != nil && p.start.Side.Open.CommitMicros != 0 {
		return nil
	}
	stream, err := conn.Dump(ctx, server.DumpRequest{
		ServerID: replica.ServerID, Identity: replica.Name, Beside: true, ToEnd: true,
		From: server.DumpFrom{File: known.file, Pos: firstPos, Origin: server.Stored},
	})
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		raw, err := stream.Next(ctx)
		if errors.Is(err, server.ErrPurged) || err == io.EOF {
			return nil // it is gone, and the set alone counts
		}
		var h header
		if err == nil {
			err = h.parse(raw)
		}
		switch {
		case err != nil:
			return err
		case h.typ == evRotate:
		case h.typ != evFormat || h.time == 0 || int64(h.time) == known.seconds:
			return nil
		default:
			return fmt.Errorf("MySQL at %s: %w", conn.Address(), known.another(int64(h.time)))
		}
	}
}

// filtered says whether the server leaves out rows that the one before had. It is asked only when rows may have to be
// counted.
func filtered(ctx context.Context, conn *server.Conn, cfg Config, o offset.Offset) (bool, error) {
	if cfg.Filtered || o.Side == nil || o.Side.Open == nil || o.Side.Server == cfg.ServerUUID {
		return cfg.Filtered, nil
	}
	filters, err := conn.Filters(ctx)
	return filters != "", err
}

// livePlan is how a live stream begins.
type livePlan struct {
	dump  server.DumpFrom
	start offset.Offset // as far as it is known before reading
	gtids bool          // the server has GTIDs
	seek  bool          // read up to start, from the beginning of its file
	head  bool          // the stream begins with its first file, whose head tells the GTIDs
	inTx  bool          // start is a stored offset, perhaps inside a transaction
}

func planLive(ctx context.Context, conn *server.Conn, info *server.Info, cfg Config, from Start) (livePlan, error) {
	gtids := info.UsesGTIDs()
	p := livePlan{gtids: gtids}
	var err error
	switch {
	case from.Offset != nil:
		p.start, p.inTx = *from.Offset, true
		p.start.GTIDs, err = requested(p.start.GTIDs, info, cfg.GTIDSources)
		if err == nil {
			p.dump, err = conn.Locate(ctx, p.start, server.Stored)
		}
	case !from.GTIDs.IsAbsent():
		if !gtids {
			return p, fmt.Errorf("start at GTID set %s: MySQL at %s does not use GTIDs (gtid_mode is not ON); start at FILE:POS", from.GTIDs, conn.Address())
		}
		if p.start.GTIDs, err = requested(from.GTIDs, info, cfg.GTIDSources); err == nil {
			p.dump, err = conn.Locate(ctx, p.start, server.Given)
		}
	case from.File != "":
		p.start.File, p.start.Pos = from.File, max(from.Pos, firstPos)
		p.dump, err = conn.Locate(ctx, p.start, server.Given)
	case from.Oldest:
		logs, err := conn.BinaryLogs(ctx)
		if err != nil {
			return p, err
		}
		if len(logs) == 0 {
			return p, fmt.Errorf("MySQL at %s: %w: it has no binlog", conn.Address(), server.ErrSetup)
		}
		p.head = true
		p.dump = server.DumpFrom{File: logs[0].Name, Pos: firstPos, Origin: server.Given}
		return p, nil
	default:
		now, err := conn.Position(ctx)
		if err != nil {
			return p, err
		}
		p.start.File, p.start.Pos = now.File, now.Pos
		p.dump = server.DumpFrom{File: now.File, Pos: now.Pos, Origin: server.Given}
		if gtids {
			if p.start.GTIDs, err = gtidSet(now.GTIDs); err != nil {
				return p, fmt.Errorf("MySQL at %s: executed GTIDs: %w", conn.Address(), err)
			}
			p.dump = server.DumpFrom{GTIDs: now.GTIDs, ByGTID: true, Origin: server.Given}
		}
		return p, nil
	}
	if err != nil {
		return p, err
	}
	// Read by file, only the beginning of the file tells the GTIDs before a position, and that of a transaction whose
	// BEGIN is there.
	// Likewise only what comes before says how many rows a position has behind it that Debezium stored inside an XA
	// transaction.
	if !p.dump.ByGTID && (gtids || !p.start.GTIDs.IsAbsent() || p.inTx && coverOf(p.start) != nil) {
		p.seek = true
		p.dump.Pos = firstPos
	}
	return p, nil
}

// requested is the set with which a server is asked. Of sources that do not count (Config.GTIDSources) it has what the
// server has executed of them: what it never heard of would be refused, and what it has purged is not asked for.
func requested(set offset.GTIDSet, info *server.Info, sources func(string) bool) (offset.GTIDSet, error) {
	if sources == nil || set.IsAbsent() || !info.UsesGTIDs() {
		return set, nil
	}
	executed, err := gtidSet(info.Executed)
	if err != nil {
		return set, fmt.Errorf("executed GTIDs of the server: %w", err)
	}
	purged, err := gtidSet(info.Purged)
	if err != nil {
		return set, fmt.Errorf("purged GTIDs of the server: %w", err)
	}
	others := func(source string) bool { return !sources(source) }
	foreign := set.Filter(others)
	known := foreign.Subtract(foreign.Subtract(executed))
	return set.Filter(sources).Union(known).Union(purged.Filter(others)), nil
}

// gtidSet reads a set that is present, even when it is empty.
func gtidSet(text string) (offset.GTIDSet, error) {
	if text == "" {
		return offset.EmptyGTIDSet(), nil
	}
	return offset.ParseGTIDSet(text)
}

func (r *Reader) startLive(ctx context.Context, p livePlan) error {
	a := &r.asm
	r.start = p.start
	a.jumps = p.dump.ByGTID
	a.gtids = p.gtids
	if p.inTx {
		a.cover = coverOf(p.start)
		a.before = knownFile(p.start, a.server)
	}
	switch {
	case p.seek:
		if err := r.seek(ctx, p.start.File, p.start.Pos); err != nil {
			return err
		}
		if !p.start.GTIDs.IsAbsent() {
			a.set = a.set.Union(p.start.GTIDs)
		} else if p.gtids {
			r.start.GTIDs = a.set
		}
	case p.head:
		if err := r.head(ctx); err != nil {
			return err
		}
		r.start = r.position()
	default:
		a.cover = nil
		a.set = p.start.GTIDs
		if s := p.start.Side; p.start.Pos >= 1<<32 && (s == nil || s.Server == a.server) {
			// The GTID event of the transaction that is open lies in front of its BEGIN.
			a.floor = offset.Offset{File: p.start.File, Pos: p.start.Pos - floorSlack}
		}
		for r.start.File == "" { // by GTIDs alone: the server says at once in which file it begins
			if err := r.scan(ctx); err != nil {
				return err
			}
			r.start.File, r.start.Pos = a.file, a.next
		}
	}
	if p.inTx {
		r.resumeAt(r.start, p.dump.ByGTID)
	}
	return nil
}

// floorSlack is more than the events of a group take that come before its BEGIN.
const floorSlack = 64 << 10

// liveStream is a server's stream as a rawStream.
type liveStream struct{ stream *server.Stream }

func (l liveStream) next(ctx context.Context) ([]byte, int64, error) {
	raw, err := l.stream.Next(ctx)
	if err != nil {
		return nil, 0, err
	}
	return raw[:len(raw)-l.stream.ChecksumLen()], -1, nil
}

// ready says whether next has an event without waiting for the server.
func (l liveStream) ready() bool { return l.stream.Ready() }

func (l liveStream) close() error { return l.stream.Close() }
