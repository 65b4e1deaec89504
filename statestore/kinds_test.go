package statestore

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

func windowSpec(retention time.Duration) Spec {
	return Spec{Name: "windows", Kind: KindWindow, Changelog: "app-windows-changelog", Retention: retention, WindowSize: time.Second}
}

func windowOf(t testing.TB, s *TaskStore) *Window {
	t.Helper()
	w, err := s.Window("windows")
	must(t, err)
	return w
}

func starts(t testing.TB, w *Window) string {
	t.Helper()
	var all []int64
	for e, err := range w.All() {
		must(t, err)
		all = append(all, e.Start)
	}
	return fmt.Sprint(all)
}

// rowCount counts the rows of a store in the database.
func rowCount(t testing.TB, s *TaskStore, name string) (n int) {
	t.Helper()
	st, err := s.find(name)
	must(t, err)
	it, err := st.rows.NewIter("count", st.prefix[:], nil)
	must(t, err)
	lower, upper := storeBounds(st.id)
	for ok := it.SeekGE(lower); ok && string(it.Key()) < string(upper); ok = it.Next() {
		n++
	}
	must(t, errors.Join(it.Err(), it.Close()))
	return n
}

func TestRetentionMayChange(t *testing.T) {
	fs := vfs.NewMem()
	open := func(retention time.Duration) *TaskStore {
		t.Helper()
		return openStore(t, "t", memOptions(fs), windowSpec(retention))
	}
	put := func(s *TaskStore, start int64) error {
		return windowOf(t, s).Put([]byte("k"), []byte("v"), start, start)
	}
	s := open(200 * time.Second) // segments of 100 s
	for _, start := range []int64{50_000, 150_000, 210_000} {
		must(t, put(s, start))
	}
	commit(t, s, Progress{}, nil)
	must(t, s.Close())

	s = open(50 * time.Second) // shorter
	if got := starts(t, windowOf(t, s)); got != "[210000]" {
		t.Errorf("with a shorter retention: %s", got)
	}
	if err := put(s, 99_999); !errors.Is(err, ErrExpired) {
		t.Errorf("a write that is too old for the shorter retention: %v", err)
	}
	must(t, put(s, 110_000)) // its segment of 100 s is kept
	commit(t, s, Progress{}, nil)
	if n := rowCount(t, s, "windows"); n != 3 {
		t.Errorf("%d rows; want 3: the first segment goes, the second has a start that is kept", n)
	}
	must(t, s.Close())

	s = open(1000 * time.Second) // longer
	if got := starts(t, windowOf(t, s)); got != "[110000 150000 210000]" {
		t.Errorf("with a longer retention: %s", got)
	}
	if st := state(t, s, "windows"); st.Recorded.Retention != 1000*time.Second {
		t.Errorf("recorded: %+v", st.Recorded)
	}
	must(t, put(s, 1))
	if got := windowOf(t, s).w.Interval; got != 100_000 {
		t.Errorf("segments of %d ms; want those that the keys were made with", got)
	}
	must(t, s.Adopt("windows"))
	commit(t, s, Progress{}, nil)
	must(t, s.Close())

	s, err := Open("t", memOptions(fs))
	must(t, err)
	defer s.Close()
	err = s.Register(windowSpec(200_000 * time.Second))
	if !errors.Is(err, ErrSpecChanged) || !strings.Contains(err.Error(), `"windows" was made for a retention of 16m40s, in segments of 100000 ms`) {
		t.Errorf("2,000 segments: %v", err)
	}
	must(t, s.Register(windowSpec(2000*time.Second)))
	must(t, s.Clear("windows"))
	if w := windowOf(t, s); w.w.Interval != 1_000_000 || w.StreamTime() != NoStreamTime {
		t.Errorf("a cleared store has segments of %d ms, stream time %d; want those of a new one", w.w.Interval, w.StreamTime())
	}
	must(t, put(s, 5))
	commit(t, s, Progress{}, nil)
	if got := starts(t, windowOf(t, s)); got != "[5]" {
		t.Errorf("after a clear: %s", got)
	}
}

func TestSpecsThatAreNone(t *testing.T) {
	base := Spec{Name: "s", Kind: KindWindow, Retention: time.Minute, WindowSize: time.Second}
	for want, change := range map[string]func(*Spec){
		"retention -1s is negative":                        func(p *Spec) { p.Retention = -time.Second },
		"window size 1.5ms is negative or not in whole":    func(p *Spec) { p.WindowSize = 1500 * time.Microsecond },
		"retention 1m0s is shorter than the windows, 2m0s": func(p *Spec) { p.WindowSize = 2 * time.Minute },
		"a session store cannot retain duplicates":         func(p *Spec) { p.Kind, p.RetainDuplicates = KindSession, true },
		`store "s" has the unknown kind 7`:                 func(p *Spec) { p.Kind = KindVersioned + 1 },
		`store "s" has the unknown kind 0`:                 func(p *Spec) { p.Kind = 0 },
	} {
		p := base
		change(&p)
		s := openStore(t, "t", memOptions(vfs.NewMem()))
		if err := s.Register(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	fs := vfs.NewMem()
	must(t, openStore(t, "t", memOptions(fs), base).Close())
	s := openStore(t, "t", memOptions(fs))
	p := base
	p.RetainDuplicates = true
	if err := s.Register(p); !errors.Is(err, ErrSpecChanged) {
		t.Errorf("duplicates in an old store: %v", err)
	}
	p = base
	p.Kind = KindTimestampedWindow
	if err := s.Register(p); !errors.Is(err, ErrSpecChanged) {
		t.Errorf("another kind of window: %v", err)
	}
}

func TestStoresOfAnotherKind(t *testing.T) {
	s := openStore(t, "t", memOptions(vfs.NewMem()), append([]Spec{countsSpec}, kindSpecs...)...)
	open := map[string]func(string) error{
		"key-value": func(name string) error { _, err := s.KeyValue(name); return err },
		"window":    func(name string) error { _, err := s.Window(name); return err },
		"session":   func(name string) error { _, err := s.Session(name); return err },
		"versioned": func(name string) error { _, err := s.Versioned(name); return err },
	}
	for name, kind := range map[string]string{"counts": "key-value", "windows": "window", "stamped": "window", "sessions": "session", "versions": "versioned", "none": ""} {
		for as, f := range open {
			if err := f(name); (err == nil) != (as == kind) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("store %q", name)) {
				t.Errorf("%s as %s: %v", name, as, err)
			}
		}
	}
}

func TestMalformedChangelog(t *testing.T) {
	s := openStore(t, "state/0_1", memOptions(vfs.NewMem()), kindSpecs...)
	good := kinds.AppendWindow(nil, []byte("k"), 5, 0)
	err := s.Restore("windows", []RestoreRecord{{Key: good, Value: []byte("v")}, {Key: []byte("short"), Value: []byte("v"), Timestamp: 7}}, 2)
	for _, want := range []string{`restore store "windows" of state/0_1`, "record 2 of 2", "of a window store (app-windows-changelog)", "key 73686f7274, timestamp 7", "key of 5 bytes", "Clear the store"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nhas no %q", err, want)
		}
	}
	if err := s.Restore("windows", []RestoreRecord{{Key: kinds.AppendWindow(nil, []byte("k"), 5, 3), Value: []byte("v")}}, 1); err == nil || !strings.Contains(err.Error(), "sequence 3") {
		t.Errorf("a duplicate in a store without: %v", err)
	}
	if err := s.Restore("versions", []RestoreRecord{{Key: []byte("k"), Value: []byte("v"), Timestamp: 5}, {Key: []byte("k"), Timestamp: -1}}, 2); err == nil || !strings.Contains(err.Error(), "timestamp -1") {
		t.Errorf("a version before all time: %v", err)
	}
	for _, name := range []string{"windows", "versions"} {
		if st := state(t, s, name); !st.Empty || !st.Offset.IsAbsent() {
			t.Errorf("%s after refused records: %+v", name, st)
		}
	}
	w, v := windowOf(t, s), s.storeNamed(t, "versions").versioned
	if w.StreamTime() != NoStreamTime || v.StreamTime() != NoStreamTime {
		t.Errorf("stream times %d and %d after refused records", w.StreamTime(), v.StreamTime())
	}
	if _, ok, err := v.Get([]byte("k")); ok || err != nil {
		t.Errorf("a version of a refused batch is there (%v)", err)
	}
	must(t, s.Restore("windows", []RestoreRecord{{Key: good, Value: []byte("v")}}, 1))
}

// TestExpiry: what has expired leaves the database with the commit that moves stream time,
// and nothing that has expired comes into it, by commit or restore.
func TestExpiry(t *testing.T) {
	for _, e := range []Engine{Pebble, Memory} {
		o := memOptions(vfs.NewMem())
		o.Engine = e
		s := openStore(t, "t", o, windowSpec(100*time.Second), kindSpecs[4])
		w, v := windowOf(t, s), s.storeNamed(t, "versions").versioned
		for start := range int64(100) {
			must(t, w.Put([]byte("k"), []byte("v"), 10*start, 1))
			_, err := v.Put([]byte("k"), []byte("v"), 10*start)
			must(t, err)
		}
		commit(t, s, Progress{}, nil)
		if n, m := rowCount(t, s, "windows"), rowCount(t, s, "versions"); n != 100 || m != 100 {
			t.Fatalf("%d and %d rows; want 100", n, m)
		}
		must(t, w.Put([]byte("late"), []byte("v"), 59_999, 1))
		must(t, w.Put([]byte("k"), []byte("v"), 200_000, 1))
		if err := w.Put([]byte("later"), []byte("v"), 59_998, 1); !errors.Is(err, ErrExpired) {
			t.Errorf("a late put: %v", err)
		}
		_, err := v.Put([]byte("other"), []byte("v"), 200_000)
		must(t, err)
		x, err := s.Seal(Progress{})
		must(t, err)
		if n := len(x.writes.Ranges()); n != 2 {
			t.Errorf("%d ranges deleted for two stores", n)
		}
		must(t, s.Commit(x, nil))
		s.Release(x)
		if n, m := rowCount(t, s, "windows"), rowCount(t, s, "versions"); n != 1 || m != 2 {
			t.Errorf("engine %d: %d windows and %d versions are left; want 1, and the newest of 2 keys", e, n, m)
		}
		must(t, w.Put([]byte("k"), []byte("v"), 200_001, 1))
		x, err = s.Seal(Progress{})
		must(t, err)
		if n := len(x.writes.Ranges()); n != 0 {
			t.Errorf("%d ranges deleted, though no segment has expired", n)
		}
		must(t, s.Commit(x, nil))
		s.Release(x)
		records := []RestoreRecord{{Key: kinds.AppendWindow(nil, []byte("old"), 59_999, 0), Value: []byte("v")}, {Key: kinds.AppendWindow(nil, []byte("new"), 300_000, 0), Value: []byte("v")},
			{Key: kinds.AppendWindow(nil, []byte("old"), 60_000, 0), Value: []byte("v")}}
		must(t, s.Restore("windows", records, 3))
		if n := rowCount(t, s, "windows"); n != 3 {
			t.Errorf("engine %d: %d rows after a restore; want 3 of 5", e, n)
		}
	}
}

// TestDamagedRow fails the task store; it is neither an entry nor the end.
func TestDamagedRow(t *testing.T) {
	for _, name := range []string{"windows", "sessions", "versions"} {
		s := openStore(t, "t", memOptions(vfs.NewMem()), kindSpecs...)
		st := s.storeNamed(t, name)
		must(t, s.db.Apply("damage", 0, false, func(b engine.Batch) error {
			engine.Set(b, st.prefix[:], []byte("\x00\x00\x00\x00\x00\x00\x00\x00a"), nil, []byte("12345678"))
			return nil
		}))
		var err error
		switch {
		case st.window != nil:
			must(t, st.window.Put([]byte("k"), nil, 5, 5))
			for _, err = range st.window.All() {
			}
		case st.session != nil:
			must(t, st.session.Remove([]byte("k"), 5, 5, 5))
			for _, err = range st.session.All() {
			}
		default:
			_, perr := st.versioned.Put([]byte("k"), []byte("v"), 5)
			must(t, perr)
			for _, err = range st.versioned.All() {
			}
		}
		if !errors.Is(err, ErrFailed) || !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), fmt.Sprintf("store %q", name)) {
			t.Errorf("a damaged row of %s: %v", name, err)
		}
		if err := s.Err(); !errors.Is(err, ErrFailed) {
			t.Errorf("afterwards: %v", err)
		}
	}
}

func TestWindowsAllocateNothing(t *testing.T) {
	s := openStore(t, "t", memOptions(vfs.NewMem()), kindSpecs...)
	w, x, v := windowOf(t, s), s.storeNamed(t, "sessions").session, s.storeNamed(t, "versions").versioned
	at := int64(0)
	key, value := []byte("some-key"), []byte("some-value")
	for name, f := range map[string]func() error{
		"window put":    func() error { return w.Put(key, value, 5, 5) },
		"window get":    func() error { _, _, _, err := w.Get(key, 5); return err },
		"versioned put": func() error { at++; _, err := v.Put(key, value, at); return err },
		"versioned get": func() error { _, _, err := v.GetAsOf(key, at); return err },
		"session put":   func() error { return x.Put(key, value, 5, 6, 5) },
		"session get":   func() error { _, _, err := x.Get(key, 5, 6); return err },
	} {
		if n := testing.AllocsPerRun(100, func() { must(t, f()) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestNewWindowsNeedNoDatabase: a window newer than all that the cache has given up is known
// to be absent; one that was given up is found.
func TestNewWindowsNeedNoDatabase(t *testing.T) {
	o := memOptions(vfs.NewMem())
	o.CacheBytes = -1
	s := openStore(t, "t", o, windowSpec(100*time.Second))
	w, key := windowOf(t, s), []byte("k")
	find := func(start int64) bool {
		t.Helper()
		_, _, ok, err := w.Get(key, start)
		must(t, err)
		return ok
	}
	for start := range int64(1000) {
		if find(start) {
			t.Fatalf("window %d is there before it was put", start)
		}
		must(t, w.Put(key, []byte("v"), start, 1))
		if start%20 == 0 {
			commit(t, s, Progress{}, nil)
		}
	}
	st := s.CacheStats()
	if st.Evictions == 0 || st.Misses > 20 {
		t.Errorf("%d evictions, %d misses; want some, and next to none", st.Evictions, st.Misses)
	}
	for start := range int64(1000) {
		if !find(start) {
			t.Fatalf("window %d was given up and is not found", start)
		}
	}
}

// A window that has left the cache is looked for in the database, whichever call it was that
// made the cache give it up.
func TestWindowThatLeavesTheCacheDuringItsOwnGet(t *testing.T) {
	value := bytes.Repeat([]byte("v"), 200)
	for fillers := range 120 {
		o := memOptions(vfs.NewMem())
		o.Engine, o.CacheBytes = Memory, -1
		s := openStore(t, "t", o, countsSpec, windowSpec(time.Hour))
		w, kv := windowOf(t, s), handle(t, s, "counts")
		_, _, _, err := w.Get([]byte("k"), 1000)
		must(t, err)
		must(t, w.Put([]byte("k"), []byte("kept"), 1000, 1000))
		commit(t, s, Progress{}, nil)
		for i := range fillers {
			must(t, kv.Put(fmt.Appendf(nil, "f%03d", i), value, 0))
			commit(t, s, Progress{}, nil)
		}
		if v, _, ok, err := w.Get([]byte("k"), 1000); err != nil || !ok || string(v) != "kept" {
			t.Errorf("after %d other writes: %q, %t, %v", fillers, v, ok, err)
		}
		must(t, s.Close())
	}
}

// A range's bounds may be the caller's to change as soon as the loop has begun.
func TestBoundsMayChangeDuringAFetch(t *testing.T) {
	session := Spec{Name: "sessions", Kind: KindSession, Changelog: "app-sessions-changelog", Retention: time.Hour}
	s := openStore(t, "t", memOptions(vfs.NewMem()), windowSpec(time.Hour), session)
	w := windowOf(t, s)
	x, err := s.Session("sessions")
	must(t, err)
	for _, key := range []string{"a", "b", "c"} {
		must(t, w.Put([]byte(key), []byte("v"), 1000, 1000))
		must(t, x.Put([]byte(key), []byte("v"), 1000, 2000, 2000))
	}
	from, to := []byte("a"), []byte("z")
	n := 0
	for _, err := range w.FetchRange(from, to, 0, 1000) {
		must(t, err)
		n++
		copy(from, "z")
		copy(to, "a")
	}
	if n != 3 {
		t.Errorf("%d windows; want 3", n)
	}
	from, to, n = []byte("a"), []byte("z"), 0
	for _, err := range x.FetchRange(from, to) {
		must(t, err)
		n++
		copy(from, "z")
		copy(to, "a")
	}
	if n != 3 {
		t.Errorf("%d sessions; want 3", n)
	}
}

// The number that duplicates get goes on where the changelog ends, however far that is.
func TestSequenceOfDuplicatesAfterARestore(t *testing.T) {
	spec := windowSpec(time.Hour)
	spec.RetainDuplicates = true
	s := openStore(t, "t", memOptions(vfs.NewMem()), spec)
	const last = 3 << 29 // more than half of all numbers
	key := append([]byte("k"), 0, 0, 0, 0, 0, 0, 0x03, 0xe8, 0x60, 0, 0, 0)
	must(t, s.Restore("windows", []RestoreRecord{{Key: key, Value: []byte("old"), Timestamp: 1}}, 1))
	must(t, s.Complete(Progress{}, nil))
	w := windowOf(t, s)
	must(t, w.Put([]byte("k"), []byte("new"), 1000, 1))
	if v, _, ok, err := w.Get([]byte("k"), 1000); err != nil || !ok || string(v) != "new" {
		t.Errorf("after a duplicate with the number %d: %q, %t, %v; want the one put last", last, v, ok, err)
	}
}
