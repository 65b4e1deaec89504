package statestore

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
)

// A test that leaves goroutines behind by design, or that is to be killed, runs as a child
// process: this binary again, with the name of its part in the environment.
const childEnv = "TIDEMARK_STATESTORE_CHILD"

var children = map[string]func(){}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		children[name]()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func memOptions(fs vfs.FS) Options {
	return Options{FS: fs, Logger: quiet(), SyncInterval: time.Hour, MemTableBytes: 256 << 10}
}

// onEngines runs a test on each engine, with an empty store in "t".
func onEngines(t *testing.T, test func(*testing.T, Options)) {
	for name, e := range map[string]Engine{"pebble": Pebble, "memory": Memory} {
		o := memOptions(vfs.NewMem())
		o.Engine = e
		t.Run(name, func(t *testing.T) { test(t, o) })
	}
}

var countsSpec = Spec{Name: "counts", Kind: KindKeyValue, Changelog: "app-counts-changelog", KeySerde: "string", ValueSerde: "int64"}

var latestSpec = Spec{Name: "latest", Kind: KindTimestampedKeyValue, Changelog: "app-latest-changelog"}

var (
	memorySpec  = Spec{Name: "memory", Kind: KindKeyValue, Changelog: "app-memory-changelog", InMemory: true}
	ownSpec     = Spec{Name: "own", Kind: KindKeyValue, Changelog: "app-own-changelog"}         // with a Store that manages offsets
	wrappedSpec = Spec{Name: "wrapped", Kind: KindKeyValue, Changelog: "app-wrapped-changelog"} // with one that does not
)

// openStore opens and registers; the test closes it.
func openStore(t testing.TB, dir string, o Options, specs ...Spec) *TaskStore {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if len(specs) > 0 {
		if err := s.Register(specs...); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func handle(t testing.TB, s *TaskStore, name string) *KeyValue {
	t.Helper()
	kv, err := s.KeyValue(name)
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// commit seals, commits and releases.
func commit(t testing.TB, s *TaskStore, p Progress, offsets map[string]Offset) {
	t.Helper()
	x, err := s.Seal(p)
	must(t, err)
	must(t, s.Commit(x, offsets))
	s.Release(x)
}

func wantValue(t testing.TB, kv *KeyValue, key, want string) {
	t.Helper()
	v, _, ok, err := kv.Get([]byte(key))
	must(t, err)
	if !ok || string(v) != want {
		t.Fatalf("get %q = %q, %v; want %q", key, v, ok, want)
	}
}

func wantAbsent(t testing.TB, kv *KeyValue, key string) {
	t.Helper()
	v, _, ok, err := kv.Get([]byte(key))
	must(t, err)
	if ok {
		t.Fatalf("get %q = %q; want nothing", key, v)
	}
}

// collect reads a scan to its end, copying.
func collect(t testing.TB, scan func(func(Entry, error) bool)) []Entry {
	t.Helper()
	var es []Entry
	for e, err := range scan {
		must(t, err)
		es = append(es, Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value), Timestamp: e.Timestamp})
	}
	return es
}
