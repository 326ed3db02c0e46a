package binlog

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/tidemark-cdc/tidemark/schema"
)

// alike has versions of tables that differ in nothing but their names, as the tables of the tenants of one application do,
// hold their columns together. By that the emitter knows them, too. The zero value is ready.
type alike struct {
	seed  maphash.Seed
	first map[uint64]*version // of those alike, by a hash
}

// fewVersions is how many entries are no matter.
const fewVersions = 64

// add takes in a version, one of newest, whose table nobody has yet.
func (a *alike) add(v *version, newest map[string]*version) {
	if v.table == nil || v.err != nil {
		return
	}
	if a.first == nil {
		a.seed, a.first = maphash.MakeSeed(), make(map[uint64]*version)
	}
	h := a.hash(v)
	if first := a.first[h]; first != nil && first.alike(v) {
		t, like := v.table, first.table
		t.Columns, t.Key, t.BinlogKey, v.cells = like.Columns, like.Key, like.BinlogKey, first.cells
		return
	}
	a.first[h] = v
	if len(a.first) < 2*len(newest)+fewVersions {
		return
	}
	clear(a.first) // of most there are newer versions
	for _, v := range newest {
		if v.table != nil && v.err == nil {
			a.first[a.hash(v)] = v
		}
	}
}

// hash has the definition in it: without names in the binlog, equal TABLE_MAPs are of tables of all kinds.
func (a *alike) hash(v *version) uint64 {
	var h maphash.Hash
	h.SetSeed(a.seed)
	h.Write(v.raw[len(v.names):])
	if len(v.table.Columns) > 0 {
		maphash.WriteComparable(&h, v.table.Columns[0].Def)
	}
	return h.Sum64()
}

// alike says whether two versions differ in nothing but the names of their tables.
func (v *version) alike(o *version) bool {
	sameKey := func(a, b []int) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }
	return bytes.Equal(v.raw[len(v.names):], o.raw[len(o.names):]) && sameKey(v.table.Key, o.table.Key) && sameKey(v.table.BinlogKey, o.table.BinlogKey) &&
		slices.EqualFunc(v.table.Columns, o.table.Columns, sameColumn) && slices.Equal(v.cells, o.cells)
}

// sameColumn compares columns of equal TABLE_MAPs. Of their definitions it is enough to know those that are the very same:
// the catalog has tables hold theirs together.
func sameColumn(a, b schema.Column) bool {
	return a.Name == b.Name && a.Type == b.Type && a.Meta == b.Meta && a.Unsigned == b.Unsigned && a.Nullable == b.Nullable && a.Invisible == b.Invisible &&
		a.Collation == b.Collation && a.Geometry == b.Geometry && a.Def == b.Def && (a.Labels == nil) == (b.Labels == nil) && slices.Equal(a.Labels, b.Labels)
}
