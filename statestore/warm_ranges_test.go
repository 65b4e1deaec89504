package statestore

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A load that is under way has an iterator from before a range was deleted. When the range
// has come into the database, the load must not bring back what was in it.
func TestWarmDoesNotBringBackDeletedRange(t *testing.T) {
	o := memOptions(vfs.NewMem())
	s := openStore(t, "t", o, latestSpec)
	for i := range 100 {
		must(t, handle(t, s, "latest").Put(fmt.Appendf(nil, "%02d", i), []byte("old"), 1))
	}
	commit(t, s, Progress{}, nil)
	must(t, s.Close())

	s = openStore(t, "t", o, latestSpec)
	kv := handle(t, s, "latest")
	_, err := s.Warm(10)
	must(t, err)
	must(t, s.table.DeleteRange(kv.st.number, []byte("05"), []byte("90")))
	must(t, kv.Put([]byte("50"), []byte("new"), 2))
	_, err = s.Warm(10) // with the range not yet in the database
	must(t, err)
	wantAbsent(t, kv, "15")
	commit(t, s, Progress{}, nil)
	for done := false; !done; {
		done, err = s.Warm(10)
		must(t, err)
	}
	if !s.table.Complete(kv.st.number) {
		t.Fatal("the store is not complete after the load")
	}
	for key, want := range map[string]string{"04": "old", "05": "", "15": "", "30": "", "50": "new", "89": "", "90": "old"} {
		if want == "" {
			wantAbsent(t, kv, key)
		} else {
			wantValue(t, kv, key, want)
		}
	}
	if n := len(collect(t, kv.All())); n != 16 {
		t.Errorf("%d entries are left; want 16", n)
	}
	must(t, s.Close())
}
