package emitter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
)

// TestEventFields has events whose fields change in all ways follow each other: what is written over in place is what an
// emitter makes that has seen nothing before.
func TestEventFields(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	number := func(values ...int64) int64 { return values[random.IntN(len(values))] + random.Int64N(3) }
	table := benchTable()
	for _, c := range []Converter{{}, {Schemas: true}, {Avro: avroConverter(new(testIDs))}} {
		var wall time.Time
		fresh := func() *Emitter {
			em, err := New(Config{
				Prefix: "p", RunID: "r", Key: c, Value: c, Tombstones: true, Clock: func() time.Time { return wall },
			})
			must(t, err)
			return em
		}
		em := fresh()
		body := benchImage(nil, 1)
		var info binlog.Info
		for range 2000 {
			for range 1 + random.IntN(3) { // most fields stay
				switch random.IntN(8) {
				case 0:
					wall = time.Unix(number(0, 999_999_998, 1795979007, 1795979007, 8_999_999_998, 9_100_000_000, -5), number(0, 5_000, 999_999_990))
				case 1:
					info.TsMicros = number(1795979007728187, 1795979007728187, 1795979007999999, 999_999_999_999_999, 9_000_000_000_000_000, 0, -1_000_001, 5_000)
				case 2:
					info.ServerID = number(1, 1, 223344)
				case 3:
					info.Pos = number(4, 98, 22658, 1<<32)
				case 4:
					info.Thread = number(-2, 8, 16, 16)
				case 5:
					info.GTID = gtid(pick("", "8469a685-ec27-11f1-a4cd-0242ac110007:43", "8469a685-ec27-11f1-a4cd-0242ac110007:44", "0-1-7", "0-1-8", "0-1-17"))
				case 6:
					info.File = pick("mysql-bin.000001", "mysql-bin.000002", "bin.1", `b"n.1`, "bîn", "\xff\xfe\xfd", "")
				case 7:
					info.Query = pick("", "", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (\n)", `INSERT INTO t VALUES (\n`, "née", "n\u00e9", `n"e`,
						"four", "null", "😀", `a\`, "a\\\\", "\x01", "abcdefgh", "abcdefg\n", `abcdef\n`)
				}
			}
			ev, err := binlog.NewRows(info, binlog.Create, table, offset.Offset{File: "f", Pos: 4}, body)
			must(t, err)
			encode := func(em *Emitter) string {
				var b Batch
				ev.Reset(body)
				encodeEvent(t, em, &b, ev)
				return string(b.Records[0].Value)
			}
			if got, want := encode(em), encode(fresh()); got != want {
				t.Fatalf("%+v at %v:\ngot  %q\nwant %q", info, wall, got, want)
			}
		}
	}
}

// TestClockReadings are few: one for an event of few rows, when the first of them is written, however long memory for it has
// been waited for, and one for many rows of a larger event.
func TestClockReadings(t *testing.T) {
	readings, wall := 0, time.Unix(1795979007, 0)
	em, err := New(Config{Prefix: "p", RunID: "r", Clock: func() time.Time { readings++; return wall }})
	must(t, err)
	ev, body := benchEvent(t)
	var b Batch
	encodeEvent(t, em, &b, ev)
	if want := (benchRows + clockRows - 1) / clockRows; readings != want {
		t.Errorf("%d readings for %d rows, want %d", readings, benchRows, want)
	}
	for i := range 3 {
		readings = 0
		ev.Reset(body[:len(body)/benchRows])
		b.Reset()
		must(t, em.Begin(ev))
		wall = wall.Add(time.Minute)
		ev.Next()
		must(t, em.Row(&b, ev))
		if want := fmt.Sprintf(`"ts_ms":%d,`, wall.UnixMilli()); readings != 1 || !strings.Contains(string(b.Records[0].Value), want) {
			t.Errorf("event %d: %d readings, want one, and %s in %s", i, readings, want, b.Records[0].Value)
		}
	}
}

// TestPutPlain over texts of all lengths, with what is to be escaped, or is no ASCII, at each place.
func TestPutPlain(t *testing.T) {
	const letters = "8469a685-ec27-11f1-a4cd-0242ac110007:4300"
	for n := range len(letters) + 1 {
		text := make([]byte, n)
		if !putPlain(text, []byte(letters[:n])) || string(text) != letters[:n] {
			t.Errorf("%d bytes: %q", n, text)
		}
		for i := range n {
			for _, c := range []byte{0, '\n', '"', '\\', 0x7f + 1, 0xff} {
				s := []byte(letters[:n])
				s[i] = c
				if putPlain(text, s) {
					t.Errorf("%q is plain", s)
				}
			}
		}
	}
}

// The text of a long statement is not kept once another follows.
func TestLongTextIsGivenBack(t *testing.T) {
	var n now
	for _, length := range []int{10, 4 * textKept, 10} {
		query := strings.Repeat("x", length)
		if n.begin(&binlog.Info{Query: query}); string(n.texts[sourceQuery]) != query {
			t.Fatalf("the text of %d bytes has %d", length, len(n.texts[sourceQuery]))
		}
	}
	if kept := cap(n.texts[sourceQuery]); kept > textKept {
		t.Errorf("%d bytes are kept", kept)
	}
}
