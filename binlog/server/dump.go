package server

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// DumpRequest says which stream to open.
type DumpRequest struct {
	ServerID uint32 // our own, as a replica; must be unique among the server's replicas
	Identity string // name of the connector: shown by SHOW REPLICAS, and by which the server knows us again
	From     DumpFrom

	// Queries asks a MariaDB for the texts of statements (ANNOTATE_ROWS), which it sends to nobody else. A MySQL sends its
	// own in any case.
	Queries bool

	// Beside says that the connector has a stream already, which this one must not end: it is not shown by SHOW REPLICAS.
	Beside bool

	// Again says that the stream takes the place of one that the connector has just had: it has been seen that no other
	// replica has its server id.
	Again bool

	// ToEnd ends the stream, with a bare io.EOF, where the server's binlog ends, instead of waiting for more.
	ToEnd bool
}

// Dump opens a binlog stream on a connection of its own, as a registered replica with the request's server id.
//
// A connection of the same connector that the server still holds (ours, after a network failure or a kill) is ended by
// the server; if a process is behind it, its stream ends with [ErrReplaced]. Another replica with our server id is an
// [ErrServerIDInUse] before anything is sent.
//
// The stream is from the server that [Conn.Info] has told of, or there is none ([ErrMoved]).
//
// What the server has to say about the position comes with the first [Stream.Next]. ctx is for opening only.
func (c *Conn) Dump(ctx context.Context, req DumpRequest) (*Stream, error) {
	if req.ServerID == 0 {
		return nil, faultf(ErrSetup, "database.server.id is 0, which no replica may have; use a number of 1 to 4294967295 that no other replica of %s has", c.name())
	}
	sess, err := c.login(ctx, false)
	if err != nil {
		return nil, err
	}
	if err := c.recognise(ctx, sess); err != nil {
		sess.wire.Close()
		return nil, err
	}
	s, err := c.dump(ctx, sess, req)
	if err != nil {
		sess.wire.Close()
		return nil, err
	}
	return s, nil
}

func (c *Conn) dump(ctx context.Context, sess *session, req DumpRequest) (*Stream, error) {
	maria := c.maria.Load()
	uuid := replicaUUID(req.Identity, req.ServerID)
	if req.Beside { // the server ends a stream for another one of the same uuid, a MariaDB for one of the same server id
		uuid = replicaUUID(req.Identity+"\x00beside", req.ServerID)
		if maria {
			req.ServerID = besideID(uuid, req.ServerID)
		}
	}
	// Each variable by its name of today and of before 8.0.26; they are session variables of free name, so setting
	// both does no harm. The server sends the events with the checksums that the files have.
	if _, err := sess.query(ctx, fmt.Sprintf("SET @source_binlog_checksum=@@GLOBAL.binlog_checksum, @master_binlog_checksum=@@GLOBAL.binlog_checksum, "+
		"@source_heartbeat_period=%[1]d, @master_heartbeat_period=%[1]d, @replica_uuid='%[2]s', @slave_uuid='%[2]s'",
		c.cfg.Heartbeat.Nanoseconds(), uuid)); err != nil {
		return nil, err
	}
	res, err := sess.query(ctx, "SELECT @source_binlog_checksum AS c")
	if err != nil {
		return nil, err
	}
	checksum := strings.EqualFold(res.text(0, "c"), "CRC32")
	if maria {
		if err := c.mariaReplica(ctx, sess, req.From); err != nil {
			return nil, err
		}
	}
	if !req.Beside {
		if err := c.register(ctx, sess, req, uuid); err != nil {
			return nil, err
		}
	}
	command, err := dumpCommand(req, maria)
	if err != nil {
		return nil, err
	}
	if err := sess.run(ctx, queryTimeout, func() error {
		sess.ResetSequence()
		return sess.WritePacket(command)
	}); err != nil {
		return nil, &fault{text: fmt.Sprintf("%s: asking for the binlog", c.name()), cause: err}
	}
	// From here on the client library reads nothing any more: its buffer is empty, because the server sends nothing
	// unasked, and the stream reads below it.
	s := newStream(sess.guard.Conn, sess.wire, c.cfg, c.name(), req, checksum)
	if s.conn != s.wire {
		s.readsAhead(sess.wire)
	}
	return s, nil
}

// register puts us on the list of SHOW REPLICAS.
func (c *Conn) register(ctx context.Context, sess *session, req DumpRequest, uuid string) error {
	// Looking before registering finds a replica that is there already: registering would take its line in SHOW
	// REPLICAS. Looking again afterwards finds one that did the same at the same time: the later one has the line.
	if !req.Again {
		if err := c.serverIDFree(ctx, req, uuid); err != nil {
			return err
		}
	}
	if err := sess.run(ctx, queryTimeout, func() error { return register(sess, req) }); err != nil {
		return c.needs(&fault{text: fmt.Sprintf("%s: registering as a replica", c.name()), cause: err}, "REPLICATION SLAVE")
	}
	if req.Again {
		return nil
	}
	return c.serverIDFree(ctx, req, uuid)
}

// register sends COM_REGISTER_SLAVE, which puts us on the list of SHOW REPLICAS until the connection ends.
func register(sess *session, req DumpRequest) error {
	host := reportHost(req.Identity)
	data := make([]byte, 4, 64+len(host))
	data = append(data, mysql.COM_REGISTER_SLAVE)
	data = binary.LittleEndian.AppendUint32(data, req.ServerID)
	data = append(data, byte(len(host)))
	data = append(data, host...)
	data = append(data, 0, 0)                        // user, password
	data = binary.LittleEndian.AppendUint16(data, 0) // port
	data = binary.LittleEndian.AppendUint32(data, 0) // rank, unused
	data = binary.LittleEndian.AppendUint32(data, 0) // source id, filled in by the server
	sess.ResetSequence()
	if err := sess.WritePacket(data); err != nil {
		return err
	}
	_, err := sess.ReadOKPacket()
	return err
}

// reportHost is what SHOW REPLICAS shows of us.
func reportHost(identity string) string {
	const most = 60 // bytes that a server before 8.0.17 has room for
	if len(identity) > most {
		return strings.ToValidUTF8(identity[:most], "")
	}
	return identity
}

// dumpCommand returns the packet that starts the stream, with room for its header.
func dumpCommand(req DumpRequest, maria bool) ([]byte, error) {
	const (
		noWait   = 1 // flags: for more at the end
		annotate = 2 // with ANNOTATE_ROWS
	)
	flags := uint16(0)
	if req.ToEnd {
		flags |= noWait
	}
	from := req.From
	data := make([]byte, 4, 64+len(from.File)+len(from.GTIDs))
	if maria {
		file, pos := from.File, from.Pos
		if from.ByGTID { // the session's variables say where
			file, pos = "", 4
		}
		if req.Queries {
			flags |= annotate
		}
		if pos > math.MaxUint32 {
			return nil, faultf(ErrSetup, "a MariaDB cannot be asked for position %d of a binlog file, only for those below 4 GiB: start by GTIDs", pos)
		}
		data = append(data, mysql.COM_BINLOG_DUMP)
		data = binary.LittleEndian.AppendUint32(data, uint32(pos))
		data = binary.LittleEndian.AppendUint16(data, flags)
		data = binary.LittleEndian.AppendUint32(data, req.ServerID)
		return append(data, file...), nil
	}
	if !from.ByGTID && from.Pos <= math.MaxUint32 {
		data = append(data, mysql.COM_BINLOG_DUMP)
		data = binary.LittleEndian.AppendUint32(data, uint32(from.Pos))
		data = binary.LittleEndian.AppendUint16(data, flags)
		data = binary.LittleEndian.AppendUint32(data, req.ServerID)
		return append(data, from.File...), nil
	}
	// This command has room for 64-bit positions, too. With a file it begins there and leaves out the given GTIDs.
	file, pos, gtids := "", int64(4), from.GTIDs
	switch {
	case !from.ByGTID:
		file, pos, gtids = from.File, from.Pos, ""
	case from.Direct:
		file, pos = from.File, from.Pos
	}
	set, err := encodeGTIDs(gtids)
	if err != nil {
		return nil, err
	}
	data = append(data, mysql.COM_BINLOG_DUMP_GTID)
	data = binary.LittleEndian.AppendUint16(data, flags)
	data = binary.LittleEndian.AppendUint32(data, req.ServerID)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(file)))
	data = append(data, file...)
	data = binary.LittleEndian.AppendUint64(data, uint64(pos))
	data = binary.LittleEndian.AppendUint32(data, uint32(len(set)))
	return append(data, set...), nil
}

// encodeGTIDs turns a set's text into the form of the dump command, tags included.
func encodeGTIDs(text string) ([]byte, error) {
	set, err := mysql.ParseMysqlGTIDSet(oneLine(text))
	if err != nil {
		return nil, &fault{text: fmt.Sprintf("GTID set %q", shorten(text)), cause: err}
	}
	return set.Encode(), nil
}

// replicaUUID returns the uuid under which a connector replicates: always the same, so that the server ends a dead
// connection of ours when the next one comes.
func replicaUUID(identity string, serverID uint32) string {
	h := sha1.New()
	fmt.Fprintf(h, "tidemark replica\x00%s\x00%d", identity, serverID)
	id := h.Sum(nil)[:16]
	id[6] = id[6]&0x0f | 0x50 // version 5: from a name
	id[8] = id[8]&0x3f | 0x80
	text := hex.EncodeToString(id)
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// serverIDFree reports another replica that uses our server id, as far as the server knows it.
func (c *Conn) serverIDFree(ctx context.Context, req DumpRequest, uuid string) error {
	list, err := c.replicas(ctx)
	if isKind(err, ErrAccess) && c.maria.Load() {
		return nil // it shows them to administrators only
	}
	if err != nil {
		return err
	}
	return c.foreign(list, req.ServerID, uuid, reportHost(req.Identity))
}
