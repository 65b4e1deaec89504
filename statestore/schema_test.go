package statestore

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// schemaSpecs gives stores of every kind with a schema version, and a migration that writes in
// each value from where to where it went: "v" becomes "v 1>2".
func schemaSpecs(version uint32, migrates bool) []Spec {
	specs := []Spec{
		{Name: "plain", Kind: KindKeyValue, Changelog: "c-plain", ValueSerde: fmt.Sprint("v", version)},
		{Name: "stamped", Kind: KindTimestampedKeyValue, Changelog: "c-stamped"},
		{Name: "window", Kind: KindWindow, Changelog: "c-window", Retention: time.Hour, WindowSize: time.Minute},
		{Name: "stamped-window", Kind: KindTimestampedWindow, Changelog: "c-stamped-window", Retention: time.Hour, WindowSize: time.Minute},
		{Name: "session", Kind: KindSession, Changelog: "c-session", Retention: time.Hour},
		{Name: "versions", Kind: KindVersioned, Changelog: "c-versions", Retention: time.Hour},
	}
	for i := range specs {
		specs[i].SchemaVersion = version
		if migrates {
			specs[i].Migrate = &Migration{Value: func(from uint32, key, value []byte) ([]byte, error) {
				if !bytes.HasPrefix(key, []byte("key")) {
					return nil, fmt.Errorf("key %q is not the user's", key)
				}
				return fmt.Appendf(bytes.Clone(value), " %d>%d", from, version), nil
			}}
		}
	}
	return specs
}

// writeSchema writes one value into each store, and gives the changes as changelog records.
func writeSchema(t testing.TB, s *TaskStore, key string, n int64) map[string][]RestoreRecord {
	t.Helper()
	k, v := []byte(key), []byte("v")
	must(t, handle(t, s, "plain").Put(k, v, n))
	must(t, handle(t, s, "stamped").Put(k, v, n))
	for _, name := range []string{"window", "stamped-window"} {
		w, err := s.Window(name)
		must(t, err)
		must(t, w.Put(k, v, 1000, n))
	}
	x, err := s.Session("session")
	must(t, err)
	must(t, x.Put(k, v, 1000, 2000, n))
	versions, err := s.Versioned("versions")
	must(t, err)
	for _, at := range []int64{1000, 2000} {
		_, err = versions.Put(k, v, at)
		must(t, err)
	}
	sealed, err := s.Seal(Progress{ID: CommitID{1, n}})
	must(t, err)
	changes := map[string][]RestoreRecord{}
	for c := range sealed.Changes() {
		changes[c.Store] = append(changes[c.Store], RestoreRecord{Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value), Timestamp: c.Timestamp, Schema: c.Schema})
	}
	must(t, s.Commit(sealed, map[string]Offset{"plain": At(n)}))
	s.Release(sealed)
	return changes
}

// schemaValues gives all values by store, in order.
func schemaValues(t testing.TB, fs vfs.FS) map[string][]string {
	t.Helper()
	v := readOnly(t, "t", ReadOptions{FS: fs})
	defer func() { must(t, v.Close()) }()
	values := map[string][]string{}
	for _, s := range v.Metadata().Stores {
		for e, err := range v.Entries(s.Spec.Name, nil, nil) {
			must(t, err)
			values[s.Spec.Name] = append(values[s.Spec.Name], string(e.Value))
		}
	}
	return values
}

func wantSchema(t testing.TB, fs vfs.FS, version uint32, want string, keys int) {
	t.Helper()
	for name, values := range schemaValues(t, fs) {
		n := keys
		if name == "versions" {
			n *= 2
		}
		if len(values) != n || slices.ContainsFunc(values, func(v string) bool { return v != want }) {
			t.Errorf("%s: %d values %q; want %d times %q", name, len(values), values, n, want)
		}
	}
	v := readOnly(t, "t", ReadOptions{FS: fs})
	defer func() { must(t, v.Close()) }()
	found, err := v.Verify(t.Context())
	must(t, err)
	if len(found.Problems) > 0 {
		t.Errorf("problems: %q", found.Problems)
	}
	for _, s := range v.Metadata().Stores {
		if s.Spec.SchemaVersion != version {
			t.Errorf("%s has schema version %d; want %d", s.Spec.Name, s.Spec.SchemaVersion, version)
		}
	}
}

func TestMigrateValues(t *testing.T) {
	fs := vfs.NewMem()
	open := func(version uint32, migrates bool) (*TaskStore, error) {
		s, err := Open("t", memOptions(fs))
		must(t, err)
		if err := s.Register(schemaSpecs(version, migrates)...); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	}
	s, err := open(1, false)
	must(t, err)
	log1 := writeSchema(t, s, "key-a", 1)
	must(t, s.Close())

	if _, err := open(2, false); !errors.Is(err, ErrNoMigration) || !strings.Contains(err.Error(), `store "window" has version 1 in the database and 2 in the program`) {
		t.Errorf("without a migration: %v", err)
	}
	wantSchema(t, fs, 1, "v", 1)
	s, err = open(2, true)
	must(t, err)
	if s.CommitID() != (CommitID{1, 1}) || s.CommittedOffsets()["plain"] != At(1) {
		t.Errorf("commit %v, offsets %v after the migration", s.CommitID(), s.CommittedOffsets())
	}
	wantValue(t, handle(t, s, "stamped"), "key-a", "v 1>2")
	log2 := writeSchema(t, s, "key-b", 2)
	must(t, s.Close())
	for _, version := range []uint32{1, 0} {
		if _, err := open(version, version > 0); !errors.Is(err, ErrNewerSchema) || !strings.Contains(err.Error(), "run the newer program") {
			t.Errorf("opened with version %d: %v", version, err)
		}
	}
	values := schemaValues(t, fs)
	for name, want := range map[string][]string{"plain": {"v 1>2", "v"}, "session": {"v 1>2", "v"}, "versions": {"v 1>2", "v", "v 1>2", "v"}} {
		if !slices.Equal(values[name], want) {
			t.Errorf("%s: %q; want %q", name, values[name], want)
		}
	}

	// Somewhere else, from the changelog alone, which holds records of both versions.
	fs2 := vfs.NewMem()
	restored := openStore(t, "t", memOptions(fs2), schemaSpecs(2, true)...)
	for _, log := range []map[string][]RestoreRecord{log1, log2} {
		for name, records := range log {
			at, _ := restored.CommittedOffsets()[name].Next()
			before := slices.Clone(records)
			must(t, restored.Restore(name, records, at+int64(len(records))))
			if !slices.EqualFunc(before, records, func(a, b RestoreRecord) bool { return string(a.Value) == string(b.Value) }) {
				t.Error("Restore changed the caller's records")
			}
		}
	}
	must(t, restored.Complete(Progress{ID: CommitID{1, 2}}, nil))
	must(t, restored.Close())
	if got := schemaValues(t, fs2); !equalValues(got, values) {
		t.Errorf("restored: %q; want %q", got, values)
	}

	old := openStore(t, "t", memOptions(vfs.NewMem()), schemaSpecs(1, false)...)
	if err := old.Restore("plain", log2["plain"], 1); !errors.Is(err, ErrNewerSchema) {
		t.Errorf("an old program restored newer records: %v", err)
	}
	bare := openStore(t, "t", memOptions(vfs.NewMem()), schemaSpecs(2, false)...)
	if err := bare.Restore("plain", log1["plain"], 1); !errors.Is(err, ErrNoMigration) {
		t.Errorf("restored older records without a migration: %v", err)
	}
}

func equalValues(a, b map[string][]string) bool {
	for name := range b {
		if !slices.Equal(a[name], b[name]) {
			return false
		}
	}
	return len(a) == len(b)
}

// A program that begins to count takes what is there as version 1.
func TestFirstSchemaVersion(t *testing.T) {
	fs := vfs.NewMem()
	specs := schemaSpecs(0, false)
	specs[0].ValueSerde = ""
	s := openStore(t, "t", memOptions(fs), specs...)
	log := writeSchema(t, s, "key-a", 1)
	must(t, s.Close())
	s = openStore(t, "t", memOptions(fs), schemaSpecs(1, false)...)
	must(t, s.Close())
	wantSchema(t, fs, 1, "v", 1)
	fs = vfs.NewMem()
	s = openStore(t, "t", memOptions(fs), schemaSpecs(1, false)...)
	must(t, s.Restore("plain", log["plain"], 1))
	wantValue(t, handle(t, s, "plain"), "key-a", "v")
}

func TestMigrationThatFails(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), schemaSpecs(1, false)...)
	writeSchema(t, s, "key-a", 1)
	must(t, s.Close())
	for name, value := range map[string]func(uint32, []byte, []byte) ([]byte, error){
		"error": func(uint32, []byte, []byte) ([]byte, error) { return nil, errors.New("cannot read it") },
		"nil":   func(uint32, []byte, []byte) ([]byte, error) { return nil, nil },
	} {
		specs := schemaSpecs(2, true)
		specs[0].Migrate = &Migration{Value: value}
		s, err := Open("t", memOptions(fs))
		must(t, err)
		err = s.Register(specs...)
		if err == nil || errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), `migrate store "plain": value of key 6b65792d61 from schema version 1 to 2`) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, s.Close())
	}
	wantSchema(t, fs, 1, "v", 1) // nothing was changed
	bad := schemaSpecs(0, false)
	bad[0].Migrate = &Migration{Value: func(uint32, []byte, []byte) ([]byte, error) { return nil, nil }}
	none := schemaSpecs(1, false)
	none[0].Migrate = &Migration{}
	for _, specs := range [][]Spec{bad, none} {
		s := openStore(t, "t", memOptions(vfs.NewMem()))
		if err := s.Register(specs...); err == nil || !strings.Contains(err.Error(), "migration without") {
			t.Errorf("%v", err)
		}
	}
}

// Killed at any write of a migration, every value is changed exactly once in the end; also
// when the next program has a still newer version; and an older program does not get at
// values that were changed.
func TestPowerLossDuringMigration(t *testing.T) {
	const keys = 12
	const big = "xxx"
	spec := func(version uint32) Spec {
		p := Spec{Name: "plain", Kind: KindKeyValue, Changelog: "c", SchemaVersion: version}
		if version > 1 {
			p.Migrate = &Migration{Value: func(from uint32, _, value []byte) ([]byte, error) {
				text, _, _ := strings.Cut(string(value), "x")
				return fmt.Append(nil, text, from, ">", version, " ", big), nil
			}}
		}
		return p
	}
	fill := func(fs vfs.FS) {
		s := openStore(t, "t", memOptions(fs), spec(1))
		for i := range keys {
			must(t, handle(t, s, "plain").Put(fmt.Appendf(nil, "key-%02d", i), []byte(big), 1))
		}
		commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
		must(t, s.Close())
	}
	half := 0
	rng := testseed.New(t)
	for at := int64(1); ; at += every {
		mem := newCrashFS()
		fill(mem)
		var on atomic.Bool
		var n atomic.Int64
		var clone *crashFS
		options := func(fs vfs.FS) Options {
			o := memOptions(fs)
			o.migrateBatchBytes, o.SyncEveryCommit = 30, true // a few rows a batch, each a write
			return o
		}
		o := options(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if on.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && n.Add(1) == at {
				clone = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
			}
			return nil
		})))
		s, err := Open("t", o)
		must(t, err)
		on.Store(true)
		must(t, s.Register(spec(2)))
		on.Store(false)
		must(t, s.Close())
		if n.Load() < at {
			break
		}
		was := readOnly(t, "t", ReadOptions{FS: clone})
		migrating := was.Metadata().Stores[0].Migrating
		must(t, was.Close())
		version, wants := uint32(2), []string{"1>2 "}
		if migrating {
			half++
			old, err := Open("t", options(clone))
			must(t, err)
			if err := old.Register(spec(1)); !errors.Is(err, ErrNewerSchema) {
				t.Errorf("the old program opened a store that is half migrated: %v", err)
			}
			must(t, old.Close())
			if half%2 == 0 {
				version, wants = 3, []string{"1>2 2>3 ", "1>3 "}
			}
		}
		s = openStore(t, "t", memOptions(clone), spec(version))
		must(t, s.Close())
		for name, values := range schemaValues(t, clone) {
			if len(values) != keys {
				t.Errorf("write %d: %s has %d values", at, name, len(values))
			}
			for i, v := range values {
				if text, _, _ := strings.Cut(v, "x"); !slices.Contains(wants, text) {
					t.Fatalf("write %d: value %d is %q; want one of %q", at, i, text, wants)
				}
			}
		}
	}
	if half == 0 {
		t.Error("no power loss came in the middle of a migration")
	}
}

func TestSchemaParts(t *testing.T) {
	p := schemaParts{{nil, 1}}
	p = p.advance([]byte("m"), 2) // killed here
	p = p.advance([]byte("c"), 3).advance([]byte("f"), 3)
	for row, want := range map[string]uint32{"": 3, "e": 3, "f": 2, "lz": 2, "m": 1, "z": 1} {
		if got := p.at([]byte(row)); got != want {
			t.Errorf("row %q has version %d; want %d", row, got, want)
		}
	}
	b, err := encodeSchemaChange(p)
	must(t, err)
	again, err := decodeSchemaChange(b)
	must(t, err)
	if fmt.Sprint(again) != fmt.Sprint(p) || len(p) != 3 {
		t.Errorf("%v became %v", p, again)
	}
	p = p.advance([]byte("m"), 3)
	if len(p) != 2 || p.at([]byte("l")) != 3 || p.at([]byte("m")) != 1 {
		t.Errorf("%v", p)
	}
	if p = p.advance(nil, 3); len(p) != 1 || p.at(nil) != 3 {
		t.Errorf("%v", p)
	}
	for _, bad := range []schemaParts{{}, {{[]byte("a"), 1}}, {{nil, 1}, {nil, 2}}, {{[]byte("b"), 1}, {[]byte("a"), 1}, {nil, 1}}} {
		b, err := encodeSchemaChange(bad)
		must(t, err)
		if _, err := decodeSchemaChange(b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v: %v; want ErrCorrupt", bad, err)
		}
	}
}
