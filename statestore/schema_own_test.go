package statestore

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// ownSchemaSpecs are schemaSpecs in stores of the program's own, in turn with offsets and without.
func ownSchemaSpecs(t testing.TB, files vfs.FS, version uint32, migrates bool) []Spec {
	t.Helper()
	specs, err := ownSchemaSpecsOn(files, version, migrates)
	must(t, err)
	return specs
}

func ownSchemaSpecsOn(files vfs.FS, version uint32, migrates bool) ([]Spec, error) {
	specs := schemaSpecs(version, migrates)
	for i := range specs {
		f, err := openFileStore(files, "own/"+specs[i].Name, i%2 == 0)
		if err != nil {
			return nil, err
		}
		specs[i].Store = f
	}
	return specs, nil
}

// openOwnSchema opens and registers; restores of what a migration has emptied are done.
func openOwnSchema(t testing.TB, o Options, version uint32, logs map[string][]RestoreRecord) (s *TaskStore, restored int) {
	t.Helper()
	s = openStore(t, "t", o, ownSchemaSpecs(t, o.FS, version, version > 1)...)
	return s, restoreOwnSchema(t, s, logs)
}

func restoreOwnSchema(t testing.TB, s *TaskStore, logs map[string][]RestoreRecord) (restored int) {
	t.Helper()
	states, err := s.Stores()
	must(t, err)
	for _, st := range states {
		next, ok := st.Offset.Next()
		if ok && st.Complete {
			continue
		}
		if !ok {
			restored++
			must(t, s.Clear(st.Spec.Name))
		}
		log := logs[st.Spec.Name]
		must(t, s.Restore(st.Spec.Name, log[min(int(next), len(log)):], int64(len(log))))
	}
	must(t, s.Complete(Progress{ID: s.CommitID()}, nil))
	return restored
}

// wantOwnValues wants every value of every store to be this one.
func wantOwnValues(t *testing.T, s *TaskStore, want string, keys int) {
	t.Helper()
	for _, st := range s.registered() {
		if st.versioned != nil {
			continue // its rows begin otherwise; see wantOwnVersions
		}
		n := 0
		for row, err := range st.spec.Store.Range(nil, nil, false) {
			must(t, err)
			if n++; !bytes.HasSuffix(row.Value, []byte(want)) || !strings.Contains(want, ">") && bytes.Contains(row.Value, []byte(">")) {
				t.Errorf("%s: row %q = %q; want the value %q", st.spec.Name, row.Key, row.Value, want)
			}
		}
		if n != keys {
			t.Errorf("%s has %d rows; want %d", st.spec.Name, n, keys)
		}
	}
	wantOwnVersions(t, s, want, keys)
}

func wantOwnVersions(t *testing.T, s *TaskStore, want string, keys int) {
	t.Helper()
	v, err := s.Versioned("versions")
	must(t, err)
	n := 0
	for e, err := range v.All() {
		must(t, err)
		if n++; string(e.Value) != want {
			t.Errorf("version of %q: %q; want %q", e.Key, e.Value, want)
		}
	}
	if n != 2*keys {
		t.Errorf("%d versions; want %d", n, 2*keys)
	}
}

// fillOwnSchema writes some keys into stores of version 1, and gives the changelogs.
func fillOwnSchema(t testing.TB, o Options, keys int) map[string][]RestoreRecord {
	t.Helper()
	s, _ := openOwnSchema(t, o, 1, nil)
	logs := map[string][]RestoreRecord{}
	for n := 1; n <= keys; n++ {
		changes := writeSchema(t, s, fmt.Sprint("key-", n), int64(n))
		for name, log := range changes {
			logs[name] = append(logs[name], log...)
		}
	}
	offsets := map[string]Offset{}
	for name, log := range logs {
		offsets[name] = At(int64(len(log)))
	}
	must(t, s.Complete(Progress{ID: CommitID{1, int64(keys)}}, offsets))
	must(t, s.Close())
	return logs
}

func TestMigrateOwnStores(t *testing.T) {
	const keys = 9
	o := memOptions(vfs.NewMem())
	o.migrateBatchBytes = 40
	logs := fillOwnSchema(t, o, keys)
	s, restored := openOwnSchema(t, o, 2, logs)
	if restored != 0 {
		t.Errorf("%d stores were restored, though nothing has failed", restored)
	}
	wantOwnValues(t, s, "v 1>2", keys)
	states, err := s.Stores()
	must(t, err)
	for _, st := range states {
		if st.Recorded.SchemaVersion != 2 || !st.Complete {
			t.Errorf("%+v", st)
		}
	}
	must(t, s.Close())
	s, restored = openOwnSchema(t, o, 2, logs)
	if restored != 0 {
		t.Errorf("%d stores were restored after the migration", restored)
	}
	wantOwnValues(t, s, "v 1>2", keys)
	must(t, s.Close())
}

// TestPowerLossDuringOwnMigration loses the power before every write: afterwards all values have
// the new version, migrated once, be it that a store is restored.
func TestPowerLossDuringOwnMigration(t *testing.T) {
	const keys = 4
	rng := testseed.New(t)
	fs := newCrashFS()
	o := memOptions(nil)
	o.FS, o.migrateBatchBytes = fs, 40
	logs := fillOwnSchema(t, o, keys)
	var losing atomic.Bool
	var left []*crashFS
	var one sync.Mutex // the database writes on several goroutines
	o.FS = errorfs.Wrap(fs, onWrite(func(int64) error {
		one.Lock()
		defer one.Unlock()
		if losing.Load() {
			left = append(left, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng}))
		}
		return nil
	}))
	s, err := Open("t", o)
	must(t, err)
	specs := ownSchemaSpecs(t, o.FS, 2, true)
	losing.Store(true)
	must(t, s.Register(specs...))
	must(t, s.Sync())
	losing.Store(false)
	must(t, s.Close())
	emptied := 0
	for i, clone := range left {
		again := memOptions(clone)
		s, restored := openOwnSchema(t, again, 2, logs)
		emptied += restored
		wantOwnValues(t, s, "v 1>2", keys)
		must(t, s.Close())
		if t.Failed() {
			t.Fatalf("crash %d of %d", i, len(left))
		}
	}
	if len(left) < 20 || emptied == 0 {
		t.Errorf("%d crashes, %d stores emptied by them", len(left), emptied)
	}
	t.Logf("%d crashes, %d stores emptied by them", len(left), emptied)
}

// TestOwnMigrationThatFails: a value that cannot be migrated ends Register, an older program does not open what was
// begun, and the next Register that can empties the store.
func TestOwnMigrationThatFails(t *testing.T) {
	const keys = 9
	o := memOptions(vfs.NewMem())
	o.migrateBatchBytes = 40
	logs := fillOwnSchema(t, o, keys)
	s, err := Open("t", o)
	must(t, err)
	specs := ownSchemaSpecs(t, o.FS, 2, true)
	bad := errors.New("bad value")
	n := 0
	specs[1].Migrate.Value = func(_ uint32, _, value []byte) ([]byte, error) {
		if n++; n > 5 {
			return nil, bad
		}
		return slices.Concat(value, []byte("!")), nil
	}
	if err := s.Register(specs...); !errors.Is(err, bad) || !strings.Contains(err.Error(), `"stamped"`) {
		t.Errorf("%v; want the store and the cause", err)
	}
	must(t, s.Close())

	s, err = Open("t", o)
	must(t, err)
	if err := s.Register(ownSchemaSpecs(t, o.FS, 1, false)...); !errors.Is(err, ErrNewerSchema) {
		t.Errorf("with the older program: %v; want ErrNewerSchema", err)
	}
	must(t, s.Close())

	s, restored := openOwnSchema(t, o, 2, logs)
	if restored != 1 {
		t.Errorf("%d stores were restored; want the one that has values of both versions", restored)
	}
	wantOwnValues(t, s, "v 1>2", keys)
	must(t, s.Close())
}

// TestOwnMigrationWithoutChangelog is refused: nothing could make a torn one good.
func TestOwnMigrationWithoutChangelog(t *testing.T) {
	o := memOptions(vfs.NewMem())
	open := func(version uint32, migrates bool) (*TaskStore, error) {
		s, err := Open("t", o)
		must(t, err)
		f, err := openFileStore(o.FS, "own/x", true)
		must(t, err)
		spec := Spec{Name: "x", Kind: KindKeyValue, Store: f, SchemaVersion: version,
			Migrate: &Migration{Value: func(_ uint32, _, value []byte) ([]byte, error) { return value, nil }}}
		if !migrates {
			spec.Migrate = nil
		}
		return s, s.Register(spec)
	}
	s, err := open(1, true)
	must(t, err)
	must(t, handle(t, s, "x").Put([]byte("k"), []byte("v"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
	must(t, s.Close())
	s, err = open(2, true)
	if !errors.Is(err, ErrNoMigration) || !strings.Contains(err.Error(), `store "x"`) || !strings.Contains(err.Error(), "changelog") {
		t.Errorf("%v; want ErrNoMigration with the store and what to do", err)
	}
	must(t, s.Close())
	s, err = open(1, true)
	must(t, err)
	wantValue(t, handle(t, s, "x"), "k", "v")
	must(t, s.Close())
	// Without the task's directory nothing tells the version. Who knows it can say so.
	must(t, o.FS.RemoveAll("t"))
	s, err = open(1, true)
	if !errors.Is(err, ErrNoMigration) || !strings.Contains(err.Error(), `store "x"`) || !strings.Contains(err.Error(), "start once without Spec.Migrate") {
		t.Errorf("%v; want ErrNoMigration with the store and what to do", err)
	}
	must(t, s.Close())
	for _, migrates := range []bool{false, true} {
		s, err = open(1, migrates)
		must(t, err)
		wantValue(t, handle(t, s, "x"), "k", "v")
		must(t, s.Close())
	}
}
