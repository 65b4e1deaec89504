package statestore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
)

// writeSome makes a task store with two stores, at commit (3, 7).
func writeSome(t testing.TB, dir string, o Options) *TaskStore {
	t.Helper()
	s := openStore(t, dir, o, countsSpec, latestSpec)
	counts, latest := handle(t, s, "counts"), handle(t, s, "latest")
	for i := range 100 {
		must(t, counts.Put(fmt.Appendf(nil, "key-%02d", i), []byte{byte(i)}, 1))
	}
	must(t, latest.Put([]byte("a"), []byte("old"), 1))
	commit(t, s, Progress{ID: CommitID{3, 6}}, nil)
	must(t, latest.Put([]byte("a"), []byte("new"), 42))
	commit(t, s, Progress{ID: CommitID{3, 7}, StreamTime: 42, Positions: []Position{{"in", 1, 9}}},
		map[string]Offset{"counts": At(11), "latest": At(5)})
	return s
}

func readOnly(t testing.TB, dir string, o ReadOptions) *View {
	t.Helper()
	if o.Logger == nil {
		o.Logger = quiet()
	}
	v, err := OpenReadOnly(dir, o)
	must(t, err)
	t.Cleanup(func() { must(t, v.Close()) })
	return v
}

// content gives every file of a directory with its bytes and, but for the lock's, its time.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		files[path] = string(b)
		if d.Name() != "LOCK" {
			files[path] += info.ModTime().String()
		}
		return err
	}))
	return files
}

func rows(t *testing.T, v *View, store string, from, to []byte) (all []Row) {
	t.Helper()
	for r, err := range v.Rows(store, from, to) {
		must(t, err)
		all = append(all, Row{bytes.Clone(r.Key), bytes.Clone(r.Value)})
	}
	return all
}

func wantSome(t *testing.T, v *View) {
	t.Helper()
	m := v.Metadata()
	if m.FormatVersion != formatVersion || m.ID == [16]byte{} || time.Since(m.Created) > time.Hour || time.Since(m.Committed) > time.Hour {
		t.Errorf("metadata: %+v", m)
	}
	m.ID, m.Created, m.Committed, m.FormatVersion = [16]byte{}, time.Time{}, time.Time{}, 0
	want := Metadata{CommitID: CommitID{3, 7}, StreamTime: 42, Positions: []Position{{"in", 1, 9}}, Stores: []StoreMetadata{
		{Spec: countsSpec, Offset: At(11), Complete: true}, {Spec: latestSpec, Offset: At(5), Complete: true}}}
	if d := cmp.Diff(want, m, cmp.AllowUnexported(Offset{}, Spec{})); d != "" {
		t.Errorf("metadata (-want +got):\n%s", d)
	}
	if got := rows(t, v, "counts", nil, nil); len(got) != 100 || string(got[99].Key) != "key-99" || got[99].Value[0] != 99 {
		t.Errorf("counts: %d rows", len(got))
	}
	want2 := []Row{{[]byte("a"), []byte("\x00\x00\x00\x00\x00\x00\x00\x2anew")}}
	if d := cmp.Diff(want2, rows(t, v, "latest", nil, nil)); d != "" {
		t.Errorf("latest (-want +got):\n%s", d)
	}
}

func TestReadOnlyAfterClose(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0_0")
	must(t, writeSome(t, dir, Options{Logger: quiet()}).Close())
	before := content(t, dir)
	v := readOnly(t, dir, ReadOptions{BeforeReplay: func(n int64) error {
		if n > 100 {
			t.Errorf("log of %d bytes after a clean close", n)
		}
		return nil
	}})
	wantSome(t, v)
	if v.OpenStats().ReplayedKeys != 0 {
		t.Errorf("%+v; want nothing to replay after a clean close", v.OpenStats())
	}
	if got := rows(t, v, "counts", []byte("key-10"), []byte("key-12")); len(got) != 2 || string(got[0].Key) != "key-10" {
		t.Errorf("range: %v", got)
	}
	for _, bounds := range [][2]string{{"b", "a"}, {"b", "b"}, {"key-0x", "key-0y"}} {
		if got := rows(t, v, "counts", []byte(bounds[0]), []byte(bounds[1])); got != nil {
			t.Errorf("range %v: %v", bounds, got)
		}
	}
	for _, err := range v.Rows("counts", nil, nil) {
		must(t, err)
		break
	}
	for _, err := range v.Rows("other", nil, nil) {
		if err == nil || !strings.Contains(err.Error(), `there is no store "other"`) {
			t.Errorf("unknown store: %v", err)
		}
	}
	must(t, v.Close())
	for _, err := range v.Rows("counts", nil, nil) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	}
	if d := cmp.Diff(before, content(t, dir)); d != "" {
		t.Errorf("files changed:\n%s", d)
	}
}

// After a crash the log is replayed into memory, and not one byte is written or synced.
func TestReadOnlyAfterCrash(t *testing.T) {
	mem := newCrashFS()
	s := writeSome(t, "t", memOptions(mem))
	must(t, s.Sync())
	var writes atomic.Int64
	fs := errorfs.Wrap(mem.CrashClone(vfs.CrashCloneCfg{}), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && !strings.HasSuffix(op.Path, "LOCK") {
			writes.Add(1)
			t.Errorf("operation %v on %s", op.Kind, op.Path)
		}
		return nil
	}))
	full := errors.New("too much")
	_, err := OpenReadOnly("t", ReadOptions{FS: fs, Logger: quiet(), BeforeReplay: func(int64) error { return full }})
	if !errors.Is(err, full) || errors.Is(err, ErrCorrupt) {
		t.Errorf("refused before the replay: %v", err)
	}
	announced := int64(0)
	v := readOnly(t, "t", ReadOptions{FS: fs, BeforeReplay: func(n int64) error { announced += n; return nil }})
	wantSome(t, v)
	if r := v.OpenStats().ReplayedBytes; announced < r || announced > 2*r {
		t.Errorf("%d bytes were announced, %d replayed", announced, r)
	}
	if o := v.OpenStats(); o.ReplayedBatches < 3 || o.ReplayedKeys < 100 || o.ReplayedBytes < 1000 || o.ReplayTime <= 0 || o.Time < o.ReplayTime {
		t.Errorf("%+v; want what was replayed", o)
	}
}

func TestReadOnlyLocks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0_0")
	s := writeSome(t, dir, Options{Logger: quiet()})
	if _, err := OpenReadOnly(dir, ReadOptions{Logger: quiet()}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("beside a running task store: %v; want ErrLocked and the directory", err)
	}
	must(t, s.Close())
	v := readOnly(t, dir, ReadOptions{})
	if _, err := Open(dir, Options{Logger: quiet()}); !errors.Is(err, ErrLocked) {
		t.Errorf("open beside a view: %v; want ErrLocked", err)
	}
	must(t, v.Close())
	must(t, openStore(t, dir, Options{Logger: quiet()}).Close())

	must(t, os.Remove(filepath.Join(dir, "LOCK")))
	wantSome(t, readOnly(t, dir, ReadOptions{}))
	if _, err := os.Stat(filepath.Join(dir, "LOCK")); err == nil {
		t.Error("a lock file was made")
	}
}

// A path that is written differently is the same directory: a second lock would end the first.
func TestLockKnowsRelativePaths(t *testing.T) {
	t.Chdir(t.TempDir())
	s := writeSome(t, "state/0_0", Options{Logger: quiet()})
	wd, err := os.Getwd()
	must(t, err)
	for _, dir := range []string{"./state/0_0", "state/../state/0_0", filepath.Join(wd, "state", "0_0")} {
		if _, err := OpenReadOnly(dir, ReadOptions{Logger: quiet()}); !errors.Is(err, ErrLocked) {
			t.Errorf("%s: %v; want ErrLocked", dir, err)
		}
		if _, err := Open(dir, Options{Logger: quiet()}); !errors.Is(err, ErrLocked) {
			t.Errorf("%s: %v; want ErrLocked", dir, err)
		}
	}
	must(t, s.Close())
}

func TestReadOnlyRefuses(t *testing.T) {
	base := t.TempDir()
	good := func(name string) string {
		dir := filepath.Join(base, name)
		must(t, writeSome(t, dir, Options{Logger: quiet()}).Close())
		return dir
	}
	tests := []struct {
		name string
		make func() string
		want error
		text string
	}{
		{"nothing", func() string { return filepath.Join(base, "none") }, ErrNoStore, "no such file"},
		{"file", func() string {
			name := filepath.Join(base, "file")
			must(t, os.WriteFile(name, nil, 0o600))
			return name
		}, syscall.ENOTDIR, "not a directory"},
		{"empty", func() string { return t.TempDir() }, ErrNoStore, "no database"},
		{"only legacy files", func() string {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, ".checkpoint"), []byte("0\n0\n"), 0o600))
			must(t, os.MkdirAll(filepath.Join(dir, "rocksdb", "counts"), 0o700))
			return dir
		}, ErrNoStore, "no database"},
		{"unfinished", func() string {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, creatingName), nil, 0o600))
			must(t, os.WriteFile(filepath.Join(dir, "000002.log"), nil, 0o600))
			return dir
		}, ErrNoStore, "not finished"},
		{"manifest gone", func() string {
			dir := good("manifest")
			names, _ := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
			must(t, os.Remove(names[0]))
			return dir
		}, ErrCorrupt, ""},
		{"markers gone", func() string {
			dir := good("markers")
			names, _ := filepath.Glob(filepath.Join(dir, "marker.*"))
			for _, n := range names {
				must(t, os.Remove(n))
			}
			return dir
		}, ErrCorrupt, ""},
		{"table gone", func() string {
			dir := good("table")
			names, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
			must(t, os.Remove(names[0]))
			return dir
		}, ErrCorrupt, ""},
		{"newer format", func() string {
			dir := good("newer")
			setRaw(t, dir, keyFormat, []byte{0x08, formatVersion + 1})
			return dir
		}, ErrNewerFormat, "up to"},
		{"no format record", func() string {
			dir := good("formatless")
			setRaw(t, dir, keyFormat, nil)
			return dir
		}, ErrCorrupt, "no format record"},
		{"newer commit record", func() string {
			dir := good("newer-commit")
			setRaw(t, dir, keyCommit, []byte{0x08, commitVersion + 1})
			return dir
		}, ErrNewerFormat, "commit record"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := test.make()
			_, err := OpenReadOnly(dir, ReadOptions{Logger: quiet()})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%v; want %v, %q and %s", err, test.want, test.text, dir)
			}
		})
	}
}

// setRaw changes a key of the database behind the task store's back; value nil deletes it.
func setRaw(t testing.TB, dir string, key, value []byte) {
	t.Helper()
	db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, ErrorIfNotExists: true, Logger: nopLogger{}})
	must(t, err)
	if value == nil {
		must(t, db.Delete(key, pebble.Sync))
	} else {
		must(t, db.Set(key, value, pebble.Sync))
	}
	must(t, db.Flush())
	must(t, db.Close())
}

type nopLogger struct{}

func (nopLogger) Infof(string, ...any)       {}
func (nopLogger) Errorf(string, ...any)      {}
func (nopLogger) Fatalf(f string, as ...any) { panic(fmt.Sprintf(f, as...)) }

// Many at once, as the scan at the start does it, with shared resources.
func TestReadOnlyInParallel(t *testing.T) {
	base := t.TempDir()
	for i := range 20 {
		must(t, writeSome(t, filepath.Join(base, fmt.Sprint(i)), Options{Logger: quiet()}).Close())
	}
	r, err := NewResources(ResourceOptions{BlockCacheBytes: 1 << 20, OpenFiles: 10})
	must(t, err)
	done := make(chan error)
	for i := range 20 {
		go func() {
			v, err := OpenReadOnly(filepath.Join(base, fmt.Sprint(i)), ReadOptions{Resources: r, Logger: quiet()})
			if err == nil && v.Metadata().CommitID != (CommitID{3, 7}) {
				err = errors.New("wrong commit id")
			}
			if err == nil {
				err = v.Close()
			}
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	must(t, r.Close())
}

func TestReadOnlyReportsDamageInTheData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0_0")
	s := openStore(t, dir, Options{Logger: quiet()}, countsSpec)
	kv := handle(t, s, "counts")
	for i := range 5000 {
		must(t, kv.Put(fmt.Appendf(nil, "key-%05d", i), fmt.Appendf(nil, "%064x", i*i*7919), 1))
	}
	commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
	must(t, s.Close())
	damage(t, filepath.Join(dir, "*.sst"))
	v, err := OpenReadOnly(dir, ReadOptions{Logger: quiet()})
	if err == nil {
		for _, e := range v.Rows("counts", nil, nil) {
			err = e
		}
		must(t, v.Close())
	}
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v; want ErrCorrupt and the directory", err)
	}
}

func BenchmarkOpenReadOnly(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "0_0")
	s := openStore(b, dir, Options{Logger: quiet()}, countsSpec)
	kv := handle(b, s, "counts")
	for i := range 100_000 {
		must(b, kv.Put(fmt.Appendf(nil, "key-%08d", i), bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 32), 1))
	}
	commit(b, s, Progress{ID: CommitID{1, 1}}, nil)
	must(b, s.Close())
	r, err := NewResources(ResourceOptions{BlockCacheBytes: 1 << 20, OpenFiles: 10})
	must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		v, err := OpenReadOnly(dir, ReadOptions{Resources: r, Logger: quiet()})
		must(b, err)
		must(b, v.Close())
	}
	must(b, r.Close())
}
