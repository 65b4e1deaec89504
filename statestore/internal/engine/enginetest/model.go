package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"pgregory.net/rapid"
)

// Run checks engines that open makes, empty ones each time. The suite closes them.
func Run(t *testing.T, open func(rapid.TB) engine.Engine) {
	t.Run("model", func(t *testing.T) { rapid.Check(t, func(r *rapid.T) { history(r, open(r)) }) })
	t.Run("whole batches", func(t *testing.T) { wholeBatches(t, open(t)) })
	t.Run("failure", func(t *testing.T) { failure(t, open(t)) })
}

type rows map[string]string

// view is a snapshot beside what must be in it.
type view struct {
	s    engine.Snapshot
	rows rows
}

func genKey() *rapid.Generator[[]byte] {
	return rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xff}), 1, 4)
}

// history runs random calls against the engine and a map.
func history(r *rapid.T, e engine.Engine) {
	now := rows{}
	var views []view
	r.Repeat(map[string]func(*rapid.T){
		"apply": func(r *rapid.T) { applyRandom(r, e, now) },
		"read":  func(r *rapid.T) { checkReader(r, e, now) },
		"snapshot": func(r *rapid.T) {
			s, err := e.Snapshot("test")
			ok(r, err)
			views = append(views, view{s, maps.Clone(now)})
		},
		"read snapshot": func(r *rapid.T) {
			if len(views) > 0 {
				v := views[rapid.IntRange(0, len(views)-1).Draw(r, "snapshot")]
				checkReader(r, v.s, v.rows)
			}
		},
		"write in a loop": func(r *rapid.T) {
			it, err := e.NewIter("test", nil, nil)
			ok(r, err)
			before := maps.Clone(now)
			applyRandom(r, e, now)
			walk(r, it, before, nil, nil)
			ok(r, it.Close())
		},
		"sync and flush": func(r *rapid.T) { ok(r, errors.Join(e.Sync(), e.Flush())) },
	})
	for _, v := range views {
		checkReader(r, v.s, v.rows)
		ok(r, v.s.Close())
	}
	ok(r, e.Close())
}

func ok(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func applyRandom(r *rapid.T, e engine.Engine, now rows) {
	n := rapid.IntRange(0, 20).Draw(r, "writes")
	ok(r, e.Apply("test", 100, rapid.Bool().Draw(r, "sync"), func(b engine.Batch) error {
		for range n {
			key := genKey().Draw(r, "key")
			switch rapid.IntRange(0, 9).Draw(r, "kind") {
			case 0:
				to := genKey().Draw(r, "to")
				b.DeleteRange(key, to)
				maps.DeleteFunc(now, func(k, _ string) bool { return k >= string(key) && k < string(to) })
			case 1, 2:
				engine.Delete(b, key[:1], key[1:])
				delete(now, string(key))
			default:
				value := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(r, "value")
				engine.Set(b, key[:1], key[1:], value[:len(value)/2], value[len(value)/2:])
				now[string(key)] = string(value)
			}
		}
		return nil
	}))
}

func checkReader(r *rapid.T, e engine.Reader, now rows) {
	key := genKey().Draw(r, "key")
	buf := make([]byte, 2, 8)
	value, found, err := e.Get("test", key, buf)
	ok(r, err)
	want, there := now[string(key)]
	if found != there || string(value) != want || found && value == nil {
		r.Fatalf("get %x = %x, %v; want %x, %v", key, value, found, want, there)
	}
	var lower, upper []byte
	if rapid.Bool().Draw(r, "from") {
		lower = genKey().Draw(r, "lower")
	}
	if rapid.Bool().Draw(r, "to") {
		if upper = genKey().Draw(r, "upper"); bytes.Compare(lower, upper) >= 0 {
			upper = nil
		}
	}
	it, err := e.NewIter("test", lower, upper)
	ok(r, err)
	walk(r, it, now, lower, upper)
	ok(r, it.Close())
	ok(r, it.Close())
}

// walk moves an iterator as drawn, beside a sorted list; at < 0 is nowhere.
func walk(r *rapid.T, it engine.Iter, now rows, lower, upper []byte) {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(now)), func(k string) bool {
		return k < string(lower) || upper != nil && k >= string(upper)
	})
	check := func(op string, moved bool, at int) int {
		ok(r, it.Err())
		if at < 0 || at >= len(keys) {
			at = -1
		}
		if moved != (at >= 0) {
			r.Fatalf("%s moved: %v; want %v (keys %q)", op, moved, at >= 0, keys)
		}
		if moved && (string(it.Key()) != keys[at] || string(it.Value()) != now[keys[at]]) {
			r.Fatalf("%s stands at %q = %q; want %q = %q", op, it.Key(), it.Value(), keys[at], now[keys[at]])
		}
		return at
	}
	n := 0
	for moved := it.First(); moved; moved = it.Next() {
		check("next", true, n)
		n++
	}
	check("end", false, n)
	at := check("last", it.Last(), len(keys)-1)
	for range rapid.IntRange(0, 12).Draw(r, "moves") {
		switch m := rapid.IntRange(0, 7).Draw(r, "move"); {
		case m == 0:
			at = check("first", it.First(), 0)
		case m == 1:
			at = check("last", it.Last(), len(keys)-1)
		case m == 2:
			key := genKey().Draw(r, "seek")
			i, _ := slices.BinarySearch(keys, string(key))
			at = check("seek", it.SeekGE(key), i)
		case at < 0:
		case m < 5:
			at = check("next", it.Next(), at+1)
		default:
			at = check("prev", it.Prev(), at-1)
		}
	}
}

// wholeBatches: who reads beside a writer sees all of a batch or nothing.
func wholeBatches(t *testing.T, e engine.Engine) {
	const keys, batches = 50, 100
	write := func(n int) error {
		return e.Apply("test", keys*8, false, func(b engine.Batch) error {
			for k := range keys {
				engine.Set(b, nil, fmt.Appendf(nil, "k%02d", k), nil, fmt.Appendf(nil, "%d", n))
			}
			return nil
		})
	}
	ok(t, write(0))
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := range batches {
			if err := write(n); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range batches {
		it, err := e.NewIter("test", nil, nil)
		ok(t, err)
		seen := map[string]bool{}
		n := 0
		for moved := it.First(); moved; moved = it.Next() {
			seen[string(it.Value())] = true
			n++
		}
		ok(t, it.Close())
		if n != keys || len(seen) != 1 {
			t.Fatalf("%d rows of %d batches; want %d of one", n, len(seen), keys)
		}
	}
	writer.Wait()
	ok(t, e.Close())
}

// failure: the first one stays, nothing works after it, and what is open can be closed.
func failure(t *testing.T, e engine.Engine) {
	ok(t, e.Apply("test", 8, false, func(b engine.Batch) error { engine.Set(b, nil, []byte("k"), nil, []byte("v")); return nil }))
	it, err := e.NewIter("test", nil, nil)
	ok(t, err)
	s, err := e.Snapshot("test")
	ok(t, err)
	if !it.First() {
		t.Fatalf("no first row: %v", it.Err())
	}
	cause := errors.New("what is in it makes no sense")
	failed := e.Fail("read", cause)
	if !errors.Is(failed, cause) || e.Err() == nil || e.Err().Error() != failed.Error() {
		t.Fatalf("Fail gave %v, Err gives %v", failed, e.Err())
	}
	<-e.Failed()
	_ = e.Fail("read", errors.New("another"))
	_, _, getErr := e.Get("test", []byte("k"), nil)
	_, iterErr := e.NewIter("test", nil, nil)
	_, snapshotErr := e.Snapshot("test")
	_, usageErr := e.DiskUsage([]byte("a"), []byte("b"))
	_, _, rowsErr := e.EstimateRows([]byte("a"), []byte("b"))
	moved := it.Next() || it.First()
	_, _, viewErr := s.Get("test", []byte("k"), nil)
	applyErr := e.Apply("test", 1, false, func(engine.Batch) error { t.Error("a failed engine fills a batch"); return nil })
	for what, err := range map[string]error{"get": getErr, "iterator": iterErr, "snapshot": snapshotErr, "usage": usageErr, "rows": rowsErr, "move": it.Err(),
		"view": viewErr, "apply": applyErr, "sync": e.Sync(), "flush": e.Flush(), "close of the iterator": it.Close(), "close of the snapshot": s.Close()} {
		if err == nil || err.Error() != failed.Error() {
			t.Errorf("%s after the failure: %v; want %v", what, err, failed)
		}
	}
	if moved {
		t.Error("an iterator of a failed engine moves")
	}
	ok(t, e.Close())
}
