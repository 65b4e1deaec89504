package statestore

import (
	"errors"
	"iter"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// FuzzRestore restores two records of anything into a store of each kind: they are refused, and
// then nothing is written and the task store goes on, or what they give can be read.
func FuzzRestore(f *testing.F) {
	window := kinds.AppendWindow(nil, []byte("k"), 61_000, 0)
	session := kinds.AppendSession(nil, []byte("k"), 1, 100_000)
	for kind := KindKeyValue; kind <= KindVersioned; kind++ {
		f.Add(uint8(kind), window, []byte("v"), int64(5), session, []byte{}, int64(-1), true)
		f.Add(uint8(kind), session, []byte{}, int64(0), window, []byte("v"), int64(math.MaxInt64), false)
		f.Add(uint8(kind), []byte{}, []byte("\x01"), int64(100_000), []byte("k"), []byte("v"), int64(3), true)
	}
	f.Fuzz(func(t *testing.T, kind uint8, key1, value1 []byte, time1 int64, key2, value2 []byte, time2 int64, duplicates bool) {
		p := Spec{Name: "s", Kind: KindKeyValue + Kind(kind)%6, Changelog: "app-s-changelog"}
		if p.Kind.expiring() {
			p.Retention = 100 * time.Second
		}
		p.RetainDuplicates = duplicates && (p.Kind == KindWindow || p.Kind == KindTimestampedWindow)
		s := openStore(t, "t", Options{Engine: Memory, Logger: quiet()}, p)
		defer s.Close()
		if len(value2) == 0 {
			value2 = nil
		}
		err := s.Restore("s", []RestoreRecord{{Key: key1, Value: value1, Timestamp: time1}, {Key: key2, Value: value2, Timestamp: time2}}, 2)
		must(t, s.Err())
		states, serr := s.Stores()
		must(t, serr)
		if err != nil {
			if !states[0].Empty || !states[0].Offset.IsAbsent() {
				t.Errorf("refused with %v, and then %+v", err, states[0])
			}
			return
		}
		must(t, s.Complete(Progress{ID: CommitID{1, 1}}, nil))
		st := s.registered()[0]
		switch {
		case st.session != nil:
			readable(t, st.session.All())
			readable(t, st.session.FindByEnd(math.MinInt64, math.MaxInt64))
			readable(t, st.session.Fetch(key1))
		case st.versioned != nil:
			readable(t, st.versioned.All())
			readable(t, st.versioned.Versions(key1, math.MinInt64, math.MaxInt64))
		case st.window != nil:
			readable(t, st.window.All())
			readable(t, st.window.ReverseFetch(key1, math.MinInt64, math.MaxInt64))
		default:
			readable(t, handle(t, s, "s").All())
		}
	})
}

// FuzzRestoreRuns restores two records of anything in runs, as two batches would.
func FuzzRestoreRuns(f *testing.F) {
	f.Add(true, []byte("k"), []byte("v"), int64(5), []byte("k"), []byte{}, int64(-1))
	f.Add(false, []byte{}, []byte{}, int64(math.MinInt64), []byte("\xff\xff"), []byte("v"), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, stamped bool, key1, value1 []byte, time1 int64, key2, value2 []byte, time2 int64) {
		spec := countsSpec
		if stamped {
			spec = latestSpec
		}
		if len(value2) == 0 {
			value2 = nil
		}
		records := []RestoreRecord{{Key: key1, Value: value1, Timestamp: time1}, {Key: key2, Value: value2, Timestamp: time2}}
		var got [2][]Entry
		for i, restore := range []func(s *TaskStore) error{
			func(s *TaskStore) error { return s.Restore(spec.Name, records, 2) },
			func(s *TaskStore) error {
				x, err := s.RestoreRuns(spec.Name)
				must(t, err)
				defer x.Close()
				return errors.Join(x.Add(records, 2), x.Flush())
			},
		} {
			s := openStore(t, "t", memOptions(vfs.NewMem()), spec)
			must(t, restore(s))
			must(t, s.Complete(Progress{ID: CommitID{1, 1}}, nil))
			got[i] = collect(t, handle(t, s, spec.Name).All())
			must(t, s.Close())
		}
		if !reflect.DeepEqual(got[0], got[1]) {
			t.Errorf("runs gave %v, batches %v", got[1], got[0])
		}
	})
}

func readable[E any](t *testing.T, seq iter.Seq2[E, error]) {
	t.Helper()
	for _, err := range seq {
		must(t, err)
	}
}

func FuzzStorePoint(f *testing.F) {
	for _, s := range []string{"", "absent; commit none", "clean, unknown; commit 3/9", "at 17; commit 3/9", "at +1; commit 1/1", "at 1; commit 3/9/2"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p, q StorePoint
		if err := p.UnmarshalText(text); err != nil {
			if p != q {
				t.Errorf("%q: %v, and %+v all the same", text, err, p)
			}
			return
		}
		again, err := p.MarshalText()
		must(t, err)
		if err := q.UnmarshalText(again); err != nil || p != q {
			t.Errorf("%q became %+v, which became %q and %+v, %v", text, p, again, q, err)
		}
	})
}
