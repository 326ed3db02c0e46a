package schema

import (
	"hash/maphash"
	"slices"
	"strings"
)

// shares makes definitions hold little memory: those of equal columns and keys, as the tables of the tenants of one
// application have them, hold them together. The zero value is ready. Not safe for concurrent use.
type shares struct {
	seed    maphash.Seed
	columns map[uint64]*Definition // of each distinct one the first, by a hash of it
	words   map[string]string      // of types and character sets, of which there are few
}

// fewShares is how many entries are no matter.
const fewShares = 64

// add has def, which may be nil, hold its columns and keys together with the first definition that has the same. What def says
// stays the same.
func (s *shares) add(def *Definition) {
	if def == nil || len(def.Columns) == 0 {
		return
	}
	if s.columns == nil {
		s.seed, s.columns, s.words = maphash.MakeSeed(), make(map[uint64]*Definition), make(map[string]string)
	}
	h := s.hash(def)
	like := s.columns[h]
	switch {
	case like != nil && &like.Columns[0] == &def.Columns[0]: // it is done
		return
	case like != nil && like.sameColumns(def):
		def.Columns, def.Key, def.Unique = like.Columns, like.Key, like.Unique
		def.DefaultCharset, def.ServerCharset = s.word(def.DefaultCharset), s.word(def.ServerCharset)
	default:
		s.own(def)
		s.columns[h] = def
	}
	// They may be pieces of a text.
	def.Database, def.Name, def.Comment = s.word(def.Database), strings.Clone(def.Name), strings.Clone(def.Comment)
}

// sweep drops the definitions that are not in use any more, when there are many beside the so many that are.
func (s *shares) sweep(used int, all func(yield func(*Definition) bool)) {
	if len(s.columns) < 2*used+fewShares {
		return
	}
	clear(s.columns)
	for def := range all {
		if len(def.Columns) > 0 {
			s.columns[s.hash(def)] = def
		}
	}
}

// word is a string that many definitions have.
func (s *shares) word(w string) string {
	if kept, ok := s.words[w]; ok {
		return kept
	}
	if len(s.words) >= 1<<12 { // they are not what they are taken for
		clear(s.words)
	}
	w = strings.Clone(w)
	s.words[w] = w
	return w
}

// hash is one of all that sameColumns compares: two kinds of tables with one hash would drive each other out.
func (s *shares) hash(def *Definition) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	write := func(texts ...string) {
		for _, text := range texts {
			h.WriteString(text)
			h.WriteByte(0)
		}
		h.WriteByte(1)
	}
	for i := range def.Columns {
		c := &def.Columns[i]
		maphash.WriteComparable(&h, [3]int{c.Length, c.Scale, c.JDBCType})
		maphash.WriteComparable(&h, [5]bool{c.Nullable, c.AutoInc, c.Generated, c.HasDefault, c.BlankComment})
		write(c.Name, c.Type, c.Charset, c.Comment, c.Expression)
		if c.Default != nil {
			write(*c.Default)
		}
		write(c.Labels...)
		write(c.Quoted...)
		if c.Server != nil {
			write(c.Server.Charset, c.Server.Default)
			write(c.Server.Labels...)
		}
	}
	write(def.Key...)
	for _, key := range def.Unique {
		write(key...)
	}
	return h.Sum64()
}

// own copies the columns and keys, so that they do not hold the text that they were read from.
func (s *shares) own(def *Definition) {
	def.Columns, def.Key, def.Unique = slices.Clip(slices.Clone(def.Columns)), cloneTexts(def.Key), slices.Clone(def.Unique)
	for i := range def.Unique {
		def.Unique[i] = cloneTexts(def.Unique[i])
	}
	def.DefaultCharset, def.ServerCharset = s.word(def.DefaultCharset), s.word(def.ServerCharset)
	for i := range def.Columns {
		c := &def.Columns[i]
		c.Name, c.Comment = strings.Clone(c.Name), strings.Clone(c.Comment)
		c.Type, c.Charset, c.Expression = s.word(c.Type), s.word(c.Charset), s.word(c.Expression)
		c.Labels, c.Quoted = cloneTexts(c.Labels), cloneTexts(c.Quoted)
		if c.Default != nil {
			text := strings.Clone(*c.Default)
			c.Default = &text
		}
		if c.Server != nil {
			c.Server = &ServerColumn{s.word(c.Server.Charset), cloneTexts(c.Server.Labels), strings.Clone(c.Server.Default)}
		}
	}
}

// cloneTexts copies a list that may be nil, which is not the same as an empty one.
func cloneTexts(texts []string) []string {
	if texts == nil {
		return nil
	}
	cloned := make([]string, len(texts))
	for i, text := range texts {
		cloned[i] = strings.Clone(text)
	}
	return cloned
}

// sameColumns says whether two definitions have the same columns and keys.
func (d *Definition) sameColumns(o *Definition) bool {
	return slices.EqualFunc(d.Columns, o.Columns, func(a, b ColumnDef) bool { return a.same(&b) }) && sameTexts(d.Key, o.Key) &&
		(d.Unique == nil) == (o.Unique == nil) && slices.EqualFunc(d.Unique, o.Unique, sameTexts)
}

func sameTexts(a, b []string) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

func (c *ColumnDef) same(o *ColumnDef) bool {
	switch {
	case c.Name != o.Name, c.Type != o.Type, c.Length != o.Length, c.Scale != o.Scale, c.Charset != o.Charset,
		c.Nullable != o.Nullable, c.AutoInc != o.AutoInc, c.Generated != o.Generated, c.HasDefault != o.HasDefault,
		c.Comment != o.Comment, c.BlankComment != o.BlankComment, c.JDBCType != o.JDBCType, c.Expression != o.Expression:
		return false
	case (c.Default == nil) != (o.Default == nil), c.Default != nil && *c.Default != *o.Default:
		return false
	case (c.Server == nil) != (o.Server == nil):
		return false
	}
	s, t := c.Server, o.Server
	return sameTexts(c.Labels, o.Labels) && sameTexts(c.Quoted, o.Quoted) &&
		(s == nil || s.Charset == t.Charset && s.Default == t.Default && sameTexts(s.Labels, t.Labels))
}
