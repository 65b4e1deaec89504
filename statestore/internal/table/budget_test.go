package table

import (
	"fmt"
	"testing"
)

// fill puts n clean entries into a table.
func fill(t *testing.T, tb *Table, n int) {
	t.Helper()
	for i := range n {
		k := fmt.Appendf(nil, "clean-%08d", i)
		if _, _, a := tb.Get(0, k); a == Unknown {
			tb.Fill(0, k, []byte("12345678"), 1)
		}
	}
}

func TestSmallerBudgetIsServedAtOnce(t *testing.T) {
	tb := New(32 << 20)
	fill(t, tb, 100_000)
	tb.SetBudget(64 << 10)
	if s := tb.Stats(); s.Bytes > 64<<10 || s.Held > 3<<20 || s.Budget != 64<<10 || s.Evictions < 99_000 {
		t.Errorf("after a budget of 64 KiB: %+v", s)
	}
	tb.SetBudget(32 << 20)
	fill(t, tb, 100_000)
	if b := tb.Bytes(); b < 4<<20 {
		t.Errorf("%d bytes after 100,000 entries and a larger budget", b)
	}
}

// Writes are kept over a smaller budget until they are in the database.
func TestSmallerBudgetWaitsForWrites(t *testing.T) {
	tb := New(32 << 20)
	for i := range 10_000 {
		put(t, tb, 0, fmt.Sprint(i), "12345678")
	}
	var c Cursor
	for range indexAfter + 1 {
		tb.Open(&c, 0, nil, nil, false)
	}
	tb.SetBudget(0)
	tb.Seal(nil)
	tb.Applied()
	for n := 0; c.Valid(); c.Next() {
		if n++; string(c.Write().Value) != "12345678" {
			t.Fatalf("write %d of an open cursor is %q", n, c.Write().Value)
		}
	}
	want(t, tb, 0, "17", "12345678", Present)
	c.Close()
	put(t, tb, 0, "more", "1")
	tb.Seal(nil)
	if tb.Applied(); tb.Bytes() > 2*minHalf {
		t.Errorf("%d bytes are kept with no budget and nothing to keep", tb.Bytes())
	}
}

func TestStats(t *testing.T) {
	tb := New(16 << 10)
	fill(t, tb, 1000) // all misses
	for range 3 {
		if _, _, a := tb.Get(0, []byte("clean-00000999")); a != Present {
			t.Fatal(a)
		}
	}
	tb.Seal(nil)
	s := tb.Stats()
	if s.Hits != 3 || s.Misses != 1000 || s.Evictions < 500 || s.Evictions >= 1000 || s.Bytes == 0 || s.Bytes > s.Held {
		t.Errorf("%+v", s)
	}
}
