package statestore

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestApproximateCount(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), countsSpec)
	kv := handle(t, s, "counts")
	want := func(low, high int64) {
		t.Helper()
		if n, err := kv.ApproximateCount(); err != nil || n < low || n > high {
			t.Errorf("count %d, %v; want %d to %d", n, err, low, high)
		}
	}
	want(0, 0)
	for i := range 500 {
		must(t, kv.Put(fmt.Appendf(nil, "key-%06d", i), []byte("some value"), 1))
	}
	commit(t, s, Progress{}, nil)
	must(t, kv.Delete([]byte("key-000007"), 1))
	want(499, 499)
	for i := range 40_000 {
		must(t, kv.Put(fmt.Appendf(nil, "key-%06d", i), fmt.Appendf(nil, "some value %d", i), 1))
	}
	want(40_000, 40_000) // nothing of it is in files
	commit(t, s, Progress{}, nil)
	must(t, s.Close())
	s = openStore(t, "t", memOptions(fs), countsSpec)
	kv = handle(t, s, "counts")
	want(30_000, 50_000)
}
