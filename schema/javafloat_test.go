package schema

import (
	"bufio"
	"compress/gzip"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestJavaText compares with what Java 17 printed: lines of d or f, the bits in hexadecimal, the text.
func TestJavaText(t *testing.T) {
	f, err := os.Open("testdata/java17-floats.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for s := bufio.NewScanner(z); s.Scan(); n++ {
		kind, rest, _ := strings.Cut(s.Text(), " ")
		hex, want, _ := strings.Cut(rest, " ")
		b, err := strconv.ParseUint(hex, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		if kind == "d" {
			got = AppendDouble(nil, math.Float64frombits(b))
		} else {
			got = AppendFloat(nil, math.Float32frombits(uint32(b)))
		}
		if string(got) != want {
			t.Errorf("%s %s: got %s, want %s", kind, hex, got, want)
		}
	}
	if n < 5000 {
		t.Errorf("only %d numbers", n)
	}
}

func TestJavaTextLimits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", math.Copysign(0, -1): "-0.0", 1: "1.0", 1e7: "1.0E7", 9999999: "9999999.0", 0.001: "0.001", 0.0009: "9.0E-4",
		100: "100.0", math.MaxFloat64: "1.7976931348623157E308", math.SmallestNonzeroFloat64: "4.9E-324",
		math.Inf(1): "Infinity", math.Inf(-1): "-Infinity", 2.2250738585072014e-308: "2.2250738585072014E-308",
		1234567.125: "1234567.125", 5.102892484113533e18: "5.1028924841135329E18", // a digit more than the shortest
	} {
		if got := string(AppendDouble(nil, v)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := string(AppendDouble(nil, math.NaN())); got != "NaN" {
		t.Errorf("got %s", got)
	}
	for v, want := range map[float32]string{
		0.1: "0.1", 16777216: "1.6777216E7", math.MaxFloat32: "3.4028235E38", math.SmallestNonzeroFloat32: "1.4E-45",
		123456.79: "123456.79", 1e10: "1.0E10",
	} {
		if got := string(AppendFloat(nil, v)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func FuzzJavaDouble(f *testing.F) {
	f.Add(uint64(1))
	f.Add(math.Float64bits(0.1))
	f.Add(math.Float64bits(math.MaxFloat64))
	f.Fuzz(func(t *testing.T, b uint64) {
		v := math.Float64frombits(b)
		text := string(AppendDouble(nil, v))
		if got, err := strconv.ParseFloat(text, 64); err != nil || got != v && v == v {
			t.Errorf("%x is printed as %s, which is %x, %v", b, text, math.Float64bits(got), err)
		}
		text = string(AppendFloat(nil, math.Float32frombits(uint32(b))))
		if got, err := strconv.ParseFloat(text, 32); err != nil || float32(got) != math.Float32frombits(uint32(b)) && got == got {
			t.Errorf("%x is printed as %s, which is %v, %v", uint32(b), text, got, err)
		}
	})
}
