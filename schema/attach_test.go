package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func tableOf(columns ...Column) *Table {
	return &Table{Database: "d", Name: "t", Columns: columns}
}

func defaults(t *Table) string {
	var all []string
	for _, c := range t.Columns {
		switch {
		case c.Def == nil:
			all = append(all, "?")
		case c.Def.Default == nil:
			all = append(all, c.Def.Type)
		default:
			all = append(all, c.Def.Type+"="+*c.Def.Default)
		}
	}
	return strings.Join(all, " ")
}

func TestAttach(t *testing.T) {
	def := func(name, typ string, length int, value string) ColumnDef {
		d := ColumnDef{Name: name, Type: typ, Length: length, Scale: -1}
		if value != "" {
			d.Default = &value
		}
		return d
	}
	id := Column{Name: "id", Type: typeLong}
	flag := Column{Name: "flag", Type: typeTiny, Nullable: true}
	text := Column{Name: "text", Type: typeVarchar, Collation: 255, Nullable: true}
	idDef, flagDef, textDef := def("id", "INT", -1, ""), def("flag", "TINYINT", 1, "1"), def("text", "VARCHAR", 9, "x")
	boolDef := def("flag", "BOOL", -1, "TRUE")

	first := tableOf(id, flag)
	first.Columns[0].Def, first.Columns[1].Def, first.Key = &idDef, &boolDef, []int{0}

	primary := tableOf(first.Columns...)
	primary.Key, primary.BinlogKey = []int{0}, []int{0}

	for _, tt := range []struct {
		name     string
		table    *Table
		def      *Definition
		prev     *Table
		want     string
		key      []int
		warnings []string
	}{
		{
			name: "all of it", table: tableOf(id, flag, text),
			def:  &Definition{Columns: []ColumnDef{idDef, flagDef, textDef}, Key: []string{"id"}},
			want: "INT TINYINT=1 VARCHAR=x", key: []int{0},
		},
		{
			name: "BOOL stays BOOL", table: tableOf(id, flag, text), prev: first,
			def:  &Definition{Columns: []ColumnDef{idDef, flagDef, textDef}, Key: []string{"id"}, KeyKind: KeyUnique},
			want: "INT BOOL=1 VARCHAR=x", key: []int{0},
		},
		{
			name: "a column that the definition does not have yet", table: tableOf(id, flag, text), prev: first,
			def:  &Definition{Columns: []ColumnDef{idDef, flagDef}, Key: []string{"id"}},
			want: "INT BOOL=TRUE ?", key: []int{0},
			warnings: []string{"no definition of table d.t fits its columns in the binlog: the schema has no defaults for text"},
		},
		{
			name: "another type", table: tableOf(id, Column{Name: "flag", Type: typeLong}), prev: first,
			def:  &Definition{Columns: []ColumnDef{idDef, flagDef}, Key: []string{"id"}},
			want: "INT ?", key: []int{0},
			warnings: []string{"no definition of table d.t fits its columns in the binlog: the schema has no defaults for flag"},
		},
		{
			name: "nothing known", table: tableOf(id),
			want: "?",
			warnings: []string{
				"no definition of table d.t fits its columns in the binlog: the schema has no defaults for id",
				"table d.t has no primary key, and its unique keys are not known: its records have no key",
			},
		},
		{
			name: "the key's column is gone", table: tableOf(flag), prev: first,
			want:     "BOOL=TRUE",
			warnings: []string{"table d.t has no primary key and no longer the columns (id) that were its key: its records have none"},
		},
		{
			name: "the primary key is gone", table: tableOf(id, flag), prev: primary,
			def:  &Definition{Columns: []ColumnDef{idDef}, Key: []string{"id"}, KeyKind: KeyPrimary},
			want: "INT BOOL=TRUE",
			warnings: []string{
				"table d.t no longer has the key (id), and no definition fits that has another: its records have none",
			},
		},
		{
			name: "a key over a nullable column", table: tableOf(text),
			def:  &Definition{Columns: []ColumnDef{textDef}, Key: []string{"text"}},
			want: "VARCHAR=x", key: []int{0}, // Debezium takes an inline UNIQUE
		},
	} {
		warnings := Attach(tt.table, tt.def, tt.prev)
		if diff := cmp.Diff(tt.warnings, warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got)\n%s", tt.name, diff)
		}
		if got := defaults(tt.table); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if diff := cmp.Diff(tt.key, tt.table.Key); diff != "" {
			t.Errorf("%s: key (-want +got)\n%s", tt.name, diff)
		}
	}
}

// TABLE_MAP's primary key counts, whatever a definition of another moment says.
func TestAttachKeepsPrimaryKey(t *testing.T) {
	table := tableOf(Column{Name: "a", Type: typeLong}, Column{Name: "b", Type: typeLong})
	table.Key = []int{1}
	Attach(table, &Definition{
		Columns: []ColumnDef{{Name: "a", Type: "INT"}, {Name: "b", Type: "INT"}}, Key: []string{"a"}, KeyKind: KeyPrimary,
	}, nil)
	if diff := cmp.Diff([]int{1}, table.Key); diff != "" {
		t.Error(diff)
	}
}

// parsed is the definition of table d.t.
func parsed(t *testing.T, columns string) *Definition {
	t.Helper()
	if columns == "" {
		return nil
	}
	def, err := ParseCreateTable("d", "CREATE TABLE t ("+columns+")")
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// The record's key, from what TABLE_MAP has and what a definition, perhaps one of another moment, says.
func TestAttachKey(t *testing.T) {
	a, b := Column{Name: "a", Type: typeLong}, Column{Name: "b", Type: typeLong}
	text := Column{Name: "a", Type: typeVarchar, Meta: 80, Collation: 255}
	const (
		prefix    = "a varchar(20) not null, b int not null, unique ua(a(5)), unique ub(b)"
		generated = "a int not null, b int as (a+1) virtual not null, unique(b), unique(a)"
		plain     = "a int not null, b int not null"
	)
	history := func(columns string, key ...string) *Definition {
		def := parsed(t, columns)
		def.Key, def.KeyKind, def.Unique = key, KeyChosen, nil
		return def
	}
	keyed := func(key []int, columns ...Column) *Table {
		table := tableOf(columns...)
		table.Key = key
		return table
	}
	attached := func(key []int, def string, columns ...Column) *Table {
		table := keyed(key, columns...)
		Attach(table, parsed(t, def), nil)
		return table
	}
	for _, tt := range []struct {
		name  string
		table *Table // its key is TABLE_MAP's
		def   *Definition
		prev  *Table
		want  []int
	}{
		{"no definition", keyed([]int{1}, text, b), nil, nil, []int{1}},
		{"UNIQUE of a prefix before", keyed([]int{1}, text, b), parsed(t, prefix), nil, []int{0}},
		{"UNIQUE of a prefix alone", keyed(nil, text, b), parsed(t, "a varchar(20) not null, b int, unique(a(5))"), nil, []int{0}},
		{"UNIQUE of a virtual column before", keyed([]int{0}, a, b), parsed(t, generated), nil, []int{1}},
		{"UNIQUE and PRIMARY KEY", keyed([]int{1}, a, b), parsed(t, plain+", unique(a), primary key(b)"), nil, []int{1}},
		{"PRIMARY KEY dropped later", keyed([]int{0}, a, b), parsed(t, plain), nil, []int{0}},
		{"PRIMARY KEY dropped later, UNIQUE stays", keyed([]int{0}, a, b), parsed(t, plain+", unique(b)"), nil, []int{0}},
		{"PRIMARY KEY added later", keyed(nil, a, b), parsed(t, plain+", primary key(b)"), nil, nil},
		{"UNIQUE added later", keyed(nil, a, b), parsed(t, plain+", unique(b)"), nil, nil},
		{"PRIMARY KEY added later, UNIQUE before", keyed([]int{0}, a, b), parsed(t, plain+", unique(a), primary key(b)"), nil, []int{0}},
		{"history", keyed([]int{1}, a, b), history(plain, "a"), nil, []int{0}},
		{"history without key", keyed([]int{1}, a, b), history(plain), nil, nil},
		{"history that does not fit", keyed([]int{1}, a, text), history(plain, "a"), nil, []int{1}},

		{"UNIQUE of a prefix stays", keyed([]int{1}, text, b, a), nil, attached([]int{1}, prefix, text, b), []int{0}},
		{"UNIQUE of a prefix stays, the other goes", keyed(nil, text, b, a), nil, attached([]int{1}, prefix, text, b), []int{0}},
		{"UNIQUE of a prefix, then PRIMARY KEY", keyed([]int{1}, text, b, a), parsed(t, "x int, primary key(x)"), attached([]int{1}, prefix, text, b), []int{1}},
		{"UNIQUE of a prefix, then another", keyed([]int{0}, text, b, a), nil, attached([]int{1}, prefix, text, b), []int{0}},

		{"DROP PRIMARY KEY", keyed(nil, a, b), parsed(t, "a int not null"), attached([]int{0}, plain+", primary key(a)", a, b), nil},
		{"DROP PRIMARY KEY, no definition", keyed(nil, a, b), nil, attached([]int{0}, plain+", primary key(a)", a, b), nil},
		{"DROP PRIMARY KEY, never a definition", keyed(nil, a, b), nil, attached([]int{0}, "", a, b), nil},
		{"DROP PRIMARY KEY, later another", keyed(nil, a, b), parsed(t, "b int not null, primary key(b)"), attached([]int{0}, plain+", primary key(a)", a, b), nil},
		{"DROP PRIMARY KEY, UNIQUE later", keyed(nil, a, b), parsed(t, "b int not null, unique(b)"), attached([]int{0}, plain+", primary key(a)", a, b), nil},
		{
			"DROP PRIMARY KEY, UNIQUE of a prefix", keyed(nil, text, b), parsed(t, "a varchar(20) not null, unique(a(5))"),
			attached([]int{1}, "a varchar(20) not null, b int not null, primary key(b)", text, b),
			[]int{0},
		},
		{
			"DROP PRIMARY KEY, UNIQUE of its prefix", keyed(nil, text, b), parsed(t, "a varchar(20) not null, unique(a(5))"),
			attached([]int{0}, "a varchar(20) not null, b int not null, primary key(a)", text, b),
			[]int{0},
		},
		{"DROP PRIMARY KEY, history of before", keyed(nil, a, b), history("a int not null", "a"), attached([]int{0}, plain+", primary key(a)", a, b), nil},
		{"DROP PRIMARY KEY, history's UNIQUE", keyed(nil, a, b), history("b int not null", "b"), attached([]int{0}, plain+", primary key(a)", a, b), []int{1}},
		{"DROP PRIMARY KEY, definition fits", keyed(nil, a, b), parsed(t, plain), attached([]int{0}, plain+", primary key(a)", a, b), nil},
	} {
		Attach(tt.table, tt.def, tt.prev)
		if diff := cmp.Diff(tt.want, tt.table.Key); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// A definition of later, whose columns have the same names and types, gives an old row neither labels nor defaults.
func TestI10_LaterLabelsAndCharsets(t *testing.T) {
	enum := func(labels ...string) Column {
		return Column{Name: "c", Type: typeEnum, Collation: 255, Labels: labels}
	}
	set := func(labels ...string) Column { return Column{Name: "c", Type: typeSet, Collation: 255, Labels: labels} }
	text := func(collation uint32) Column { return Column{Name: "c", Type: typeVarchar, Collation: collation} }
	for _, tt := range []struct {
		name string
		c    Column
		def  string
		fits bool
	}{
		{"ENUM", enum("a", "b"), "c enum('a','b') default 'b'", true},
		{"ENUM of later", enum("a", "b"), "c enum('a','c') default 'c'", false},
		{"ENUM in another order", enum("a", "b"), "c enum('b','a') default 'a'", false},
		{"ENUM with fewer labels", enum("a", "b"), "c enum('a') default 'a'", false},
		{"SET", set("a", "b"), "c set('a','b') default 'a,b'", true},
		{"SET of later", set("a", "b"), "c set('a','c') default 'a,c'", false},
		{"another case", enum("a"), "c enum('A') default 'A'", false},
		{"escapes", enum("it's", `b\s`, "x\ty\nz\r\x00", `\%`, `a"b`), `c enum('it''s','b\\s','x\ty\nz\r\0','\%','a\"b') default 'x'`, true},
		{"escaped quote", enum("it's"), `c enum('it\'s') default 'x'`, true},
		{"NO_BACKSLASH_ESCAPES", enum(`a\nb`), `c enum('a\nb') default 'x'`, true},
		{"beyond the basic plane", enum("é😀"), "c enum('é?') default 'x'", true},
		{"beyond the basic plane, as it is", enum("é😀"), "c enum('é😀') default 'x'", true},
		{"a question mark for another character", enum("aé"), "c enum('a?') default 'x'", false},
		{"malformed label", enum("a\ufffd"), "c enum('aé') default 'x'", true},
		{"blanks at the end", enum("a"), "c enum('a ') default 'x'", true},
		{"utf8mb4", text(255), "c varchar(9) character set utf8mb4 default 'x'", true},
		{"utf8", text(33), "c varchar(9) character set utf8 default 'x'", true},
		{"latin1 later", text(255), "c varchar(9) character set latin1 default 'x'", false},
		{"utf8mb4 later", text(8), "c varchar(9) collate utf8mb4_bin default 'x'", false},
		{"character set not given", text(8), "c varchar(9) default 'x'", true},
		{"NCHAR", text(33), "c nchar(9) character set utf8mb4 default 'x'", true},
		{"collation not known", text(0), "c varchar(9) character set latin1 default 'x'", true},
		{"text later", text(binaryCollation), "c varchar(9) character set latin1 default 'x'", false},
	} {
		table := tableOf(tt.c)
		warnings := Attach(table, parsed(t, tt.def), nil)
		if fits := table.Columns[0].Def != nil; fits != tt.fits || fits == (len(warnings) > 0) {
			t.Errorf("%s: the definition fits: %v, want %v; warnings %q", tt.name, fits, tt.fits, warnings)
		}
	}

	table := tableOf(enum("a", "b"))
	Attach(table, parsed(t, "c enum('a','c') default 'c'"), nil)
	typ, _, err := Modes{}.Column(table, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := typ.Parameter("allowed"); got != "a,b" || typ.Default != nil {
		t.Errorf("allowed %s, default %+v, want a,b and none", got, typ.Default)
	}
}
