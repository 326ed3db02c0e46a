package bench

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-cdc/tidemark/it"
)

// Options are the sizes of a run.
type Options struct {
	Workloads  []string
	Tools      []string
	W1         []form
	Others     []form // of all but W1
	Rounds     int
	Warm       int            // so often exactly-once reads something before what counts
	Rows       map[string]int // by workload
	Statement  int
	Tables     int
	Partitions int
	Rates      []int // 0 is 80 % of what can be
	Seconds    int
	Idle       int // seconds
	Debezium   it.Properties
	Tidemark   it.Properties
	Report     string // a file; "" is standard output
}

// form is how records are written.
type form struct {
	format, compression string
}

// inOrder are the workloads in the order in which they are run.
func (o Options) inOrder() []string {
	var all []string
	for _, name := range workloadNames {
		if slices.Contains(o.Workloads, name) {
			all = append(all, name)
		}
	}
	return all
}

const variable = "TIDEMARK_BENCH_"

// w1Forms are those that the criteria are about.
const w1Forms = "json/none,json/snappy,json/lz4,avro/none,avro/snappy,json-schema/none,json-schema/snappy"

// FromEnvironment reads the options from the environment, as the package comment says. All faults are told at once.
func FromEnvironment() (Options, error) {
	e := environment{}
	rows := e.number("ROWS", 1_000_000)
	w1 := e.number("W1_ROWS", 4*rows)
	tables := e.number("TABLES", 5000)
	o := Options{
		Workloads: e.choice("WORKLOADS", workloadNames, workloadNames),
		Tools:     e.choice("TOOLS", toolNames, toolNames),
		W1:        e.forms("W1_FORMS", w1Forms),
		Others:    e.forms("FORMS", "json/none"),
		Rounds:    e.number("ROUNDS", 3),
		Warm:      e.number("WARM", 2),
		Rows: map[string]int{
			"W1":       w1,
			"W1schema": e.number("W1_SCHEMA_ROWS", max(w1/4, 1)),
			"W2":       e.number("W2_ROWS", rows),
			"W3":       e.number("W3_ROWS", rows),
			"W3by10":   e.number("W3_ROWS", rows), // the same rows
			"W6":       e.number("W6_ROWS", max(rows*3/10, 1)),
			"W7":       e.number("W7_ROWS", max(rows/50, 10)),
			// Each table has several rows, so that the second half finds all topics known.
			"W8":     e.number("W8_ROWS", max(rows, 4*tables)),
			"start":  e.number("START_ROWS", 1000),
			"growth": e.number("GROWTH_ROWS", 2*rows),
		},
		Statement:  e.number("STATEMENT", 100),
		Tables:     tables,
		Partitions: e.number("PARTITIONS", 3),
		Seconds:    e.number("SECONDS", 20),
		Idle:       e.number("IDLE", 10),
		Debezium:   e.settings("DEBEZIUM"),
		Tidemark:   e.settings("TIDEMARK"),
		Report:     os.Getenv(variable + "REPORT"),
	}
	for _, text := range e.list("RATES", "200,5000,max") {
		rate, err := strconv.Atoi(text)
		if (err != nil || rate < 1) && text != "max" {
			e.fault("RATES", text)
			continue
		}
		o.Rates = append(o.Rates, rate)
	}
	if len(e.faults) > 0 {
		return o, fmt.Errorf("%s", strings.Join(e.faults, "; "))
	}
	return o, nil
}

// environment reads variables and collects what is wrong with them.
type environment struct {
	faults []string
}

func (e *environment) fault(name, text string) {
	e.faults = append(e.faults, fmt.Sprintf("%s%s has %q", variable, name, text))
}

// number is a positive number, or what it is without the variable.
func (e *environment) number(name string, without int) int {
	text := os.Getenv(variable + name)
	if text == "" {
		return without
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		e.fault(name, text)
		return without
	}
	return n
}

func (e *environment) list(name, without string) []string {
	text := os.Getenv(variable + name)
	if text == "" {
		text = without
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// choice is a list of known names.
func (e *environment) choice(name string, without, known []string) []string {
	chosen := e.list(name, strings.Join(without, ","))
	for _, c := range chosen {
		if !slices.Contains(known, c) {
			e.fault(name, c)
		}
	}
	return chosen
}

// forms is a list of formats with their compression, as json/none.
func (e *environment) forms(name, without string) []form {
	var all []form
	for _, text := range e.list(name, without) {
		format, compression, _ := strings.Cut(text, "/")
		if !slices.Contains([]string{"json", "json-schema", "avro"}, format) ||
			!slices.Contains([]string{"none", "snappy", "lz4", "zstd", "gzip"}, compression) {
			e.fault(name, text)
		}
		all = append(all, form{format, compression})
	}
	return all
}

func (e *environment) settings(name string) it.Properties {
	p := it.Properties{}
	text := os.Getenv(variable + name)
	if text == "" {
		return p
	}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			e.fault(name, pair)
			continue
		}
		p[key] = value
	}
	return p
}
