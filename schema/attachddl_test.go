package schema

import (
	"fmt"
	"testing"
)

// What a statement says of a column fits what the server then writes into TABLE_MAP, in both forms, and nothing else does.
func TestDefinitionsOfDDLFitTheBinlog(t *testing.T) {
	const (
		utf8mb4 = 255
		utf8mb3 = 33
		latin1  = 8
	)
	text := func(collation uint32) Column { return Column{Type: typeVarchar, Collation: collation} }
	for _, tt := range []struct {
		sql    string
		column Column
	}{
		{"BOOL", Column{Type: typeTiny}},
		{"BOOLEAN NOT NULL", Column{Type: typeTiny}},
		{"INT1 ZEROFILL", Column{Type: typeTiny, Unsigned: true}},
		{"MIDDLEINT SIGNED", Column{Type: typeInt24}},
		{"SERIAL", Column{Type: typeLonglong, Unsigned: true}},
		{"REAL", Column{Type: typeDouble}},
		{"REAL(10,2)", Column{Type: typeDouble}},
		{"FLOAT8 UNSIGNED", Column{Type: typeDouble, Unsigned: true}},
		{"FLOAT(30)", Column{Type: typeDouble}},
		{"DEC", Column{Type: typeNewDecimal, Meta: 10 << 8}},
		{"FIXED(0)", Column{Type: typeNewDecimal, Meta: 10 << 8}},
		{"NUMERIC(5,2)", Column{Type: typeNewDecimal, Meta: 5<<8 | 2}},
		{"BIT", Column{Type: typeBit, Meta: 1}},
		{"BIT(0)", Column{Type: typeBit, Meta: 1}},
		{"BIT(12)", Column{Type: typeBit, Meta: 1<<8 | 4}},
		{"YEAR(4)", Column{Type: typeYear}},
		{"TIME(0)", Column{Type: typeTime2}},
		{"DATETIME(6)", Column{Type: typeDatetime2, Meta: 6}},
		{"CHAR(3)", text(utf8mb4)},
		{"CHAR(3) CHARACTER SET binary", text(binaryCollation)},
		{"TEXT CHARACTER SET binary", text(binaryCollation)},
		{"CHAR(3) BYTE", text(binaryCollation)},
		{"CHAR(3) ASCII", text(latin1)},
		{"CHAR(3) COLLATE latin1_bin", text(latin1)},
		{"CHAR(3) CHARACTER SET LATIN1 BINARY", text(latin1)},
		{"NATIONAL CHAR(3)", text(utf8mb3)},
		{"NATIONAL CHAR(3) BINARY", text(utf8mb3)},
		{"NCHAR VARCHARACTER(3) BINARY", text(utf8mb3)},
		{"NVARCHAR(3)", text(utf8mb3)},
		{"LONG", text(utf8mb4)},
		{"LONG VARBINARY", text(binaryCollation)},
		{"BINARY", text(binaryCollation)},
		{`ENUM("it's", 'a\'b', 'c  ', 'x,y', '\\')`, Column{Type: typeEnum, Collation: utf8mb4, Labels: []string{"it's", "a'b", "c", "x,y", `\`}}},
		{`SET('é','😀') CHARACTER SET latin1`, Column{Type: typeSet, Collation: latin1, Labels: []string{"é", "😀"}}},
		{"ENUM('a') BINARY", Column{Type: typeEnum, Collation: utf8mb4, Labels: []string{"a"}}},
		{"JSON", Column{Type: typeJSON}},
		{"GEOMCOLLECTION", Column{Type: typeGeometry}},
		{"POINT SRID 4326", Column{Type: typeGeometry}},
		{"VECTOR", Column{Type: typeVector}},
	} {
		for _, form := range []Form{StreamForm, ShowCreateForm} {
			c := NewCatalog(CatalogOptions{})
			s := Statement{Database: "d", SQL: "CREATE TABLE t (c " + tt.sql + ")", Form: form, Collation: utf8mb4}
			if _, _, err := c.Apply(s); err != nil {
				t.Errorf("%s: %v", tt.sql, err)
				continue
			}
			def := &c.Definition("d", "t").Columns[0]
			if !fits(&tt.column, def) {
				t.Errorf("%s, form %d: %s does not fit %+v", tt.sql, form, outline(c.Definition("d", "t")), tt.column)
			}
			other := tt.column
			other.Type = typeDate
			if other.Labels = append([]string{"more"}, tt.column.Labels...); tt.column.Labels != nil {
				other.Type = tt.column.Type
			}
			if fits(&other, def) {
				t.Errorf("%s, form %d: fits %+v", tt.sql, form, other)
			}
		}
	}
}

// The key that Debezium chooses is the record's, whatever the server takes for the primary key.
func TestKeysOfDDL(t *testing.T) {
	for _, tt := range []struct{ sql, want string }{
		{"create table t (a int unique, b int not null unique)", "[a]"},
		{"create table t (a int not null, b int not null unique, primary key (a))", "[a]"},
		{"create table t (a int, b int not null, unique (a), unique (b))", "[b]"},
		{"create table t (a int, unique ((a + 1)), unique (a))", "[]"},
		{"create table t (a int not null); create unique index i on t (a)", "[a]"},
		{"create table t (a int not null); create unique index i on t (a); drop index i on t", "[a]"},
		{"create table t (a int not null); alter table t add unique (a), add b int unique", "[a]"},
		{"create table t (a int); alter table t add b int not null unique", "[]"},
		{"create table t (a int); alter table t add b int primary key", "[b]"},
		{"create table t (a int); alter table t add (b int not null unique, c int primary key, primary key (b))", "[b]"},
		{"create table t (a int, b int not null unique); alter table t drop column b", "[]"},
		{"create table t (a int primary key, b int not null unique); alter table t drop primary key", "[]"},
		{"create table t (A int primary key); alter table t modify a bigint", "[A]"},
	} {
		c := NewCatalog(CatalogOptions{})
		if _, _, err := c.Apply(Statement{Database: "d", SQL: tt.sql}); err != nil {
			t.Errorf("%s: %v", tt.sql, err)
			continue
		}
		if got := fmt.Sprint(c.Definition("d", "t").Key); got != tt.want {
			t.Errorf("%s: key %s, want %s", tt.sql, got, tt.want)
		}
	}
}
