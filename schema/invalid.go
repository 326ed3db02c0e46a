package schema

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// errNoValue is why the text of a default gives none.
var errNoValue = errors.New("it is not a value of the column's type")

// invalid counts the values of one mapped column that its type cannot hold, and tells of the first of each table. It may be
// used by several goroutines.
type invalid struct {
	tell   func(database, table, column, what string) // nil: nobody
	count  *atomic.Int64                              // nil: they are not counted
	fail   bool                                       // conversions must not fail
	table  TableName                                  // that the column was mapped of
	column string

	mu   sync.Mutex
	told map[TableName]bool
}

func newInvalid(m Modes, t *Table, c *Column) *invalid {
	return &invalid{
		tell: m.Invalid, count: m.InvalidValues, fail: m.Failure == FailureFail,
		table: TableName{t.Database, t.Name}, column: c.Name,
	}
}

// value counts a value, and tells of the first one.
func (v *invalid) value(scratch *Scratch, what func() string) {
	if v.count != nil {
		v.count.Add(1)
	}
	if v.tell == nil {
		return
	}
	table := v.table
	if t := scratch.table; t != nil {
		table = TableName{t.Database, t.Name}
	}
	v.mu.Lock()
	told := v.told[table]
	if !told {
		if v.told == nil {
			v.told = make(map[TableName]bool)
		}
		v.told[table] = true
	}
	v.mu.Unlock()
	if !told {
		v.tell(table.Database, table.Table, v.column, what())
	}
}

// date is for dates that are not in the calendar, which Debezium does not read at all.
func (v *invalid) date(c civil, scratch *Scratch) {
	v.value(scratch, func() string {
		return fmt.Sprintf("%04d-%02d-%02d is not a date; it is written as a zero date is", c.year, c.month, c.day)
	})
}

// time is for a TIME in µs that is no time of day. The error is Debezium's in the mode fail.
func (v *invalid) time(micros int64, scratch *Scratch) error {
	if v.fail {
		return fmt.Errorf("TIME %s is not a time of day, as time.precision.mode has it, and event.converting.failure.handling.mode is fail",
			timeText(micros))
	}
	v.value(scratch, func() string {
		return fmt.Sprintf("TIME %s is not a time of day, as time.precision.mode has it; it is written as null, or 0 in a column that is NOT NULL",
			timeText(micros))
	})
	return nil
}

// nanos is for a DATETIME beyond what 64 bits of nanoseconds can hold.
func (v *invalid) nanos(c civil, scratch *Scratch) error {
	if v.fail {
		return fmt.Errorf("DATETIME %s does not fit into 64 bits of nanoseconds, and event.converting.failure.handling.mode is fail",
			datetimeText(c))
	}
	v.value(scratch, func() string {
		return fmt.Sprintf("DATETIME %s does not fit into 64 bits of nanoseconds; it is written as null, or 0 in a column that is NOT NULL",
			datetimeText(c))
	})
	return nil
}

// isDefault is for a default that cannot be converted.
func (v *invalid) isDefault(text string, err error) {
	if v.tell != nil {
		v.tell(v.table.Database, v.table.Table, v.column,
			fmt.Sprintf("its default %q cannot be converted and is left out of the schema: %v", text, err))
	}
}

func timeText(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	return sign + string(appendShortFraction(appendClock(nil, clockOf(micros)), int(micros%1e6)))
}

func datetimeText(c civil) string {
	return string(appendShortFraction(appendClock(append(appendDate(nil, c), ' '), c), c.micros))
}
