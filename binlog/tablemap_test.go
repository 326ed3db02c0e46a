package binlog

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/schema"
)

// TestTableMapAgainstLibrary compares every TABLE_MAP of the goldens' binlogs with how go-mysql reads it, and the
// lengths of all cells with what its decoder consumes: it fails when a row is not used up to its last byte.
func TestTableMapAgainstLibrary(t *testing.T) {
	for _, folder := range []string{"types-default", "basics"} {
		p := replication.NewBinlogParser()
		f, err := os.Open(goldenBinlog(t, folder))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Seek(firstPos, 0); err != nil {
			t.Fatal(err)
		}
		tables := 0
		err = p.ParseReader(f, func(ev *replication.BinlogEvent) error {
			m, ok := ev.Event.(*replication.TableMapEvent)
			if !ok {
				return nil
			}
			tables++
			body := ev.RawData[headerSize+8 : len(ev.RawData)-checksumSize]
			database, name, rest, err := splitNames(body)
			if err != nil {
				return err
			}
			got, _, _, err := parseTableMap(string(database), string(name), rest)
			if err != nil {
				return fmt.Errorf("%s.%s: %w", database, name, err)
			}
			unsigned, collation, enums := m.UnsignedMap(), m.CollationMap(), m.EnumSetCollationMap()
			labels, sets, visible, geometry := m.EnumStrValueMap(), m.SetStrValueMap(), m.VisibilityMap(), m.GeometryTypeMap()
			want := &schema.Table{Database: string(m.Schema), Name: string(m.Table)}
			for i, column := range m.ColumnNameString() {
				_, nullable := m.Nullable(i)
				c := schema.Column{
					Name: column, Type: m.ColumnType[i], Meta: m.ColumnMeta[i], Unsigned: unsigned[i], Nullable: nullable,
					Collation: uint32(collation[i]), Geometry: uint8(geometry[i]), Invisible: visible != nil && !visible[i],
				}
				switch {
				case c.Type == typeVector:
					c.Collation = 63 // the library does not count it; the goldens' tables have no other text
				case m.IsEnumColumn(i):
					c.Type, c.Labels = typeEnum, labels[i]
				case m.IsSetColumn(i):
					c.Type, c.Labels = typeSet, sets[i]
				}
				if m.IsEnumOrSetColumn(i) {
					c.Collation = uint32(enums[i])
					for k, l := range c.Labels {
						if c.Labels[k], err = schema.DecodeText(c.Collation, []byte(l)); err != nil {
							return err
						}
					}
				}
				want.Columns = append(want.Columns, c)
			}
			for _, k := range m.PrimaryKey {
				want.Key = append(want.Key, int(k))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s.%s (-library +ours)\n%s", database, name, diff)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if tables < 20 {
			t.Errorf("%s: only %d TABLE_MAPs", folder, tables)
		}
	}
}

// TestSameTableSameVersion: the address of a table identifies its version, across statements and table ids.
func TestSameTableSameVersion(t *testing.T) {
	b := newBinlog("mysql-bin.000001")
	b.tableMap(1, "t")
	b.tableMap(2, "t")
	b.tableMap(2, "u")
	body := func(i int) []byte { return b.events[i][headerSize+8:] }
	ts := tables{captured: func(_, _ string) bool { return true }, defs: &definitions{}}
	for i := 2; i <= 4; i++ {
		if err := ts.add(t.Context(), uint64(i), body(i), "", 0); err != nil {
			t.Fatal(err)
		}
	}
	if a, b, c := ts.lookup(2), ts.lookup(3), ts.lookup(4); a != b || a == c || a.table == nil {
		t.Error(a, b, c)
	}
	changed := append([]byte{}, body(2)...)
	changed[len("\x02db\x00\x01t\x00")+3] = 1 // now nullable
	if err := ts.add(t.Context(), 9, changed, "", 0); err != nil {
		t.Fatal(err)
	}
	if a, b := ts.lookup(2), ts.lookup(9); a == b || !b.table.Columns[0].Nullable || a.table.Columns[0].Nullable {
		t.Error("a changed TABLE_MAP is not a new version")
	}
	// What it was before is found by its id no more: what statements do to a table is noted of its newest version only.
	before := ts.lookup(2)
	if err := ts.add(t.Context(), 2, body(2), "", 0); err != nil {
		t.Fatal(err)
	}
	if v := ts.lookup(2); v == before || v != ts.newest["\x02db\x00\x01t\x00"] {
		t.Error("an older version is taken up again")
	}
	if ts.dropped(schema.TableName{Database: "db", Table: "t"}, tableName{"db", "t"}); ts.recent[2] != nil {
		t.Error("a table that is gone is still known")
	}
	if err := ts.add(t.Context(), 9, changed, "", 0); err != nil {
		t.Fatal(err)
	}
	if allocs := testing.AllocsPerRun(100, func() {
		ts.forget()
		if err := ts.add(t.Context(), 9, changed, "", 0); err != nil {
			t.Fatal(err)
		}
	}); allocs != 0 {
		t.Errorf("a known TABLE_MAP costs %v allocations", allocs)
	}
}

// TestCellSizes: one column a type, from MySQL's documentation of the binlog's column types.
func TestCellSizes(t *testing.T) {
	for _, c := range []struct {
		typ  uint8
		meta uint16
		want cell
	}{
		{typeTiny, 0, cell{size: 1}},
		{typeShort, 0, cell{size: 2}},
		{typeInt24, 0, cell{size: 3}},
		{typeLong, 0, cell{size: 4}},
		{typeLongLong, 0, cell{size: 8}},
		{typeFloat, 4, cell{size: 4}},
		{typeDouble, 8, cell{size: 8}},
		{typeYear, 0, cell{size: 1}},
		{typeDate, 0, cell{size: 3}},
		{typeTime, 0, cell{size: 3}},
		{typeDatetime, 0, cell{size: 8}},
		{typeTimestamp, 0, cell{size: 4}},
		{typeTime2, 0, cell{size: 3}},
		{typeTime2, 1, cell{size: 4}},
		{typeTime2, 6, cell{size: 6}},
		{typeDatetime2, 0, cell{size: 5}},
		{typeDatetime2, 3, cell{size: 7}},
		{typeTimestamp2, 6, cell{size: 7}},
		{typeNewDecimal, 10<<8 | 2, cell{size: 5}},
		{typeNewDecimal, 65<<8 | 30, cell{size: 30}},
		{typeNewDecimal, 1 << 8, cell{size: 1}},
		{typeBit, 0<<8 | 1, cell{size: 1}},
		{typeBit, 8 << 8, cell{size: 8}},
		{typeBit, 1<<8 | 2, cell{size: 2}},
		{typeEnum, typeEnum<<8 | 2, cell{size: 2}},
		{typeSet, typeSet<<8 | 8, cell{size: 8}},
		{typeVarchar, 255, behind(1)},
		{typeVarchar, 256, behind(2)},
		{typeString, typeString<<8 | 40, behind(1)},
		{typeString, 0xee<<8 | 0xfc, behind(2)}, // CHAR(255) of utf8mb4: 1020 bytes
		{typeBlob, 1, behind(1)},
		{typeBlob, 4, behind(4)},
		{typeJSON, 4, behind(4)},
		{typeGeometry, 4, behind(4)},
		{typeVector, 4, behind(4)},
	} {
		got, err := cellOf(&schema.Column{Type: c.typ, Meta: c.meta})
		if err != nil || got != c.want {
			t.Errorf("type %d, metadata %#x: %+v, %v, want %+v", c.typ, c.meta, got, err, c.want)
		}
	}
	for _, c := range []schema.Column{{Type: 20}, {Type: typeNewDecimal, Meta: 66 << 8}, {Type: typeBlob, Meta: 5}, {Type: typeEnum, Meta: 9}, {Type: typeTime2, Meta: 7}} {
		if _, err := cellOf(&c); err == nil {
			t.Errorf("type %d, metadata %#x: no error", c.Type, c.Meta)
		}
	}
}

func FuzzTableMap(f *testing.F) {
	b := newBinlog("mysql-bin.000001")
	b.tableMap(1, "t")
	f.Add(b.events[2][headerSize+8:], []byte{0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, body, images []byte) {
		database, name, rest, err := splitNames(body)
		if err != nil {
			return
		}
		table, _, _, err := parseTableMap(string(database), string(name), rest)
		if err != nil {
			return
		}
		for _, op := range []Op{Create, Update, Delete} {
			r, err := NewRows(Info{}, op, table, mustOffset(t, "null"), images)
			if err != nil {
				return
			}
			n := 0
			for r.Next() {
				n++
			}
			if n > len(images) {
				t.Fatalf("%d rows of %d bytes", n, len(images))
			}
		}
	})
}

func TestLenenc(t *testing.T) {
	for _, c := range []struct {
		in   []byte
		want uint64
		ok   bool
	}{
		{[]byte{0}, 0, true},
		{[]byte{250}, 250, true},
		{[]byte{251}, 0, false},
		{[]byte{255}, 0, false},
		{nil, 0, false},
		{[]byte{0xfc, 1, 2}, 0x201, true},
		{[]byte{0xfd, 0x1f, 0x2b, 0x72}, 7482143, true},
		{[]byte{0xfd, 1, 2}, 0, false},
		{append([]byte{0xfe}, binary.LittleEndian.AppendUint64(nil, 1<<40)...), 1 << 40, true},
	} {
		n, rest, ok := lenenc(c.in)
		if n != c.want || ok != c.ok || ok && len(rest) != 0 {
			t.Errorf("%x: %d, %x, %v", c.in, n, rest, ok)
		}
	}
}

// TestVectorCountsAsCharacter: a VECTOR column has a place in the lists of character sets, as MySQL 9.7 wrote these
// TABLE_MAPs, in either form of the list.
func TestVectorCountsAsCharacter(t *testing.T) {
	const utf8mb4, latin1, binary = 255, 8, 63
	for _, test := range []struct {
		sql, body string
		want      map[string]uint32
	}{
		{
			"CREATE TABLE few (id INT PRIMARY KEY, v VECTOR(2), l VARCHAR(5) CHARSET latin1, t TEXT, u TEXT, b BLOB) CHARSET utf8mb4",
			"0276740003666577000603f20ffcfcfc060405000202023e01010003093f08fcff00fcff003f0d0102040d0269640176016c0174017501620801000c01fc",
			map[string]uint32{"id": 0, "v": binary, "l": latin1, "t": utf8mb4, "u": utf8mb4, "b": binary},
		},
		{
			"CREATE TABLE def (v VECTOR(2), t TEXT, u TEXT, x TEXT, y TEXT, l VARCHAR(5) CHARSET latin1) CHARSET utf8mb4",
			"02767400036465660006f2fcfcfcfc0f07040202020205003f0207fcff00003f05080d0102040c01760174017501780179016c0c01fc",
			map[string]uint32{"v": binary, "t": utf8mb4, "u": utf8mb4, "x": utf8mb4, "y": utf8mb4, "l": latin1},
		},
	} {
		body, err := hex.DecodeString(test.body)
		if err != nil {
			t.Fatal(err)
		}
		database, name, rest, err := splitNames(body)
		if err != nil {
			t.Fatal(err)
		}
		table, _, _, err := parseTableMap(string(database), string(name), rest)
		if err != nil {
			t.Errorf("%s: %v", test.sql, err)
			continue
		}
		got := make(map[string]uint32)
		for _, c := range table.Columns {
			got[c.Name] = c.Collation
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.sql, diff)
		}
	}
}
