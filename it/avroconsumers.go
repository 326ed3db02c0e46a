package it

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// AvroRecord is a record as a consumer has decoded it: plain JSON values, integers as [json.Number], bytes as {"bytes": hex} and
// decimals as {"decimal": text}.
type AvroRecord struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       any
	Value     any // nil for null
}

// String is where the record is and all of it, with the members of each object in order, so that equal records have equal texts.
func (r AvroRecord) String() string {
	return fmt.Sprintf("%s/%d@%d %s %s", r.Topic, r.Partition, r.Offset, canonical(r.Key), canonical(r.Value))
}

// canonical is the JSON text of a plain value with sorted members and numbers in one form.
func canonical(v any) string {
	b, err := json.Marshal(uniform(v))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// uniform gives numbers that languages print differently one form: the double 3.0 is 3, 1.0E10 is 1e+10.
func uniform(v any) any {
	switch x := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(x))
		for name, member := range x {
			m[name] = uniform(member)
		}
		return m
	case []any:
		items := make([]any, len(x))
		for i := range x {
			items[i] = uniform(x[i])
		}
		return items
	case float64:
		if math.Abs(x) < 1<<53 && x == math.Trunc(x) {
			return json.Number(strconv.FormatInt(int64(x), 10))
		}
		return x
	case json.Number:
		if strings.ContainsAny(x.String(), ".eE") {
			f, err := x.Float64()
			if err != nil {
				return x.String()
			}
			return uniform(f)
		}
	}
	return v
}

// plainJSON reads JSON into plain values.
func plainJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	return v, d.Decode(&v)
}

// ConsumeGo reads the topics that start with prefix and decodes them with goavro.
func (k *Kafka) ConsumeGo(t testing.TB, prefix string, d *AvroDecoder) []AvroRecord {
	t.Helper()
	var all []AvroRecord
	for _, m := range k.Read(t, prefix) {
		r := AvroRecord{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset}
		for _, part := range []struct {
			data []byte
			into *any
		}{{m.Key, &r.Key}, {m.Value, &r.Value}} {
			v, err := d.decode(t, part.data, tagged)
			if err != nil {
				t.Fatalf("%s/%d@%d: %v", m.Topic, m.Partition, m.Offset, err)
			}
			*part.into = v
		}
		all = append(all, r)
	}
	return sorted(all)
}

// ConsumeJava reads the same topics with a Java consumer (consumers/AvroConsumer.java): with Avro Java's own reader and Confluent's ids
// (mode "confluent"), or with Apicurio's deserializer and global ids in 8 ("apicurio") or 4 bytes ("apicurio4").
func (k *Kafka) ConsumeJava(t testing.TB, prefix, mode string, r *Registry) []AvroRecord {
	t.Helper()
	url := r.URL()
	if mode != "confluent" {
		url = r.ApicurioURL()
	}
	return consume(t, exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", Image(t, "avro-java"), "AvroConsumer", k.Addr(), prefix, mode, url))
}

// ConsumePython reads the same topics with fastavro, through Confluent's Python client and Confluent's ids
// (consumers/avro_consumer.py).
func (k *Kafka) ConsumePython(t testing.TB, prefix string, r *Registry) []AvroRecord {
	t.Helper()
	cmd := exec.Command("python3", filepath.Join(moduleRoot(t), "it", "consumers", "avro_consumer.py"), k.Addr(), prefix, r.URL())
	cmd.Env = append(os.Environ(), "PYTHONPATH="+Image(t, "avro-python"), "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8")
	return consume(t, cmd)
}

// consume runs a consumer that prints a line for each record.
func consume(t testing.TB, cmd *exec.Cmd) []AvroRecord {
	t.Helper()
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(cmd.Path), err, tail(said.String(), 30))
	}
	var all []AvroRecord
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		var r AvroRecord
		if err := d.Decode(&r); err != nil {
			t.Fatalf("%s: %v in %.300s", filepath.Base(cmd.Path), err, lines.Text())
		}
		all = append(all, r)
	}
	return sorted(all)
}

func sorted(all []AvroRecord) []AvroRecord {
	slices.SortFunc(all, func(a, b AvroRecord) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return all
}
