package sim

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

const mysqlAddress = "mysql:3306"

// servers are MySQL servers that replicate each other; one of them, the primary, answers at the one address.
type servers struct {
	net   *network
	gtids bool
	work  *workload

	mu      sync.Mutex
	all     []*mysqld
	primary *mysqld
	done    []*transaction
	changes []*change            // those of captured tables
	rows    map[rowsPlace]*event // where the rows events are
	changed chan struct{}        // closed, and made anew, when a binlog grows or a server's state changes
	listens *listener
	refuse  bool // logins, with too many connections
	ended   bool
	streams sync.WaitGroup
	live    map[*session]bool
}

// rowsPlace names a rows event in what records say of themselves.
type rowsPlace struct {
	gtid, file string
	pos        int64
}

type place struct {
	file string
	pos  int64
}

type mysqld struct {
	of       *servers
	uuid     string
	id       uint32
	files    []*binlogFile
	last     int // number of the newest file
	executed gtidSet
	purged   gtidSet
	own      int64         // GTIDs of its own so far
	edges    map[place]int // positions between events outside of transactions, and of each BEGIN: transactions done
}

type binlogFile struct {
	name     string
	previous gtidSet
	events   []placed
	size     int64
}

type placed struct {
	pos  int64
	raw  []byte
	gtid string // of its group; "": the file's own
	head bool   // begins a group
}

func newServers(net *network, work *workload, gtids bool, count int) *servers {
	s := &servers{net: net, work: work, gtids: gtids, rows: make(map[rowsPlace]*event), changed: make(chan struct{}), live: make(map[*session]bool)}
	for i := range count {
		srv := &mysqld{
			of: s, uuid: fmt.Sprintf("0000000%d-1111-2222-3333-00000000000%d", i+1, i+1), id: uint32(100 + i), last: 7 * i,
			executed: gtidSet{}, purged: gtidSet{}, edges: make(map[place]int),
		}
		srv.rotate(0)
		s.all = append(s.all, srv)
	}
	s.primary = s.all[0]
	return s
}

func (s *servers) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// execute has the primary do the workload's next transaction, and the others replicate it.
func (s *servers) execute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := s.work.next()
	if s.gtids {
		s.primary.own++
		tx.gtid = fmt.Sprintf("%s:%d", s.primary.uuid, s.primary.own)
	}
	s.done = append(s.done, tx)
	for _, c := range tx.changes {
		if c.seq >= 0 {
			s.changes = append(s.changes, c)
		}
	}
	for _, srv := range s.all {
		srv.write(tx, s.primary.id)
	}
	s.tell()
}

// rotate begins a new binlog file, after so many transactions.
func (srv *mysqld) rotate(done int) {
	srv.last++
	name := fmt.Sprintf("mysql-bin.%06d", srv.last)
	if n := len(srv.files); n > 0 {
		f := srv.files[n-1]
		srv.add(f, evRotate, srv.id, rotateBody(name, firstPos), "", false)
	}
	f := &binlogFile{name: name, size: firstPos, previous: maps.Clone(srv.executed)}
	srv.files = append(srv.files, f)
	srv.edges[place{f.name, f.size}] = done
	srv.add(f, evFormat, srv.id, formatBody(), "", false)
	srv.edges[place{f.name, f.size}] = done
	srv.add(f, evPreviousGTIDs, srv.id, f.previous.encode(), "", false)
	srv.edges[place{f.name, f.size}] = done
}

func (srv *mysqld) add(f *binlogFile, kind byte, id uint32, body []byte, gtid string, head bool) int64 {
	pos := f.size
	f.size += int64(headerLen + len(body) + crcLen)
	f.events = append(f.events, placed{pos, rawEvent(kind, 0, time.Now().Unix(), id, f.size, body), gtid, head})
	return pos
}

// write writes a transaction, which is the last of those done, to the binlog.
func (srv *mysqld) write(tx *transaction, id uint32) {
	f := srv.files[len(srv.files)-1]
	before := tx.number
	if f.size > 40<<10 {
		srv.rotate(before)
		f = srv.files[len(srv.files)-1]
	}
	srv.edges[place{f.name, f.size}] = before
	kind, body := byte(evAnonymousGTID), gtidBody([16]byte{}, 0, time.Now().UnixMicro())
	if tx.gtid != "" {
		uuid, n := splitGTID(tx.gtid)
		var raw [16]byte
		hex.Decode(raw[:], []byte(strings.ReplaceAll(uuid, "-", "")))
		kind, body = evGTID, gtidBody(raw, n, time.Now().UnixMicro())
		srv.executed[uuid] = n
	}
	srv.add(f, kind, id, body, tx.gtid, true)
	srv.edges[place{f.name, f.size}] = before
	for _, ev := range tx.events {
		pos := srv.add(f, ev.kind, id, ev.body, tx.gtid, false)
		if ev.rows > 0 {
			srv.of.rows[rowsPlace{tx.gtid, f.name, pos}] = ev
		}
	}
	srv.edges[place{f.name, f.size}] = before + 1
}

// flushLogs begins a new file on the primary.
func (s *servers) flushLogs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.primary.rotate(len(s.done))
	s.tell()
}

// purge removes the primary's files before the one named; "": all but the newest. It says how many.
func (s *servers) purge(before string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	srv := s.primary
	n := 0
	for len(srv.files) > 1 && srv.files[0].name != before {
		srv.files = srv.files[1:]
		n++
	}
	srv.purged = maps.Clone(srv.files[0].previous)
	return n
}

// failover makes the next server the primary. What is connected is cut.
func (s *servers) failover(away time.Duration) {
	s.stop()
	s.mu.Lock()
	at := slices.Index(s.all, s.primary)
	s.primary = s.all[(at+1)%len(s.all)]
	s.mu.Unlock()
	time.Sleep(away)
	s.start()
}

// restart stops the primary for a while.
func (s *servers) restart(away time.Duration) {
	s.stop()
	s.flushLogs()
	time.Sleep(away)
	s.start()
}

// stop ends all connections, and lets nobody in.
func (s *servers) stop() {
	s.mu.Lock()
	l := s.listens
	s.listens = nil
	live := make([]*session, 0, len(s.live))
	for c := range s.live {
		live = append(live, c)
	}
	s.mu.Unlock()
	if l != nil {
		l.Close()
	}
	for _, c := range live {
		c.end.abort()
		c.end.Close()
	}
}

// start lets the primary be connected to.
func (s *servers) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.listens != nil {
		return
	}
	l, err := s.net.Listen("tcp", mysqlAddress)
	if err != nil {
		panic(err)
	}
	s.listens = l.(*listener)
	srv := s.primary
	s.streams.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.streams.Go(func() { srv.serve(c.(*end)) })
		}
	})
}

// end stops everything and waits for it.
func (s *servers) end() {
	s.mu.Lock()
	s.ended = true
	s.tell()
	s.mu.Unlock()
	s.stop()
	s.streams.Wait()
}

func (s *servers) refuseLogins(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// streamsNow are the connections over which a binlog is read.
func (s *servers) streamsNow() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*session
	for c := range s.live {
		if c.dumping {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *session) int { return a.number - b.number })
	return list
}

// all transactions and captured changes so far.
func (s *servers) total() (transactions, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.done), len(s.changes)
}

// fileFor finds where a stream by GTIDs begins: the newest file of which all transactions before are in the set.
func (srv *mysqld) fileFor(set gtidSet) (*binlogFile, error) {
	for i := len(srv.files) - 1; i >= 0; i-- {
		if set.contains(srv.files[i].previous) {
			return srv.files[i], nil
		}
	}
	return nil, mysql.NewError(1236, "Cannot replicate because the source purged required binary logs.")
}

// after gives the file after f; nil: there is none yet.
func (srv *mysqld) after(f *binlogFile) *binlogFile {
	at := slices.Index(srv.files, f)
	if at < 0 || at == len(srv.files)-1 {
		return nil
	}
	return srv.files[at+1]
}

// dumpRequest is what a dump command asks for.
type dumpRequest struct {
	byGTID bool
	file   string
	pos    int64
	set    gtidSet
	noWait bool
}

func parseDump(cmd byte, data []byte) (dumpRequest, error) {
	if cmd == mysql.COM_BINLOG_DUMP {
		return dumpRequest{file: string(data[10:]), pos: int64(binary.LittleEndian.Uint32(data)), noWait: data[4]&1 != 0}, nil
	}
	r := dumpRequest{byGTID: true, noWait: data[0]&1 != 0}
	name := int(binary.LittleEndian.Uint32(data[6:]))
	r.file = string(data[10 : 10+name])
	data = data[10+name:]
	r.pos = int64(binary.LittleEndian.Uint64(data))
	var err error
	r.set, err = decodeGTIDs(data[12:])
	return r, err
}
