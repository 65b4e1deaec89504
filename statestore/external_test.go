package statestore

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// besideScript commits to stores that are not in the database, and keeps their changelogs.
type besideScript struct {
	script
	mu   sync.Mutex
	logs map[string][]RestoreRecord
	ends map[string][]int // by commit
}

var besideNames = []string{"own", "wrapped", "memory"}

func (c *besideScript) open(fs vfs.FS) (*TaskStore, error) {
	s, err := Open("state/0_3", memOptions(fs))
	if err != nil {
		return nil, err
	}
	own, err := openFileStore(fs, "state/0_3/own", true)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	wrapped, err := openFileStore(fs, "state/0_3/wrapped", false)
	if err != nil {
		return nil, errors.Join(err, own.Close(), s.Close())
	}
	specs := []Spec{ownSpec, wrappedSpec, memorySpec, countsSpec}
	specs[0].Store, specs[1].Store, specs[1].ChangelogPartition = own, wrapped, 3
	if err := s.Register(specs...); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// commit writes to all stores. What it changes is in the changelogs before it is applied.
func (c *besideScript) commit(s *TaskStore, n int) error {
	for _, name := range append(besideNames, "counts") {
		kv, err := s.KeyValue(name)
		if err != nil {
			return err
		}
		for k, v := range c.writes(n) {
			if err := kv.Put([]byte(k), []byte(v), int64(n)); err != nil {
				return err
			}
		}
		if err := kv.Delete(fmt.Appendf(nil, "once-%d", n-1), int64(n)); err != nil {
			return err
		}
	}
	x, err := s.Seal(Progress{ID: CommitID{1, int64(n)}})
	if err != nil {
		return err
	}
	offsets := map[string]Offset{}
	c.mu.Lock()
	for ch := range x.Changes() {
		c.logs[ch.Store] = append(c.logs[ch.Store], RestoreRecord{Key: bytes.Clone(ch.Key), Value: bytes.Clone(ch.Value), Timestamp: ch.Timestamp})
	}
	for name, log := range c.logs {
		c.ends[name] = append(c.ends[name], len(log))
		offsets[name] = At(int64(len(log)))
	}
	c.begun.Store(int64(n))
	c.mu.Unlock()
	if err := s.Commit(x, offsets); err != nil {
		return err
	}
	s.Release(x)
	return nil
}

// recover does what a task does: it restores what is not complete at the group's commit, n.
func (c *besideScript) recover(s *TaskStore, n int) (restored int, err error) {
	states, err := s.Stores()
	if err != nil {
		return 0, err
	}
	for _, st := range states {
		name := st.Spec.Name
		if st.Complete && s.CommitID().Number == int64(n) || n == 0 {
			continue
		}
		if st.Offset.IsAbsent() && !st.Empty {
			if err := s.Clear(name); err != nil {
				return 0, err
			}
		}
		from, _ := st.Offset.Next()
		end := c.ends[name][n-1]
		if from > int64(end) {
			return 0, fmt.Errorf("store %s is at %d; its changelog ends at %d", name, from, end)
		}
		if err := s.Restore(name, c.logs[name][from:end], int64(end)); err != nil {
			return 0, err
		}
		restored++
	}
	return restored, s.Complete(Progress{ID: CommitID{1, int64(n)}}, nil)
}

// verify opens what is left, restores, and compares.
func (c *besideScript) verify(fs vfs.FS) (restored int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.open(fs)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	n := int(c.begun.Load())
	if restored, err = c.recover(s, n); err != nil {
		return 0, err
	}
	want := c.values(n)
	for _, name := range append(besideNames, "counts") {
		kv, err := s.KeyValue(name)
		if err != nil {
			return 0, err
		}
		got := map[string]string{}
		for e, err := range kv.All() {
			if err != nil {
				return 0, err
			}
			got[string(e.Key)] = string(e.Value)
		}
		if !maps.Equal(got, want) {
			return 0, fmt.Errorf("%s at commit %d holds %s; want %s", name, n, brief(got), brief(want))
		}
	}
	return restored, nil
}

// TestStoresBesideTheDatabaseSurviveACrash lets the power fail before every write of the
// database, of the user's stores and of the checkpoint file; everything is as it should be
// after a restore of what the stores themselves say is missing.
func TestStoresBesideTheDatabaseSurviveACrash(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &besideScript{logs: map[string][]RestoreRecord{}, ends: map[string][]int{}}
	fs := newCrashFS()
	var mu sync.Mutex
	crashes, restores := 0, map[int]int{}
	injected := errorfs.Wrap(fs, onWrite(func(i int64) error {
		mu.Lock()
		defer mu.Unlock()
		if i%every != 0 {
			return nil
		}
		for _, percent := range []int{0, rng.IntN(101)} {
			restored, err := c.verify(fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
			if err != nil {
				t.Errorf("write %d, %d %% of unsynced data kept: %v", i, percent, err)
			}
			crashes++
			restores[restored]++
		}
		return nil
	}))
	s, err := c.open(injected)
	must(t, err)
	for n := 1; n <= 8; n++ {
		must(t, c.commit(s, n))
		if n == 4 {
			must(t, s.Close())
			s, err = c.open(injected)
			must(t, err)
			c.mu.Lock()
			restored, err := c.recover(s, n)
			c.mu.Unlock()
			must(t, err)
			if restored != 1 {
				t.Errorf("%d stores were restored after a clean close; want only the one in memory", restored)
			}
		}
	}
	must(t, s.Close())
	t.Logf("%d crashes; stores restored: %v", crashes, restores)
	if crashes < 100/every || len(restores) < 3 {
		t.Errorf("%d crashes with %v restores: the script does not write enough", crashes, restores)
	}
}

func TestInMemoryStoreIsEmptyAtEveryOpen(t *testing.T) {
	o := memOptions(vfs.NewMem())
	s := openStore(t, "t", o, memorySpec, countsSpec)
	kv := handle(t, s, "memory")
	must(t, kv.Put([]byte("k"), []byte("v"), 1))
	must(t, handle(t, s, "counts").Put([]byte("k"), []byte("1"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"memory": At(5), "counts": At(7)})
	wantValue(t, kv, "k", "v")
	if o := s.CommittedOffsets()["memory"]; o != At(5) {
		t.Errorf("committed offset %v", o)
	}
	if o := s.DurableOffsets()["memory"]; !o.IsAbsent() {
		t.Errorf("a store in memory says that offset %v is durable", o)
	}
	if keys := rawKeys(t, s); slices.ContainsFunc(keys, func(k []byte) bool { return bytes.HasPrefix(k, kv.st.prefix[:]) }) {
		t.Errorf("the database has rows of a store in memory: %x", keys)
	}
	must(t, s.Close())

	s = openStore(t, "t", o, memorySpec, countsSpec)
	states, err := s.Stores()
	must(t, err)
	for _, st := range states {
		inMemory := st.Spec.Name == "memory"
		if st.Complete == inMemory || st.Empty != inMemory || st.Offset.IsAbsent() != inMemory {
			t.Errorf("after reopening: %+v", st)
		}
	}
	wantAbsent(t, handle(t, s, "memory"), "k")
	must(t, s.Restore("memory", []RestoreRecord{{Key: []byte("k"), Value: []byte("v")}}, 5))
	must(t, s.Complete(Progress{ID: CommitID{1, 1}}, nil))
	wantValue(t, handle(t, s, "memory"), "k", "v")
}

// What one place holds says nothing of another.
func TestStoreThatMovesIsForgotten(t *testing.T) {
	o := memOptions(vfs.NewMem())
	inDatabase, inMemory, outside := countsSpec, countsSpec, countsSpec
	inMemory.InMemory = true
	for _, move := range []struct{ from, to *Spec }{{&inDatabase, &inMemory}, {&inMemory, &inDatabase}, {&inDatabase, &outside}, {&outside, &inDatabase},
		{&outside, &inMemory}, {&inMemory, &outside}} {
		dir := fmt.Sprintf("t%p%p", move.from, move.to)
		for i, spec := range []*Spec{move.from, move.from, move.to, move.from} {
			file, err := openFileStore(o.FS, dir+"/own", true)
			must(t, err)
			outside.Store = file
			s := openStore(t, dir, o, *spec)
			st, err := s.Stores()
			must(t, err)
			if !spec.InMemory && i == 1 && (!st[0].Complete || st[0].Empty || st[0].Offset != At(1)) {
				t.Fatalf("reopened in the same place: %+v", st[0])
			}
			// A user's store keeps its rows, and knows how far it is.
			kept := i == 3 && spec.Store != nil
			if i >= 2 && (st[0].Complete || st[0].Empty == kept || st[0].Offset.IsAbsent() == kept) {
				t.Errorf("%v after %v, turn %d: %+v", spec.place(), move.from.place(), i, st[0])
			}
			if i == 0 {
				must(t, handle(t, s, "counts").Put([]byte("k"), []byte("v"), 1))
				commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"counts": At(1)})
			}
			must(t, s.Close())
			if spec.Store == nil {
				must(t, file.Close())
			}
		}
	}
}

// A store without a changelog has no offset; its commit id alone says whether it is behind.
func TestUnloggedOwnStore(t *testing.T) {
	fs := vfs.NewMem()
	spec := ownSpec
	spec.Changelog = ""
	open := func(fs vfs.FS) (*TaskStore, StoreState) {
		s := openWithFile(t, fs, fs, &spec, true)
		st, err := s.Stores()
		must(t, err)
		return s, st[0]
	}
	s, _ := open(fs)
	write := func(n int64) {
		must(t, handle(t, s, "own").Put([]byte("k"), fmt.Append(nil, n), n))
		commit(t, s, Progress{ID: CommitID{1, n}}, nil)
	}
	write(1)
	must(t, s.Close())
	older, err := readWhole(fs, "files/own")
	must(t, err)
	s, st := open(fs)
	if !st.Complete || st.Empty {
		t.Errorf("after a clean close: %+v", st)
	}
	write(2)
	must(t, s.Close())
	f, err := fs.Create("files/own", vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = f.Write(older)
	must(t, errors.Join(err, f.Close()))
	if _, st = open(fs); st.Complete {
		t.Errorf("the store is one commit behind: %+v", st)
	}
}

func TestCheckpointOfAWrappedStore(t *testing.T) {
	o := memOptions(vfs.NewMem())
	path := "state/0_3/.checkpoint_wrapped"
	open := func() (*TaskStore, StoreState) {
		file, err := openFileStore(o.FS, "files/own", false)
		must(t, err)
		spec := wrappedSpec
		spec.Store, spec.ChangelogPartition = file, 3
		s := openStore(t, "state/0_3", o, spec)
		st, err := s.Stores()
		must(t, err)
		return s, st[0]
	}
	s, _ := open()
	must(t, handle(t, s, "wrapped").Put([]byte("k"), []byte("v"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"wrapped": At(42)})
	must(t, s.Close())
	b, err := readWhole(o.FS, path)
	must(t, err)
	if want := "0\n1\napp-wrapped-changelog 3 41\n"; string(b) != want {
		t.Fatalf("the file holds %q; want %q (the last record applied, not the next)", b, want)
	}
	s, st := open()
	if !st.Complete || st.Offset != At(42) {
		t.Errorf("reopened: %+v", st)
	}
	must(t, s.Close())
	for _, c := range []struct {
		content string
		offset  Offset
	}{
		{"0\n1\napp-wrapped-changelog 3 17\n", At(18)},
		{"0\n1\napp-wrapped-changelog 3 -4\n", CleanUnknown()},
		{"0\n1\napp-wrapped-changelog 2 41\n", Offset{}}, // another partition
		{"0\n1\napp-wrapped-changelog 3 x\n", Offset{}},
		{"", Offset{}},
	} {
		f, err := o.FS.Create(path, vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = f.Write([]byte(c.content))
		must(t, errors.Join(err, f.Close()))
		s, st := open()
		if st.Complete || st.Offset != c.offset {
			t.Errorf("with %q: %+v; want an incomplete store at %v", c.content, st, c.offset)
		}
		must(t, s.Close())
	}
	s, _ = open()
	must(t, s.Complete(Progress{ID: CommitID{1, 2}}, map[string]Offset{"wrapped": {}}))
	must(t, s.Close())
	s, st = open()
	if st.Complete || st.Empty {
		t.Errorf("data without an offset: %+v", st)
	}
	must(t, s.Restore("wrapped", nil, 42))
	must(t, s.Clear("wrapped"))
	must(t, s.Close())
	if names, err := o.FS.List("state/0_3"); err != nil || slices.Contains(names, ".checkpoint_wrapped") {
		t.Errorf("after Clear: %v, %v; want no checkpoint", names, err)
	}
}

// badStore fails or panics where it is told to.
type badStore struct {
	*fileStore
	in string
}

func (b *badStore) fail(op string) error {
	if b.in == op {
		return errors.New(op + " does not work")
	}
	if b.in == "panic in "+op {
		panic("boom")
	}
	return nil
}

func (b *badStore) Get(key []byte) ([]byte, bool, error) {
	if err := b.fail("get"); err != nil {
		return nil, false, err
	}
	return b.fileStore.Get(key)
}

func (b *badStore) Range(from, to []byte, reverse bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := b.fail("range"); err != nil {
			yield(Row{}, err)
			return
		}
		b.fileStore.Range(from, to, reverse)(yield)
	}
}

func (b *badStore) Apply(writes []Row, at StorePoint) error {
	return errors.Join(b.fail("apply"), b.fileStore.Apply(writes, at))
}

func (b *badStore) Sync() error { return errors.Join(b.fail("sync"), b.fileStore.Sync()) }

func TestBadStoreEndsItsTaskStore(t *testing.T) {
	for _, op := range []string{"get", "range", "apply", "sync"} {
		for _, in := range []string{op, "panic in " + op} {
			t.Run(in, func(t *testing.T) {
				o := memOptions(vfs.NewMem())
				o.CacheBytes = -1
				file, err := openFileStore(o.FS, "files/own", true)
				must(t, err)
				must(t, file.Apply([]Row{{[]byte("k"), []byte("v")}}, StorePoint{Offset: At(1)}))
				bad := &badStore{fileStore: file}
				spec := ownSpec
				spec.Store = bad
				s := openStore(t, "t", o, spec)
				must(t, s.Complete(Progress{ID: CommitID{1, 1}}, nil))
				kv := handle(t, s, "own")
				must(t, kv.Put([]byte("new"), []byte("v"), 1))
				x, err := s.Seal(Progress{ID: CommitID{1, 2}})
				must(t, err)
				bad.in = in
				switch op {
				case "get":
					_, _, _, err = kv.Get([]byte("k"))
				case "range":
					for _, e := range kv.All() {
						err = e
					}
				case "apply":
					err = s.Commit(x, nil)
				case "sync":
					must(t, s.Commit(x, nil))
					err = s.Sync()
				}
				want := op + " does not work"
				if in != op {
					want = "panicked: boom"
				}
				if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `store "own"`) {
					t.Errorf("%v; want ErrFailed with %q and the store's name", err, want)
				}
				if again := s.Err(); again == nil || again.Error() != err.Error() {
					t.Errorf("afterwards: %v", again)
				}
			})
		}
	}
}

func TestStorePoint(t *testing.T) {
	for _, p := range []StorePoint{{}, {Offset: CleanUnknown()}, {Offset: At(0)}, {At(17), CommitID{3, 9}}} {
		text, err := p.MarshalText()
		must(t, err)
		var q StorePoint
		if err := q.UnmarshalText(text); err != nil || q != p {
			t.Errorf("%+v becomes %q and %+v, %v", p, text, q, err)
		}
	}
	for _, text := range []string{"x", "at 1", "at x; commit none", "at -1; commit none", "1; commit none", "at 1; commit 3", "at 1; commit -3/1"} {
		q := StorePoint{Offset: At(9)}
		if err := q.UnmarshalText([]byte(text)); err == nil || q != (StorePoint{}) {
			t.Errorf("%q is read as %+v, %v", text, q, err)
		}
	}
	if _, err := (StorePoint{Offset: At(-1)}).MarshalText(); err == nil {
		t.Error("a negative offset is written")
	}
}

func TestRegisterClosesStoresItRefuses(t *testing.T) {
	o := memOptions(vfs.NewMem())
	for what, change := range map[string]func(*Spec){
		"memory and store":      func(p *Spec) { p.InMemory = true },
		"without a changelog":   func(p *Spec) { p.Changelog = "" },
		"memory, no changelog":  func(p *Spec) { p.Store, p.InMemory, p.Changelog = nil, true, "" },
		"name declared already": func(p *Spec) { p.Name = "counts" },
	} {
		file, err := openFileStore(o.FS, "files/own", false)
		must(t, err)
		spec := wrappedSpec
		spec.Store = file
		change(&spec)
		s := openStore(t, "t", o)
		if err := s.Register(countsSpec, spec); err == nil {
			t.Errorf("%s: Register takes it", what)
		}
		must(t, s.Close())
		if spec.Store != nil && !file.closed {
			t.Errorf("%s: the store was not closed", what)
		}
	}
}
