package migration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tidemark-streams/tidemark/internal/filelock"
	"github.com/tidemark-streams/tidemark/statestore"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(migrateVariable); dir != "" {
		migrateInChild(dir)
	}
	if path := os.Getenv(lockVariable); path != "" {
		holdLikeJava(path)
	}
	// It ends up to a second after the Close of a LevelDB.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"))
}

// legacyStore makes one Pebble database with n entries, as applications with a database per
// store keep them. It is left as a kill leaves it when clean is false.
func legacyStore(t *testing.T, dir string, n int, clean bool) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	db, err := pebble.Open(dir, &pebble.Options{Logger: nothing{}})
	must(t, err)
	b := db.NewBatch()
	for i := range n {
		must(t, b.Set(legacyKey(i), legacyValue(i), nil))
	}
	must(t, b.Commit(pebble.Sync))
	if clean {
		must(t, db.Flush())
	}
	must(t, db.Close())
}

type nothing struct{}

func (nothing) Infof(string, ...any)  {}
func (nothing) Errorf(string, ...any) {}
func (nothing) Fatalf(s string, a ...any) {
	panic(fmt.Sprintf(s, a...))
}

func legacyKey(i int) []byte   { return fmt.Appendf(nil, "key%06d", i) }
func legacyValue(i int) []byte { return fmt.Appendf(nil, "value of %d", i) }

// legacyTask makes a task directory with two logged stores, one that is not logged, and
// their files.
func legacyTask(t *testing.T, stateDir string, partition, entries int) (task string) {
	t.Helper()
	task = filepath.Join(stateDir, "app", fmt.Sprintf("0_%d", partition))
	legacyStore(t, filepath.Join(task, "stores", "counts"), entries, true)
	legacyStore(t, filepath.Join(task, "stores", "names"), 10, false)
	legacyStore(t, filepath.Join(task, "other", "scratch"), 5, false)
	write := func(name, format string, a ...any) {
		must(t, os.WriteFile(filepath.Join(task, name), fmt.Appendf(nil, format, a...), 0o600))
	}
	write(checkpointName, "0\n2\napp-names-changelog %d 19\napp-counts-changelog %d 99\n", partition, partition)
	write("counts"+positionSuffix, "0\n2\nin %d 49\nother %d 3\n", partition, partition)
	write("names"+positionSuffix, "0\n1\nin %d 47\n", partition)
	return task
}

// content is what a migrated task store holds.
type content struct {
	Offsets   map[string]string
	Rows      map[string]int
	Positions []statestore.Position
	Imports   []string
}

func wantContent(partition int32, entries int) content {
	return content{
		Offsets: map[string]string{"counts": "at 100", "names": "at 20", "scratch": "absent"},
		Rows:    map[string]int{"counts": entries, "names": 10, "scratch": 5},
		// The smaller one of two: positions are a lower bound.
		Positions: []statestore.Position{{Topic: "in", Partition: partition, Next: 48}, {Topic: "other", Partition: partition, Next: 4}},
		Imports:   []string{"scratch from other/scratch", "counts from stores/counts", "names from stores/names"},
	}
}

func contentOf(t *testing.T, task string) content {
	t.Helper()
	v, err := statestore.OpenReadOnly(task, statestore.ReadOptions{})
	must(t, err)
	defer v.Close()
	c := content{Offsets: map[string]string{}, Rows: map[string]int{}}
	m := v.Metadata()
	for _, s := range m.Stores {
		c.Offsets[s.Spec.Name] = s.Offset.String()
		n := 0
		for row, err := range v.Rows(s.Spec.Name, nil, nil) {
			must(t, err)
			if string(row.Key) != string(legacyKey(n)) || string(row.Value) != string(legacyValue(n)) {
				t.Fatalf("store %s, row %d: %q = %q", s.Spec.Name, n, row.Key, row.Value)
			}
			n++
		}
		c.Rows[s.Spec.Name] = n
		if s.Spec.Kind != statestore.KindKeyValue || s.Complete || s.Spec.Name != "scratch" && s.Spec.Changelog != "app-"+s.Spec.Name+"-changelog" {
			t.Errorf("store %+v", s)
		}
	}
	c.Positions = m.Positions
	for _, x := range m.Imports {
		c.Imports = append(c.Imports, x.Store+" from "+x.Source)
	}
	return c
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func actions(r *Report) map[string]string {
	m := map[string]string{}
	for _, task := range r.Tasks {
		for _, e := range task.Entries {
			m[task.Task+" "+e.Store] = string(e.State) + " " + string(e.Action)
		}
	}
	return m
}

func TestMoveStores(t *testing.T) {
	dir := t.TempDir()
	task := legacyTask(t, dir, 3, 1000)
	o := Options{Guarantee: AtLeastOnce, Logger: quiet}
	planned, err := Plan(t.Context(), dir, o)
	must(t, err)
	if exists(t, filepath.Join(task, "CURRENT")) || exists(t, filepath.Join(dir, "app", lockName)) {
		t.Fatal("Plan wrote something")
	}
	done, err := Apply(t.Context(), dir, o)
	must(t, err)
	want := map[string]string{"0_3 counts": "at migrate", "0_3 names": "at migrate", "0_3 scratch": "absent migrate"}
	for what, r := range map[string]*Report{"plan": planned, "apply": done} {
		if diff := cmp.Diff(want, actions(r)); diff != "" || !r.OK {
			t.Errorf("%s: ok %v, notes %q (-want +got):\n%s", what, r.OK, r.Notes, diff)
		}
	}
	if diff := cmp.Diff(wantContent(3, 1000), contentOf(t, task)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{checkpointName, "counts.position", "names.position", "stores/counts", "stores/names", "other/scratch"} {
		if exists(t, filepath.Join(task, name)) || !exists(t, filepath.Join(task, name+migratedSuffix)) {
			t.Errorf("%s was not renamed", name)
		}
	}
	again, err := Apply(t.Context(), dir, o)
	if err != nil || !again.OK || len(actions(again)) != 0 {
		t.Errorf("again: %v, %+v", err, again)
	}
	must(t, Sweep(task))
	names, err := filepath.Glob(filepath.Join(task, "*"+migratedSuffix))
	if err != nil || len(names) > 0 || exists(t, filepath.Join(task, "stores")) || exists(t, filepath.Join(task, "other")) {
		t.Errorf("left behind: %q, %v", names, err)
	}
	if diff := cmp.Diff(wantContent(3, 1000), contentOf(t, task)); diff != "" {
		t.Errorf("swept (-want +got):\n%s", diff)
	}
}

// Old files that appear again are not taken twice, whatever became of the store since.
func TestNeverTwice(t *testing.T) {
	dir := t.TempDir()
	task := legacyTask(t, dir, 0, 100)
	o := Options{Guarantee: AtLeastOnce, Logger: quiet}
	_, err := Apply(t.Context(), dir, o)
	must(t, err)
	s, err := statestore.Open(task, statestore.Options{})
	must(t, err)
	stores, err := s.Stores()
	must(t, err)
	var specs []statestore.Spec
	for _, x := range stores {
		specs = append(specs, x.Recorded)
	}
	must(t, errors.Join(s.Register(specs...), s.Clear("counts"), s.Close()))
	must(t, os.RemoveAll(filepath.Join(task, "stores")))
	legacyTask(t, dir, 0, 100) // the files of a backup
	r, err := Apply(t.Context(), dir, o)
	must(t, err)
	for store, got := range actions(r) {
		if !strings.HasSuffix(got, " skip") {
			t.Errorf("%s: %s", store, got)
		}
	}
	if got := contentOf(t, task); got.Rows["counts"] != 0 || got.Offsets["counts"] != "absent" {
		t.Errorf("the cleared store came back: %+v", got)
	}
	if !exists(t, filepath.Join(task, checkpointName+migratedSuffix+"-2")) || !exists(t, filepath.Join(task, checkpointName+migratedSuffix)) {
		t.Error("one of two .checkpoint files was overwritten")
	}
}

// Under exactly-once nothing proves that the data is that of the offsets.
func TestNotProven(t *testing.T) {
	dir := t.TempDir()
	task := legacyTask(t, dir, 0, 10)
	r, err := Apply(t.Context(), dir, Options{Logger: quiet})
	must(t, err)
	want := map[string]string{"0_0 counts": "suspect restore", "0_0 names": "suspect restore", "0_0 scratch": "absent skip"}
	if diff := cmp.Diff(want, actions(r)); diff != "" || r.OK {
		t.Errorf("ok %v (-want +got):\n%s", r.OK, diff)
	}
	if !exists(t, filepath.Join(task, "stores", "counts")) || !exists(t, filepath.Join(task, checkpointName)) {
		t.Error("data and files were not left alone")
	}
	// A person says so.
	r, err = Apply(t.Context(), dir, Options{CleanShutdown: true, Logger: quiet})
	if err != nil || !r.OK {
		t.Fatalf("%v, %+v", err, r)
	}
	if diff := cmp.Diff(wantContent(0, 10), contentOf(t, task)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKeep(t *testing.T) {
	dir := t.TempDir()
	task := legacyTask(t, dir, 0, 10)
	_, err := Apply(t.Context(), dir, Options{CleanShutdown: true, Keep: true, Logger: quiet})
	must(t, err)
	must(t, Sweep(task))
	if !exists(t, filepath.Join(task, checkpointName+migratedSuffix)) || !exists(t, filepath.Join(task, "stores", "counts"+migratedSuffix)) {
		t.Error("removed although it was to be kept")
	}
}

// Files beside RocksDB data are the way back to Kafka Streams.
func TestSweepKeepsTheWayBack(t *testing.T) {
	dir := taskWith(t, checkpointName, []byte("0\n1\napp-kv-changelog 0 41\n"))
	task := filepath.Join(dir, "app", "0_0")
	must(t, os.MkdirAll(filepath.Join(task, "rocksdb", "kv"), 0o700))
	must(t, os.WriteFile(filepath.Join(task, "rocksdb", "kv", "CURRENT"), []byte("MANIFEST-000001\n"), 0o600))
	_, err := Apply(t.Context(), dir, Options{})
	must(t, err)
	must(t, Sweep(task))
	if !exists(t, filepath.Join(task, checkpointName+migratedSuffix)) || !exists(t, filepath.Join(task, "rocksdb", "kv", "CURRENT")) {
		t.Error("something was removed")
	}
}

func TestOneBadDatabase(t *testing.T) {
	dir := t.TempDir()
	bad, good := legacyTask(t, dir, 0, 10), legacyTask(t, dir, 1, 10)
	manifests, err := filepath.Glob(filepath.Join(bad, "stores", "counts", "MANIFEST-*"))
	must(t, err)
	for _, m := range manifests {
		must(t, os.Remove(m))
	}
	r, err := Apply(t.Context(), dir, Options{CleanShutdown: true, Logger: quiet})
	must(t, err)
	if e := entryOf(t, r, "0_0", "app-counts-changelog", 0); r.OK || e.Action != ActionRestore || !strings.Contains(e.Reason, filepath.Join(bad, "stores", "counts")) {
		t.Errorf("ok %v, %+v", r.OK, e)
	}
	if kept, err := filepath.Glob(filepath.Join(bad, "stores", "counts"+quarantineMarker+"*")); err != nil || len(kept) != 1 {
		t.Errorf("quarantined: %q, %v", kept, err)
	}
	if diff := cmp.Diff(wantContent(1, 10), contentOf(t, good)); diff != "" {
		t.Errorf("the good task (-want +got):\n%s", diff)
	}
	got := contentOf(t, bad)
	if got.Rows["counts"] != 0 || got.Rows["names"] != 10 || got.Offsets["counts"] != "absent" || got.Offsets["names"] != "at 20" {
		t.Errorf("the bad task: %+v", got)
	}
}

func TestInUse(t *testing.T) {
	dir := t.TempDir()
	legacyTask(t, dir, 0, 10)
	l, err := filelock.Take(filepath.Join(dir, "app", lockName), "")
	must(t, err)
	_, err = Apply(t.Context(), dir, Options{})
	var held *filelock.HeldError
	if !errors.As(err, &held) {
		t.Errorf("%v", err)
	}
	must(t, l.Close())
	if _, err := Plan(t.Context(), dir, Options{}); err != nil {
		t.Errorf("Plan: %v", err)
	}
}

func TestTimestampedStore(t *testing.T) {
	dir := t.TempDir()
	task := filepath.Join(dir, "app", "0_0")
	must(t, os.MkdirAll(task, 0o700))
	must(t, os.WriteFile(filepath.Join(task, checkpointName), []byte("0\n1\napp-kv-changelog 0 41\n"), 0o600))
	rows := source{{"a", "\x00\x00\x00\x00\x00\x00\x00\x09one"}, {"b", "\x00\x00\x00\x00\x00\x00\x00\x0a"}}
	o := Options{CleanShutdown: true, Logger: quiet,
		Specs:   map[string]statestore.Spec{"kv": {Kind: statestore.KindTimestampedKeyValue}},
		Sources: map[string]OpenSource{"kv": func(string) (Source, error) { return rows, nil }}}
	r, err := Apply(t.Context(), dir, o)
	if err != nil || !r.OK {
		t.Fatalf("%v, %+v", err, r)
	}
	s, err := statestore.Open(task, statestore.Options{})
	must(t, err)
	defer s.Close()
	must(t, s.Register(statestore.Spec{Name: "kv", Kind: statestore.KindTimestampedKeyValue, Changelog: "app-kv-changelog"}))
	kv, err := s.KeyValue("kv")
	must(t, err)
	for key, want := range map[string]string{"a": "one 9", "b": " 10"} {
		v, ts, ok, err := kv.Get([]byte(key))
		if got := fmt.Sprintf("%s %d", v, ts); err != nil || !ok || got != want {
			t.Errorf("%s: %q, %v, %v", key, got, ok, err)
		}
	}
}

// source is a Source in memory.
type source [][2]string

func (s source) Rows() iter.Seq2[statestore.Row, error] {
	return func(yield func(statestore.Row, error) bool) {
		for _, r := range s {
			if !yield(statestore.Row{Key: []byte(r[0]), Value: []byte(r[1])}, nil) {
				return
			}
		}
	}
}

func (source) Close() error { return nil }

func TestSourceFails(t *testing.T) {
	dir := t.TempDir()
	task := filepath.Join(dir, "app", "0_0")
	must(t, os.MkdirAll(task, 0o700))
	must(t, os.WriteFile(filepath.Join(task, checkpointName), []byte("0\n1\napp-kv-changelog 0 41\n"), 0o600))
	bad := errors.New("the disk of the source broke")
	o := Options{CleanShutdown: true, Logger: quiet, Sources: map[string]OpenSource{"kv": func(string) (Source, error) { return nil, bad }}}
	r, err := Apply(t.Context(), dir, o)
	if err != nil || r.OK || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], bad.Error()) || !exists(t, filepath.Join(task, checkpointName)) {
		t.Errorf("%v, %+v", err, r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Apply(ctx, dir, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// One that is stopped on the way ends behind the store that it is at, and renames nothing; the next one
// does the rest.
func TestCancelledOnTheWay(t *testing.T) {
	dir := t.TempDir()
	task := legacyTask(t, dir, 0, 300)
	why := errors.New("the application is closing")
	ctx, cancel := context.WithCancelCause(t.Context())
	o := Options{CleanShutdown: true, Logger: quiet, OnProgress: func(p Progress) {
		if p.Done && p.Store == "counts" {
			cancel(why)
		}
	}}
	if _, err := Apply(ctx, dir, o); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	for _, name := range []string{checkpointName, "counts" + positionSuffix, "stores/counts", "stores/names", "other/scratch"} {
		if !exists(t, filepath.Join(task, name)) {
			t.Errorf("%s is gone", name)
		}
	}
	if got := contentOf(t, task).Imports; slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "names") }) {
		t.Errorf("imported: %q", got)
	}
	o.OnProgress = nil
	if r, err := Apply(t.Context(), dir, o); err != nil || !r.OK {
		t.Errorf("the second one: %v, %+v", err, r)
	}
	if diff := cmp.Diff(wantContent(0, 300), contentOf(t, task)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The line of a store that a program keeps itself goes into a file of its own.
func TestOwnStores(t *testing.T) {
	dir := taskWith(t, checkpointName, []byte("0\n3\napp-mine-changelog 0 41\napp-new-changelog 0 -4\napp-kept-changelog 0 7\n"))
	task := filepath.Join(dir, "app", "0_0")
	must(t, os.WriteFile(filepath.Join(task, ".checkpoint_kept"), []byte("0\n1\napp-kept-changelog 0 9\n"), 0o600))
	for _, guarantee := range []Guarantee{ExactlyOnce, AtLeastOnce, AtLeastOnce} { // not believed, believed, done
		r, err := Apply(t.Context(), dir, Options{Guarantee: guarantee, Own: []string{"mine", "new", "kept"}, Logger: quiet})
		must(t, err)
		if guarantee == ExactlyOnce {
			if e := entryOf(t, r, "0_0", "app-mine-changelog", 0); e.Action != ActionRestore || exists(t, filepath.Join(task, ".checkpoint_mine")) {
				t.Errorf("not proven: %+v", e)
			}
			must(t, os.Rename(filepath.Join(task, checkpointName+migratedSuffix), filepath.Join(task, checkpointName)))
		}
		if !r.OK {
			t.Errorf("%+v", r)
		}
	}
	for store, want := range map[string]string{"mine": "app-mine-changelog 0 41", "new": "app-new-changelog 0 -4", "kept": "app-kept-changelog 0 9"} {
		got, err := os.ReadFile(filepath.Join(task, ".checkpoint_"+store))
		if err != nil || string(got) != "0\n1\n"+want+"\n" {
			t.Errorf("%s: %q, %v", store, got, err)
		}
	}
	if legacy, err := HasLegacy(task); err != nil || legacy {
		t.Errorf("legacy %v, %v", legacy, err)
	}
}

func TestNoSpace(t *testing.T) {
	dir := t.TempDir()
	task := legacyTask(t, dir, 0, 5)
	huge, err := os.Create(filepath.Join(task, "stores", "counts", "huge"))
	must(t, err)
	must(t, errors.Join(huge.Truncate(1<<43), huge.Close())) // has no blocks
	r, err := Apply(t.Context(), dir, Options{CleanShutdown: true, Logger: quiet})
	must(t, err)
	if r.OK || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "make space") || exists(t, filepath.Join(task, "CURRENT")) {
		t.Errorf("%+v", r)
	}
	if !exists(t, filepath.Join(task, checkpointName)) || !exists(t, filepath.Join(task, "stores", "names")) {
		t.Error("something was renamed")
	}
}

func TestKindsThatCannotMove(t *testing.T) {
	dir := t.TempDir()
	legacyTask(t, dir, 0, 5)
	o := Options{CleanShutdown: true, Logger: quiet, Specs: map[string]statestore.Spec{
		"counts":  {Kind: statestore.KindWindow},
		"names":   {Kind: statestore.KindKeyValue, InMemory: true},
		"scratch": {Kind: statestore.KindSession},
	}}
	r, err := Apply(t.Context(), dir, o)
	must(t, err)
	want := map[string]string{"0_0 counts": "at restore", "0_0 names": "at restore", "0_0 scratch": "absent skip"}
	if diff := cmp.Diff(want, actions(r)); diff != "" || r.OK {
		t.Errorf("ok %v (-want +got):\n%s", r.OK, diff)
	}
}

// An offset of a topic that is not the store's changelog says nothing about the store.
func TestOffsetOfAnotherTopic(t *testing.T) {
	dir := t.TempDir()
	task := legacyTask(t, dir, 0, 10)
	must(t, os.WriteFile(filepath.Join(task, checkpointName), []byte("0\n1\nprices 0 99\n"), 0o600))
	for _, changelog := range []string{"app-counts-changelog", "prices"} {
		o := Options{Guarantee: AtLeastOnce, Map: map[string][]string{"prices": {"counts"}},
			Specs: map[string]statestore.Spec{"counts": {Kind: statestore.KindKeyValue, Changelog: changelog}}}
		r, err := Plan(t.Context(), dir, o)
		must(t, err)
		want := ActionMigrate
		if changelog != "prices" {
			want = ActionRestore
		}
		if e := entryOf(t, r, "0_0", "prices", 0); e.Action != want {
			t.Errorf("%s: %+v", changelog, e)
		}
	}
}

// A program with one Pebble database and one offset file for each store.
func TestStoreFilesBesideDatabases(t *testing.T) {
	dir := t.TempDir()
	task := legacyTask(t, dir, 0, 10)
	must(t, os.Remove(filepath.Join(task, checkpointName)))
	must(t, os.WriteFile(filepath.Join(task, ".checkpoint_counts"), []byte("0\n1\napp-counts-changelog 0 99\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(task, ".checkpoint_names"), []byte("0\n1\napp-names-changelog 0 19\n"), 0o600))
	must(t, os.RemoveAll(filepath.Join(task, "other")))
	r, err := Plan(t.Context(), dir, Options{Logger: quiet})
	must(t, err)
	want := map[string]string{"0_0 counts": "suspect restore", "0_0 names": "suspect restore"}
	if diff := cmp.Diff(want, actions(r)); diff != "" {
		t.Errorf("not proven (-want +got):\n%s", diff)
	}
	r, err = Apply(t.Context(), dir, Options{CleanShutdown: true, Logger: quiet})
	must(t, err)
	want = map[string]string{"0_0 counts": "at migrate", "0_0 names": "at migrate"}
	if diff := cmp.Diff(want, actions(r)); diff != "" || !r.OK {
		t.Errorf("ok %v (-want +got):\n%s", r.OK, diff)
	}
	if got := contentOf(t, task); got.Offsets["counts"] != "at 100" || got.Rows["counts"] != 10 || got.Offsets["names"] != "at 20" {
		t.Errorf("%+v", got)
	}
	if exists(t, filepath.Join(task, ".checkpoint_counts")) || !exists(t, filepath.Join(task, ".checkpoint_counts"+migratedSuffix)) {
		t.Error("the store's file was not renamed")
	}
}
