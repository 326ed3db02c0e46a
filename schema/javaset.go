package schema

import (
	"slices"
	"unicode/utf16"
)

// javaSetOrder puts different tables into the order in which a java.util.HashSet of their ids gives them back. A set that
// was filled one by one grows when three quarters of it are taken; a copied one is made in its size at once.
func javaSetOrder(ids []TableName, copied bool) []TableName {
	buckets := 16
	if copied {
		for buckets < int(float32(len(ids))/.75+1) {
			buckets *= 2
		}
	} else {
		for len(ids) > buckets*3/4 {
			buckets *= 2
		}
	}
	ordered := slices.Clone(ids)
	bucket := func(id TableName) int {
		h := javaHash(id.Database, id.Table)
		return int((h ^ h>>16) & uint32(buckets-1))
	}
	slices.SortStableFunc(ordered, func(a, b TableName) int { return bucket(a) - bucket(b) })
	return ordered
}

// javaHash is String.hashCode of database.table.
func javaHash(database, table string) uint32 {
	id := table
	if database != "" {
		id = database + "." + table
	}
	h := uint32(0)
	for _, u := range utf16.Encode([]rune(id)) {
		h = 31*h + uint32(u)
	}
	return h
}
