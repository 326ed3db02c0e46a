package it

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
)

// Workload is a set of writers that keep a log of what they did. Every transaction of a writer carries its next number into the
// table ledger, without gaps, so that after a lost connection the server itself says whether the commit took place.
//
//	ledger   one row a transaction: (worker, seq) without gaps; with NULLs, DECIMAL and text beyond ASCII
//	account  transfers between two rows in one transaction; the sum stays constant
//	moved    inserts, updates, deletes and changes of the key
//	bulk     transactions of 1 to many thousand rows: inserted, updated as a whole, deleted as a whole
type Workload struct {
	mysql    *MySQL
	database string
	maxRows  int
	stop     chan struct{}
	wg       sync.WaitGroup
	writers  []*writer
	rows     atomic.Int64
}

const (
	accounts       = 20
	initialBalance = 1000
)

// StartWorkload makes the database with its tables and starts the writers. Its biggest transactions have maxRows rows. All that
// happens from here on is in [Workload.Stop]'s log, so Tidemark has to start at or before this point.
func StartWorkload(t testing.TB, m *MySQL, database string, seed uint64, maxRows int) *Workload {
	t.Helper()
	CreateWorkloadTables(t, m, database)
	w := &Workload{mysql: m, database: database, maxRows: maxRows, stop: make(chan struct{})}
	first := &writer{w: w, id: 0, rng: rand.New(rand.NewPCG(seed, 0))}
	w.writers = append(w.writers, first)
	if err := first.transaction(first.openAccounts); err != nil {
		t.Fatalf("workload: %v", err)
	}
	for i, kind := range []func(*writer) func(*transaction) error{(*writer).transfer, (*writer).transfer, (*writer).move, (*writer).bulkLoad} {
		id, pause := i+1, 20
		if i == 3 {
			pause = 800 // its transactions are the big ones
		}
		v := &writer{w: w, id: id, rng: rand.New(rand.NewPCG(seed, uint64(id))), moved: map[int]movedRow{}, bulk: map[int][]Row{}}
		w.writers = append(w.writers, v)
		w.wg.Go(func() { v.run(kind, pause) })
	}
	t.Cleanup(func() { w.Stop(t) })
	return w
}

// CreateWorkloadTables makes the empty tables of a workload.
func CreateWorkloadTables(t testing.TB, m *MySQL, database string) {
	t.Helper()
	m.Exec(t, "CREATE DATABASE "+database,
		"CREATE TABLE "+database+".ledger (id BIGINT PRIMARY KEY, worker INT NOT NULL, seq BIGINT NOT NULL, amount DECIMAL(10,2), note VARCHAR(60), UNIQUE (worker, seq)) CHARSET utf8mb4",
		"CREATE TABLE "+database+".account (id INT PRIMARY KEY, balance BIGINT NOT NULL, version BIGINT NOT NULL)",
		"CREATE TABLE "+database+".moved (id BIGINT PRIMARY KEY, worker INT NOT NULL, version INT NOT NULL, note VARCHAR(60)) CHARSET utf8mb4",
		"CREATE TABLE "+database+".bulk (worker INT, batch INT, n INT, version INT NOT NULL, pad VARCHAR(80), PRIMARY KEY (worker, batch, n)) CHARSET utf8mb4")
}

// WorkloadTables are the tables of a workload in this database.
func WorkloadTables(database string) []Table {
	return []Table{
		{Name: database + ".ledger", Columns: []string{"id", "worker", "seq", "amount", "note"}, Key: []string{"id"}, Scale: map[string]int{"amount": 2}},
		{Name: database + ".account", Columns: []string{"id", "balance", "version"}, Key: []string{"id"}},
		{Name: database + ".moved", Columns: []string{"id", "worker", "version", "note"}, Key: []string{"id"}},
		{Name: database + ".bulk", Columns: []string{"worker", "batch", "n", "version", "pad"}, Key: []string{"worker", "batch", "n"}},
	}
}

// Rows is the number of row changes committed so far.
func (w *Workload) Rows() int64 { return w.rows.Load() }

// Stop ends the writers and returns the log of what they committed. A writer that met an error which it did not expect fails the
// test.
func (w *Workload) Stop(t testing.TB) []Change {
	t.Helper()
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	w.wg.Wait()
	var all []Change
	for _, v := range w.writers {
		if v.err != nil {
			t.Errorf("writer %d: %v", v.id, v.err)
		}
		all = append(all, v.log...)
	}
	return all
}

// Final reads all rows of the tables, as the checker compares them.
func (w *Workload) Final(t testing.TB) map[string][]Row {
	t.Helper()
	final := map[string][]Row{}
	c, err := w.mysql.connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, table := range WorkloadTables(w.database) {
		r, err := c.Execute("SELECT " + strings.Join(table.Columns, ",") + " FROM " + table.Name)
		if err != nil {
			t.Fatal(err)
		}
		rows := []Row{}
		for _, values := range texts(r, absent) {
			rows = append(rows, Row(strings.Join(values, separator)))
		}
		final[table.Name] = rows
		r.Close()
	}
	return final
}

// CheckWorkload adds what is known about these tables only: each writer's numbers have no gap, and every transaction leaves the sum
// of all balances as it was.
func CheckWorkload(e Evidence) []string {
	var problems []string
	database, _, _ := strings.Cut(e.Tables[0].Name, ".")
	next := map[string]int{}
	seen := map[string]map[string]bool{}
	sums := map[string]int64{}
	counted := map[string]bool{}
	c := &checker{Evidence: e, tables: map[string]*Table{}, kinds: map[string]int{}}
	for i := range e.Tables {
		c.tables[e.Tables[i].Name] = &e.Tables[i]
	}
	for _, r := range c.parse() {
		switch r.table.Name {
		case database + ".ledger":
			v := r.after.Values()
			if seen[v[1]] == nil {
				seen[v[1]] = map[string]bool{}
			}
			seen[v[1]][v[2]] = true
		case database + ".account":
			if at := fmt.Sprint(r.gtid, r.place, r.op); r.before != "" && !counted[at] {
				counted[at] = true
				var was, is int64
				fmt.Sscan(r.before.Values()[1], &was)
				fmt.Sscan(r.after.Values()[1], &is)
				sums[r.gtid+fmt.Sprint(r.place.File)] += is - was
			}
		}
	}
	for worker, numbers := range seen {
		for next[worker] = 1; numbers[fmt.Sprint(next[worker])]; next[worker]++ {
		}
		if next[worker] != len(numbers)+1 {
			problems = append(problems, fmt.Sprintf("gap: writer %s has %d numbers, but number %d is missing", worker, len(numbers), next[worker]))
		}
	}
	for gtid, sum := range sums {
		// Without GTIDs the transactions of a file cannot be told apart here; the sum over all of them is constant as well.
		if sum != 0 {
			problems = append(problems, fmt.Sprintf("sum: the transfers of %s change the sum of all balances by %d", gtid, sum))
		}
	}
	return problems
}

// writer is one connection's worth of work. Its fields belong to its goroutine until that has ended.
type writer struct {
	w    *Workload
	id   int
	rng  *rand.Rand
	conn *client.Conn
	seq  int64
	log  []Change
	err  error

	moved     map[int]movedRow
	nextMoved int
	bulk      map[int][]Row // batch → its rows
	nextBulk  int
}

type movedRow struct {
	version int
	note    string
}

func (m movedRow) row(id, worker int) Row { return NewRow(id, worker, m.version, m.note) }

// transaction collects what one transaction does. done runs after the commit and moves the writer's own state on.
type transaction struct {
	conn    *client.Conn
	changes []Change
	done    []func()
}

func (tx *transaction) exec(format string, args ...any) error {
	_, err := tx.conn.Execute(fmt.Sprintf(format, args...))
	return err
}

// run makes transactions of one kind, with pauses of up to so many milliseconds in between, until the workload ends.
func (w *writer) run(kind func(*writer) func(*transaction) error, pause int) {
	for {
		select {
		case <-w.w.stop:
			if w.conn != nil {
				w.conn.Close()
			}
			return
		case <-time.After(time.Duration(w.rng.IntN(pause)) * time.Millisecond):
		}
		if err := w.transaction(kind(w)); err != nil {
			w.err = err
			return
		}
	}
}

// transaction runs work with the writer's next number until it is committed. Work may run several times.
func (w *writer) transaction(work func(*transaction) error) error {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		committed, err := w.try(work)
		if committed {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("transaction %d: not committed for two minutes: %w", w.seq+1, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (w *writer) try(work func(*transaction) error) (bool, error) {
	if w.conn == nil {
		conn, err := w.w.mysql.connect(context.Background())
		if err != nil {
			return false, err
		}
		if _, err := conn.Execute("USE " + w.w.database); err != nil {
			conn.Close()
			return false, err
		}
		w.conn = conn
	}
	tx := &transaction{conn: w.conn}
	err := w.attempt(tx, work)
	if err != nil {
		lost := w.conn
		w.conn = nil
		lost.Close()
		// The commit may have taken place before the connection was lost.
		there, asked := w.committed()
		if asked != nil {
			return false, errors.Join(err, asked)
		}
		if !there {
			return false, err
		}
	}
	w.seq++
	w.log = append(w.log, tx.changes...)
	w.w.rows.Add(int64(len(tx.changes)))
	for _, f := range tx.done {
		f()
	}
	return true, nil
}

func (w *writer) attempt(tx *transaction, work func(*transaction) error) error {
	if err := tx.exec("BEGIN"); err != nil {
		return err
	}
	if err := work(tx); err != nil {
		return err
	}
	if err := w.sign(tx); err != nil {
		return err
	}
	return tx.exec("COMMIT")
}

// sign writes the transaction's number. The id is not the server's choice, so that the log knows it.
func (w *writer) sign(tx *transaction) error {
	seq := w.seq + 1
	id := int64(w.id)*1_000_000_000 + seq
	var amount, note any = fmt.Sprintf("%d.%02d", w.rng.IntN(2000)-1000, w.rng.IntN(100)), w.text(w.rng.IntN(40))
	if strings.HasPrefix(amount.(string), "0.") || w.rng.IntN(5) == 0 {
		amount = nil
	}
	if w.rng.IntN(5) == 0 {
		note = nil
	}
	if err := tx.exec("INSERT INTO ledger VALUES (%d,%d,%d,%s,%s)", id, w.id, seq, literal(amount), literal(note)); err != nil {
		return err
	}
	tx.changes = append(tx.changes, Change{Table: w.w.database + ".ledger", After: NewRow(id, w.id, seq, amount, note)})
	return nil
}

// committed asks the server whether the transaction with the writer's next number is there. It waits until the server answers.
func (w *writer) committed() (bool, error) {
	var err error
	for range 600 {
		var conn *client.Conn
		if conn, err = w.w.mysql.connect(context.Background()); err == nil {
			r, e := conn.Execute(fmt.Sprintf("SELECT id FROM %s.ledger WHERE worker=%d AND seq=%d FOR UPDATE", w.w.database, w.id, w.seq+1))
			conn.Close()
			if err = e; err == nil {
				n := r.RowNumber()
				r.Close()
				return n == 1, nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false, err
}

func literal(v any) string {
	if v == nil {
		return "NULL"
	}
	return "'" + fmt.Sprint(v) + "'" // texts here hold no quote and no backslash
}

// text is n characters of one to four bytes each.
func (w *writer) text(n int) string {
	const few = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789"
	special := []rune("äßñ€語🦀")
	var b strings.Builder
	for range n {
		if w.rng.IntN(12) == 0 {
			b.WriteRune(special[w.rng.IntN(len(special))])
		} else {
			b.WriteByte(few[w.rng.IntN(len(few))])
		}
	}
	return b.String()
}

func (w *writer) openAccounts(tx *transaction) error {
	for id := range accounts {
		if err := tx.exec("INSERT INTO %s.account VALUES (%d,%d,0)", w.w.database, id, initialBalance); err != nil {
			return err
		}
		tx.changes = append(tx.changes, Change{Table: w.w.database + ".account", After: NewRow(id, initialBalance, 0)})
	}
	return nil
}

// transfer moves money between two accounts. Both rows are locked in the order of their ids, so that what the log says about them
// is what the server did.
func (w *writer) transfer() func(*transaction) error {
	a, b := w.rng.IntN(accounts), w.rng.IntN(accounts-1)
	if b >= a {
		b++
	}
	low, high := min(a, b), max(a, b)
	amount := int64(1 + w.rng.IntN(50))
	return func(tx *transaction) error {
		r, err := tx.conn.Execute(fmt.Sprintf("SELECT balance, version FROM account WHERE id IN (%d,%d) ORDER BY id FOR UPDATE", low, high))
		if err != nil {
			return err
		}
		defer r.Close()
		for i, id := range []int{low, high} {
			balance, err := r.GetInt(i, 0)
			if err != nil {
				return err
			}
			version, err := r.GetInt(i, 1)
			if err != nil {
				return err
			}
			change := amount
			if id == a {
				change = -amount
			}
			if err := tx.exec("UPDATE account SET balance=%d, version=%d WHERE id=%d", balance+change, version+1, id); err != nil {
				return err
			}
			tx.changes = append(tx.changes, Change{
				Table: w.w.database + ".account", Version: version + 1,
				Before: NewRow(id, balance, version), After: NewRow(id, balance+change, version+1),
			})
		}
		return nil
	}
}

// move inserts, updates, deletes and re-keys a few rows.
func (w *writer) move() func(*transaction) error {
	rows := maps.Clone(w.moved)
	ids := slices.Sorted(maps.Keys(rows))
	next := w.nextMoved
	type step struct {
		sql string
		Change
	}
	var steps []step
	table := w.w.database + ".moved"
	for range 1 + w.rng.IntN(4) {
		note := w.text(w.rng.IntN(30))
		choice := w.rng.IntN(4)
		if len(ids) < 5 {
			choice = 0
		}
		switch choice {
		case 0:
			next++
			id := w.id*1_000_000 + next
			rows[id] = movedRow{1, note}
			ids = append(ids, id)
			steps = append(steps, step{fmt.Sprintf("INSERT INTO moved VALUES (%d,%d,1,'%s')", id, w.id, note), Change{Table: table, After: rows[id].row(id, w.id)}})
		case 1:
			id := ids[w.rng.IntN(len(ids))]
			was := rows[id]
			rows[id] = movedRow{was.version + 1, note}
			steps = append(steps, step{
				fmt.Sprintf("UPDATE moved SET version=version+1, note='%s' WHERE id=%d", note, id),
				Change{Table: table, Before: was.row(id, w.id), After: rows[id].row(id, w.id)},
			})
		case 2:
			i := w.rng.IntN(len(ids))
			id := ids[i]
			ids = slices.Delete(ids, i, i+1)
			steps = append(steps, step{fmt.Sprintf("DELETE FROM moved WHERE id=%d", id), Change{Table: table, Before: rows[id].row(id, w.id)}})
			delete(rows, id)
		case 3:
			// Keys of deleted rows come back now and then.
			id := ids[w.rng.IntN(len(ids))]
			to := w.id*1_000_000 + 1 + w.rng.IntN(next+1)
			if _, taken := rows[to]; taken {
				continue
			}
			was := rows[id]
			delete(rows, id)
			rows[to] = movedRow{was.version + 1, was.note}
			ids[slices.Index(ids, id)] = to
			next = max(next, to-w.id*1_000_000)
			steps = append(steps, step{
				fmt.Sprintf("UPDATE moved SET id=%d, version=version+1 WHERE id=%d", to, id),
				Change{Table: table, Before: was.row(id, w.id), After: rows[to].row(to, w.id)},
			})
		}
	}
	return func(tx *transaction) error {
		for _, s := range steps {
			if err := tx.exec("%s", s.sql); err != nil {
				return err
			}
			tx.changes = append(tx.changes, s.Change)
		}
		tx.done = append(tx.done, func() { w.moved, w.nextMoved = rows, next })
		return nil
	}
}

// bulkLoad inserts a batch of rows, or updates or deletes an earlier one as a whole. Small batches are as frequent as big ones.
func (w *writer) bulkLoad() func(*transaction) error {
	table := w.w.database + ".bulk"
	if len(w.bulk) > 3 && w.rng.IntN(2) == 0 {
		batches := slices.Sorted(maps.Keys(w.bulk))
		batch := batches[w.rng.IntN(len(batches))]
		rows := w.bulk[batch]
		if w.rng.IntN(2) == 0 {
			return func(tx *transaction) error {
				for _, r := range rows {
					tx.changes = append(tx.changes, Change{Table: table, Before: r})
				}
				tx.done = append(tx.done, func() { delete(w.bulk, batch) })
				return tx.exec("DELETE FROM bulk WHERE worker=%d AND batch=%d", w.id, batch)
			}
		}
		return func(tx *transaction) error {
			after := make([]Row, len(rows))
			for i, r := range rows {
				v := r.Values()
				var version int
				fmt.Sscan(v[3], &version)
				after[i] = NewRow(v[0], v[1], v[2], version+1, v[4])
				tx.changes = append(tx.changes, Change{Table: table, Before: r, After: after[i]})
			}
			tx.done = append(tx.done, func() { w.bulk[batch] = after })
			return tx.exec("UPDATE bulk SET version=version+1 WHERE worker=%d AND batch=%d", w.id, batch)
		}
	}
	size := w.w.maxRows
	for size > 1 && w.rng.IntN(3) > 0 {
		size /= 4
	}
	size = 1 + w.rng.IntN(max(size, 1))
	batch := w.nextBulk + 1
	rows := make([]Row, size)
	pad := w.text(40)
	for i := range rows {
		rows[i] = NewRow(w.id, batch, i, 1, fmt.Sprint(pad, i*7919%size))
	}
	return func(tx *transaction) error {
		for part := range slices.Chunk(rows, 500) {
			var b strings.Builder
			b.WriteString("INSERT INTO bulk VALUES ")
			for i, r := range part {
				if i > 0 {
					b.WriteByte(',')
				}
				v := r.Values()
				fmt.Fprintf(&b, "(%s,%s,%s,%s,'%s')", v[0], v[1], v[2], v[3], v[4])
				tx.changes = append(tx.changes, Change{Table: table, After: r})
			}
			if err := tx.exec("%s", b.String()); err != nil {
				return err
			}
		}
		tx.done = append(tx.done, func() { w.bulk[batch], w.nextBulk = rows, batch })
		return nil
	}
}
