package binlog

import (
	"encoding/binary"
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
			got, err := parseTableMap(string(database), string(name), rest)
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
	ts := tables{captured: func(_, _ string) bool { return true }, defs: noDefinitions{}}
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
		{typeBit, 8<<8 | 0, cell{size: 8}},
		{typeBit, 1<<8 | 2, cell{size: 2}},
		{typeEnum, typeEnum<<8 | 2, cell{size: 2}},
		{typeSet, typeSet<<8 | 8, cell{size: 8}},
		{typeVarchar, 255, cell{prefix: 1}},
		{typeVarchar, 256, cell{prefix: 2}},
		{typeString, typeString<<8 | 40, cell{prefix: 1}},
		{typeString, 0xee<<8 | 0xfc, cell{prefix: 2}}, // CHAR(255) of utf8mb4: 1020 bytes
		{typeBlob, 1, cell{prefix: 1}},
		{typeBlob, 4, cell{prefix: 4}},
		{typeJSON, 4, cell{prefix: 4}},
		{typeGeometry, 4, cell{prefix: 4}},
		{typeVector, 4, cell{prefix: 4}},
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
		table, err := parseTableMap(string(database), string(name), rest)
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
		{[]byte{0}, 0, true}, {[]byte{250}, 250, true}, {[]byte{251}, 0, false}, {[]byte{255}, 0, false}, {nil, 0, false},
		{[]byte{0xfc, 1, 2}, 0x201, true}, {[]byte{0xfd, 0x1f, 0x2b, 0x72}, 7482143, true}, {[]byte{0xfd, 1, 2}, 0, false},
		{append([]byte{0xfe}, binary.LittleEndian.AppendUint64(nil, 1<<40)...), 1 << 40, true},
	} {
		n, rest, ok := lenenc(c.in)
		if n != c.want || ok != c.ok || ok && len(rest) != 0 {
			t.Errorf("%x: %d, %x, %v", c.in, n, rest, ok)
		}
	}
}
