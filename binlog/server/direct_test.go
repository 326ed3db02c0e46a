package server

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/offset"
)

// A stream by GTIDs begins at the stored position only where that is proven to be right: else it could leave something out.
func TestI5_DirectStart(t *testing.T) {
	const own, other = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"
	gtid := func(text string) string { return "SET @@SESSION.GTID_NEXT= '" + text + "'" }
	for name, c := range map[string]struct {
		set    string
		info   string
		pos    int64
		change func(*offset.Offset, *fake)
		want   bool
	}{
		"the next transaction":                {set: own + ":1-7", info: gtid(own + ":8"), want: true},
		"the first of another source":         {set: own + ":1-7", info: gtid(other + ":1"), want: true},
		"the first with a tag":                {set: own + ":1-7", info: gtid(own + ":tag:1"), want: true},
		"the next with a tag":                 {set: own + ":1-7:tag:1-3", info: gtid(own + ":tag:4"), want: true},
		"one that is done":                    {set: own + ":1-7", info: gtid(own + ":7")},
		"one is missing before it":            {set: own + ":1-7", info: gtid(own + ":9")},
		"another source, not the next":        {set: own + ":1-7", info: gtid(other + ":2")},
		"no GTID":                             {set: own + ":1-7", info: "BEGIN"},
		"an anonymous transaction":            {set: own + ":1-7", info: gtid("ANONYMOUS")},
		"the end of the file":                 {set: own + ":1-7", pos: 900, change: func(_ *offset.Offset, f *fake) { f.events[900] = false }},
		"a server without a uuid":             {set: own + ":1-7", info: gtid(own + ":8"), change: func(o *offset.Offset, f *fake) { o.Side.Server, f.vars["server_uuid"] = "", "" }},
		"before anything was read":            {set: own + ":1-7", info: gtid(own + ":8"), change: func(o *offset.Offset, _ *fake) { o.ServerID = 0 }},
		"another server":                      {set: own + ":1-7", info: gtid(own + ":8"), change: func(o *offset.Offset, _ *fake) { o.Side.Server = other }},
		"somebody else's offset":              {set: own + ":1-7", info: gtid(own + ":8"), change: func(o *offset.Offset, _ *fake) { o.Side = nil }},
		"inside a transaction":                {set: own + ":1-7", info: gtid(own + ":8"), change: func(o *offset.Offset, _ *fake) { o.Event = 3 }},
		"inside an XA transaction given out":  {set: own + ":1-7", info: gtid(own + ":8"), change: func(o *offset.Offset, _ *fake) { o.Side.Open = &offset.Open{} }},
		"in front of the first row of an XA":  {set: own + ":1-7", info: gtid(own + ":8"), change: func(o *offset.Offset, _ *fake) { o.Row = 1 }},
		"the position of a server without it": {set: own + ":1-7", info: gtid(own + ":8"), change: func(_ *offset.Offset, f *fake) { f.vars["gtid_mode"] = "OFF" }},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := offset.ParseGTIDSet(c.set)
			if err != nil {
				t.Fatal(err)
			}
			f := newFake()
			f.infos = map[int64]string{400: c.info}
			start := offset.Offset{File: "mysql-bin.000003", Pos: 400, GTIDs: set, ServerID: 1, Side: &offset.Side{Server: own}}
			if c.pos != 0 {
				start.Pos = c.pos
			}
			if c.change != nil {
				c.change(&start, f)
			}
			from, err := f.connect(t).Locate(t.Context(), start, Stored)
			if err != nil || from.Direct != c.want {
				t.Errorf("%+v, %v; want direct: %v", from, err, c.want)
			}
		})
	}
}
