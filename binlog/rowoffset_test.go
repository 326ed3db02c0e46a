package binlog

import (
	"reflect"
	"testing"

	"github.com/tidemark-cdc/tidemark/offset"
)

// TestI3_OffsetsOutliveTheirEvent: what a row's offsets say does not change when the reader goes on, and those that are put
// into a batch's memory say the same until that is used again.
func TestI3_OffsetsOutliveTheirEvent(t *testing.T) {
	b := newBinlog("mysql-bin.000001")
	b.previous()
	for n := range uint32(3) {
		b.gtid(int64(n + 1))
		b.query("BEGIN")
		b.tableMap(9, "t")
		b.rows(evWrite, 9, true, n, n+10)
		b.insert("u", n+20)
		b.xid()
	}
	b.query("XA START X'61',X'',1")
	b.insert("t", 7)
	b.query("XA END X'61',X'',1")
	b.xaPrepare("a", false)
	b.query("XA COMMIT X'61',X'',1")
	r, err := newReader(Config{Captured: func(string, string) bool { return true }}, b)
	if err != nil {
		t.Fatal(err)
	}
	type said struct {
		offset.Offset
		side offset.Side
		open offset.Open
	}
	say := func(o offset.Offset) said { return said{o, *o.Side, *o.Side.Open} }
	var sides offset.Sides
	var before []said // as it was at once …
	var kept, put []offset.Offset
	events := make(map[*offset.Open]bool)
	for {
		ev, err := r.Read(t.Context())
		if err != nil {
			break
		}
		rows, ok := ev.(*Rows)
		if !ok {
			continue
		}
		for rows.Next() {
			for _, next := range []bool{false, true} {
				var o offset.Offset
				if next {
					rows.PutOffsetAfter(&o, &sides)
					kept = append(kept, rows.OffsetAfter())
				} else {
					rows.PutOffsetBefore(&o, &sides)
					kept = append(kept, rows.OffsetBefore())
				}
				put = append(put, o)
				before = append(before, say(kept[len(kept)-1]))
				events[o.Side.Open] = true
			}
		}
	}
	if len(kept) != 2*(3*3+1) || len(events) != 7 {
		t.Fatalf("%d offsets of %d events", len(kept), len(events))
	}
	distinct := make(map[offset.Open]bool)
	for i := range kept {
		// … and as it is behind all events.
		want := before[i]
		distinct[want.open] = true
		for _, o := range []offset.Offset{kept[i], put[i]} {
			got := say(o)
			got.Offset.Side, want.Offset.Side, got.side.Open, want.side.Open = nil, nil, nil, nil
			if !reflect.DeepEqual(got, want) {
				t.Errorf("offset %d is %+v, was %+v", i, got, want)
			}
		}
	}
	if len(distinct) != 7 || before[len(before)-1].open.XID == "" || before[0].open.XID != "" {
		t.Errorf("%d events are told apart, XA transactions %q and %q", len(distinct), before[0].open.XID, before[len(before)-1].open.XID)
	}
}
