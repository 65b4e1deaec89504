package memdb

import (
	"fmt"
	"testing"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/engine/enginetest"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEngine(t *testing.T) {
	enginetest.Run(t, func(rapid.TB) engine.Engine {
		return New(func(err error) error { return fmt.Errorf("failed: %w", err) })
	})
}

// A tree of many levels takes other ways than a small one: deletions of ranges in it, with
// a snapshot that shares its nodes.
func TestRangesOfALargeTree(t *testing.T) {
	const n = 20_000
	d := New(func(err error) error { return err })
	key := func(i int) []byte { return fmt.Appendf(nil, "%05d", i) }
	err := d.Apply("fill", n, false, func(b engine.Batch) error {
		for i := range n {
			engine.Set(b, nil, key(i), nil, key(i))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before, err := d.Snapshot("before")
	if err != nil {
		t.Fatal(err)
	}
	left := n
	for _, r := range [][2]int{{0, 1}, {10, 3_000}, {5_000, 5_001}, {7_000, 7_064}, {9_000, 19_999}} {
		if err := d.Apply("delete", 0, false, func(b engine.Batch) error { b.DeleteRange(key(r[0]), key(r[1])); return nil }); err != nil {
			t.Fatal(err)
		}
		left -= r[1] - r[0]
		if got := count(t, d); got != left {
			t.Fatalf("%d rows after deleting %v; want %d", got, r, left)
		}
		if got := count(t, before); got != n {
			t.Fatalf("the snapshot has %d rows after deleting %v; want %d", got, r, n)
		}
	}
}

func count(t *testing.T, r engine.Reader) (n int) {
	t.Helper()
	it, err := r.NewIter("count", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for ok := it.First(); ok; ok = it.Next() {
		if k := string(it.Key()); k <= last || k != string(it.Value()) {
			t.Fatalf("%q = %q after %q", k, it.Value(), last)
		} else {
			last = k
		}
		n++
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}
