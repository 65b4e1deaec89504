package serde_test

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/serde"
	"pgregory.net/rapid"
)

// order is a value with everything JSON has to offer.
type order struct {
	ID     string           `json:"id"`
	Amount float64          `json:"amount"`
	Tags   []string         `json:"tags,omitempty"`
	Raw    []byte           `json:"raw,omitempty"`
	Counts map[string]int64 `json:"counts,omitempty"`
	Next   *order           `json:"next,omitempty"`
}

// checkContract asks of one value what every serde owes for each (S1 to S4).
func checkContract[T any](t rapid.TB, s serde.Serde[T], v T, equal func(a, b T) bool) {
	t.Helper()
	b, err := s.Append(nil, v)
	if err != nil {
		t.Fatalf("%s: append %#v: %v", s.Name(), v, err)
	}
	if b == nil {
		t.Fatalf("%s: append %#v to nil is nil, which is null (S2)", s.Name(), v)
	}
	prefixed, err := s.Append([]byte("prefix\n"), v)
	if err != nil || string(prefixed) != "prefix\n"+string(b) {
		t.Fatalf("%s: append %#v to a prefix gives %q, %v; want the prefix and %q (S2, S3)", s.Name(), v, prefixed, err, b)
	}
	given := bytes.Clone(b)
	got, err := s.Decode(given)
	if err != nil {
		t.Fatalf("%s: decode %x of %#v: %v", s.Name(), b, v, err)
	}
	if !bytes.Equal(given, b) {
		t.Fatalf("%s: decode changed its argument (S1)", s.Name())
	}
	for i := range given {
		given[i] ^= 0xff
	}
	if !equal(got, v) {
		t.Fatalf("%s: %#v came back as %#v after the buffer was used again (S1, S4)", s.Name(), v, got)
	}
}

func same[T comparable](a, b T) bool { return a == b }
func deep[T any](a, b T) bool        { return reflect.DeepEqual(a, b) }

func TestContract(t *testing.T) {
	orders := rapid.Custom(func(t *rapid.T) order {
		o := order{ID: rapid.String().Draw(t, "id"), Amount: rapid.Float64().Draw(t, "amount")}
		if rapid.Bool().Draw(t, "rich") {
			o.Tags = rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "tags")
			o.Raw = rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "raw")
			o.Counts = rapid.MapOfN(rapid.String(), rapid.Int64(), 1, 5).Draw(t, "counts")
			o.Next = &order{ID: rapid.String().Draw(t, "next")}
		}
		return o
	})
	for name, check := range map[string]func(*rapid.T){
		// Any bytes, not only text: a key written by another program must survive.
		"string": func(t *rapid.T) {
			v := string(rapid.SliceOf(rapid.Byte()).Draw(t, "v"))
			checkContract(t, serde.String, v, same)
		},
		"bytes": func(t *rapid.T) {
			v := append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "v")...)
			checkContract(t, serde.Bytes, v, deep)
		},
		"int64": func(t *rapid.T) { checkContract(t, serde.Int64, rapid.Int64().Draw(t, "v"), same) },
		"int32": func(t *rapid.T) { checkContract(t, serde.Int32, rapid.Int32().Draw(t, "v"), same) },
		"float64": func(t *rapid.T) {
			v := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
			checkContract(t, serde.Float64, v, func(a, b float64) bool {
				return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
			})
		},
		"json":         func(t *rapid.T) { checkContract(t, serde.JSON[order](), orders.Draw(t, "v"), deep) },
		"json pointer": func(t *rapid.T) { v := orders.Draw(t, "v"); checkContract(t, serde.JSON[*order](), &v, deep) },
		"nullable": func(t *rapid.T) {
			v := rapid.Int64().Draw(t, "v")
			checkContract(t, serde.Nullable(serde.Int64), &v, deep)
		},
		"nullable string": func(t *rapid.T) {
			v := rapid.String().Draw(t, "v")
			checkContract(t, serde.Nullable(serde.String), &v, deep)
		},
	} {
		t.Run(name, func(t *testing.T) { rapid.Check(t, check) })
	}
}

// The cases where an empty encoding could turn into null, or an empty value into nil.
func TestEmptyIsNotNull(t *testing.T) {
	checkContract(t, serde.String, "", same)
	checkContract(t, serde.Bytes, []byte{}, deep)
	checkContract(t, serde.JSON[[]byte](), []byte{}, deep)
	checkContract(t, serde.JSON[map[string]int](), map[string]int{}, deep)
	v, err := serde.Bytes.Decode(nil)
	if v == nil || err != nil {
		t.Errorf("decode of no bytes = %#v, %v; want an empty slice", v, err)
	}
	if b, err := serde.Bytes.Append(nil, nil); b == nil || len(b) != 0 || err != nil {
		t.Errorf("append of nil = %#v, %v; want an empty slice", b, err)
	}
}

// javaCase compares with the bytes that kafka-clients 4.3.1 wrote.
func javaCase[T any](t *testing.T, s serde.Serde[T], v T, want string) {
	t.Helper()
	b, err := s.Append(nil, v)
	if got := hex.EncodeToString(b); got != want || err != nil {
		t.Errorf("%s: %v gives %s, %v; Java writes %s", s.Name(), v, got, err, want)
	}
}

func TestBytesOfJava(t *testing.T) {
	for v, want := range map[int64]string{0: "0000000000000000", 1: "0000000000000001", -1: "ffffffffffffffff", 255: "00000000000000ff",
		1234567890123: "0000011f71fb04cb", math.MaxInt64: "7fffffffffffffff", math.MinInt64: "8000000000000000"} {
		javaCase(t, serde.Int64, v, want)
	}
	for v, want := range map[int32]string{0: "00000000", 1: "00000001", -1: "ffffffff", 255: "000000ff",
		1234567890: "499602d2", math.MaxInt32: "7fffffff", math.MinInt32: "80000000"} {
		javaCase(t, serde.Int32, v, want)
	}
	for _, c := range []struct {
		v    float64
		want string
	}{{0, "0000000000000000"}, {math.Copysign(0, -1), "8000000000000000"}, {1, "3ff0000000000000"}, {-1.5, "bff8000000000000"},
		{math.Pi, "400921fb54442d18"}, {math.MaxFloat64, "7fefffffffffffff"}, {math.SmallestNonzeroFloat64, "0000000000000001"},
		{math.Inf(1), "7ff0000000000000"}, {math.Inf(-1), "fff0000000000000"},
		{math.NaN(), "7ff8000000000000"}, {math.Float64frombits(0xfff8000000000123), "7ff8000000000000"}} {
		javaCase(t, serde.Float64, c.v, c.want)
	}
	for v, want := range map[string]string{"": "", "a": "61", "hällo": "68c3a46c6c6f", "日本": "e697a5e69cac", "😀": "f09f9880", "a\x00b": "610062"} {
		javaCase(t, serde.String, v, want)
	}
	javaCase(t, serde.Bytes, []byte{}, "")
	javaCase(t, serde.Bytes, []byte{0, 0xff}, "00ff")
}

func TestWrongLength(t *testing.T) {
	check := func(s serde.Serde[int64], want string, n int) {
		t.Helper()
		if _, err := s.Decode(make([]byte, n)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s of %d bytes: error %v, want %q", s.Name(), n, err, want)
		}
	}
	check(serde.Int64, "0 bytes instead of 8", 0)
	check(serde.Int64, "7 bytes instead of 8", 7)
	check(serde.Int64, "9 bytes instead of 8", 9)
	for n := range 20 {
		if _, err := serde.Int32.Decode(make([]byte, n)); (err == nil) != (n == 4) {
			t.Errorf("int32 of %d bytes: error %v", n, err)
		}
		if _, err := serde.Float64.Decode(make([]byte, n)); (err == nil) != (n == 8) {
			t.Errorf("float64 of %d bytes: error %v", n, err)
		}
	}
}

func TestAllocations(t *testing.T) {
	buf := make([]byte, 0, 64)
	eight := []byte{0, 0, 0, 0, 0, 0, 0, 42}
	key := "some key or other"
	for name, f := range map[string]func(){
		"append string": func() { buf, _ = serde.String.Append(buf[:0], key) },
		"append int64":  func() { buf, _ = serde.Int64.Append(buf[:0], 42) },
		"append int32":  func() { buf, _ = serde.Int32.Append(buf[:0], 42) },
		"append float":  func() { buf, _ = serde.Float64.Append(buf[:0], 42) },
		"append bytes":  func() { buf, _ = serde.Bytes.Append(buf[:0], eight) },
		"decode int64":  func() { _, _ = serde.Int64.Decode(eight) },
		"decode float":  func() { _, _ = serde.Float64.Decode(eight) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = serde.String.Decode(eight) }); n != 1 {
		t.Errorf("decode string allocates %v times, want 1: the string", n)
	}
}
