package table

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func want(t *testing.T, tb *Table, store uint32, key, value string, a Answer) {
	t.Helper()
	v, _, got := tb.Get(store, []byte(key))
	if got != a || string(v) != value {
		t.Fatalf("get %d/%q = %q, answer %d; want %q, %d", store, key, v, got, value, a)
	}
}

func put(t *testing.T, tb *Table, store uint32, key, value string) {
	t.Helper()
	if err := tb.Put(store, []byte(key), []byte(value), 1); err != nil {
		t.Fatal(err)
	}
}

func TestStoresAreApart(t *testing.T) {
	tb := New(1 << 20)
	put(t, tb, 0, "k", "zero")
	put(t, tb, 1, "k", "one")
	want(t, tb, 0, "k", "zero", Present)
	want(t, tb, 1, "k", "one", Present)
	want(t, tb, 2, "k", "", Unknown)
	tb.SetComplete(2, true)
	want(t, tb, 2, "k", "", Absent)
	want(t, tb, 1, "x", "", Unknown)
}

// A write that is not in the database must stay, however full the table is.
func TestUnappliedWritesAreNotDropped(t *testing.T) {
	tb := New(8 << 10)
	put(t, tb, 0, "mine", "1")
	tb.Seal(nil)
	fill := func(round int) {
		for i := range 500 {
			k := fmt.Appendf(nil, "fill-%d-%d", round, i)
			if _, _, a := tb.Get(0, k); a == Unknown {
				tb.Fill(0, k, []byte("some value that takes room"), 1)
			}
		}
	}
	for round := range 5 {
		fill(round)
	}
	want(t, tb, 0, "mine", "1", Present)
	if tb.Bytes() > 64<<10 {
		t.Errorf("%d bytes in a table of 8 KiB that cannot drop", tb.Bytes())
	}
	tb.Applied()
	for round := range 5 {
		fill(10 + round)
	}
	if tb.Knows(0, []byte("mine")) || tb.Drops() == 0 {
		t.Errorf("an applied entry is still there after %d drops", tb.Drops())
	}
}

// The entry may be promoted between its write and its Applied; the duty to stay moves too.
func TestPromotedWritesAreNotDropped(t *testing.T) {
	tb := New(8 << 10)
	put(t, tb, 0, "mine", "1")
	tb.Seal(nil)
	for i := range 2000 {
		want(t, tb, 0, "mine", "1", Present)
		k := fmt.Appendf(nil, "fill-%d", i)
		if _, _, a := tb.Get(0, k); a == Unknown {
			tb.Fill(0, k, bytes.Repeat([]byte("x"), 100), 1)
		}
		if i == 1000 {
			put(t, tb, 0, "other", "2")
			tb.Seal(nil)
		}
	}
	want(t, tb, 0, "other", "2", Present)
}

func TestCompleteEndsAtADrop(t *testing.T) {
	tb := New(16 << 10)
	tb.SetComplete(0, true)
	tb.SetComplete(1, true)
	for i := range 1000 {
		put(t, tb, 0, fmt.Sprintf("key-%d", i), strings.Repeat("v", 50))
		if i%50 == 0 {
			tb.Seal(nil)
			tb.Applied()
		}
	}
	if tb.Drops() == 0 || tb.Complete(0) {
		t.Errorf("%d drops, complete %v", tb.Drops(), tb.Complete(0))
	}
	if !tb.Complete(1) {
		t.Error("a store without entries stopped being complete")
	}
}

func TestGrowingValueLeavesLittleBehind(t *testing.T) {
	tb := New(64 << 20)
	v := ""
	for range 5000 {
		v += "0123456789"
		put(t, tb, 0, "list", v)
	}
	want(t, tb, 0, "list", v, Present)
	if tb.Bytes() > 6*len(v) {
		t.Errorf("a value of %d bytes written 5000 times takes %d", len(v), tb.Bytes())
	}
	if d := tb.DirtyBytes(); d < len(v) || d > len(v)+100 {
		t.Errorf("%d dirty bytes for a value of %d", d, len(v))
	}
}

func TestHugeValues(t *testing.T) {
	tb := New(1 << 20)
	big := strings.Repeat("b", 3<<20)
	for i := range 5 {
		put(t, tb, 0, fmt.Sprint(i), big)
		put(t, tb, 0, fmt.Sprint("small", i), "s")
	}
	for i := range 5 {
		want(t, tb, 0, fmt.Sprint(i), big, Present)
		want(t, tb, 0, fmt.Sprint("small", i), "s", Present)
	}
	s := tb.Seal(nil)
	if s.Len() != 10 || s.Bytes() < 15<<20 {
		t.Errorf("sealed %d entries, %d bytes", s.Len(), s.Bytes())
	}
}

func TestFullTable(t *testing.T) {
	tb := New(1 << 20)
	tb.dirtyBytes = maxDirty - 10
	if err := tb.Put(0, []byte("k"), []byte("v"), 1); !errors.Is(err, ErrFull) {
		t.Errorf("%v; want ErrFull", err)
	}
}

func TestSortWithSharedPrefixes(t *testing.T) {
	tb := New(1 << 20)
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf("a-long-prefix-that-all-keys-have-%d", i*i))
	}
	keys = append(keys, "a-long-prefix-that-all-keys-have-", "a-long-prefix-that-all-keys-have-\x00", "a-long-prefix-that-all-keys-have-\x00\x00")
	for _, k := range keys {
		put(t, tb, 3, k, k)
	}
	put(t, tb, 1, "zzz", "")
	s := tb.Seal(nil)
	s.Sort()
	slices.Sort(keys)
	for i, k := range keys {
		if w := s.At(i + 1); string(w.Key) != k || string(w.Value) != k || w.Store != 3 {
			t.Fatalf("place %d has %q = %q; want %q", i+1, w.Key, w.Value, k)
		}
	}
	if i, j := s.Range(3, []byte(keys[10]), []byte(keys[20])); i != 11 || j != 21 {
		t.Errorf("range %d to %d; want 11 to 21", i, j)
	}
	if i, j := s.Range(2, nil, nil); i != j {
		t.Errorf("a store without writes has places %d to %d", i, j)
	}
}

func TestPutAndGetDoNotAllocate(t *testing.T) {
	tb := New(64 << 20)
	keys := make([][]byte, 1000)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%04d", i)
		put(t, tb, 0, string(keys[i]), "12345678")
	}
	tb.Seal(nil)
	for _, k := range keys { // the list of dirty entries has its size
		_ = tb.Put(0, k, k, 1)
	}
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		k := keys[i%len(keys)]
		i++
		v, _, _ := tb.Get(0, k)
		if err := tb.Put(0, k, v, int64(i)); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a get and a put", n)
	}
}
