package offsetcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/statestore"
)

// damage is one way in which a task directory can be unusable. It never writes into a file: the
// directories share theirs.
type damage struct {
	name string
	// killed: of a directory that was not closed, with a write-ahead log.
	killed bool
	do     func(dir string) error
	want   error // nil = any
}

func damages(t testing.TB) []damage {
	all := []damage{
		{name: "no manifest", do: func(dir string) error { return eachFile(dir, "MANIFEST-*", os.Remove) }, want: statestore.ErrCorrupt},
		{name: "zeroed manifest", do: replacing("MANIFEST-*", func(b []byte) []byte { return make([]byte, len(b)) }), want: statestore.ErrCorrupt},
		{name: "empty manifest", do: replacing("MANIFEST-*", func([]byte) []byte { return nil }), want: statestore.ErrCorrupt},
		{name: "no markers", do: func(dir string) error { return eachFile(dir, "marker.*", os.Remove) }, want: statestore.ErrCorrupt},
		{name: "no files but the tables", do: func(dir string) error {
			return errors.Join(eachFile(dir, "MANIFEST-*", os.Remove), eachFile(dir, "marker.*", os.Remove), eachFile(dir, "OPTIONS-*", os.Remove))
		}, want: statestore.ErrCorrupt},
		{name: "no tables", do: func(dir string) error { return eachFile(dir, "*.sst", os.Remove) }, want: statestore.ErrCorrupt},
		{name: "zeroed tables", do: replacing("*.sst", func(b []byte) []byte { return make([]byte, len(b)) }), want: statestore.ErrCorrupt},
		{name: "tables cut short", do: replacing("*.sst", func(b []byte) []byte { return b[:100] }), want: statestore.ErrCorrupt},
		{name: "tables of random bytes", do: replacing("*.sst", func(b []byte) []byte { return noise(len(b)) }), want: statestore.ErrCorrupt},
		{name: "a directory in place of a table", do: func(dir string) error {
			return eachFile(dir, "*.sst", func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) })
		}},
		{name: "a log torn before what was synced after it", killed: true, do: replacing("*.log", func(b []byte) []byte {
			copy(b[min(len(b), 5000):], noise(1))
			return b
		}), want: statestore.ErrCorrupt},
		{name: "marked as damaged", do: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tidemark.corrupt"), []byte("block 7 is bad"), 0o600)
		}, want: statestore.ErrCorrupt},
		{name: "a newer format", do: func(dir string) error {
			return errors.Join(eachFile(dir, "marker.format-version.*", os.Remove),
				os.WriteFile(filepath.Join(dir, "marker.format-version.000099.999"), nil, 0o600))
		}, want: statestore.ErrNewerFormat},
		{name: "a file in its place", do: func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, []byte("x"), 0o600))
		}},
		{name: "a link to itself in its place", do: func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Symlink(dir, dir)) }},
		{name: "a link to nothing in its place", do: func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Symlink("nothing", dir)) }},
		{name: "a directory in place of the manifest", do: func(dir string) error {
			return eachFile(dir, "MANIFEST-*", func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) })
		}},
	}
	if os.Geteuid() == 0 { // who may read everything; TestScanWithoutPermission is another user for that
		return all
	}
	return append(all,
		damage{name: "a directory that may not be read", do: func(dir string) error {
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) // or nobody could remove it
			return os.Chmod(dir, 0)
		}, want: fs.ErrPermission},
		damage{name: "a directory that may be listed, and nothing in it opened", do: func(dir string) error {
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
			return os.Chmod(dir, 0o400)
		}, want: fs.ErrPermission},
		damage{name: "a manifest that may not be read", do: func(dir string) error {
			return errors.Join(replacing("MANIFEST-*", func(b []byte) []byte { return b })(dir), eachFile(dir, "MANIFEST-*", func(f string) error { return os.Chmod(f, 0) }))
		}, want: fs.ErrPermission},
	)
}

func eachFile(dir, pattern string, do func(string) error) error {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no %s in %s", pattern, dir)
	}
	for _, f := range files {
		err = errors.Join(err, do(f))
	}
	return err
}

// replacing puts new files in place of those of a pattern.
func replacing(pattern string, change func([]byte) []byte) func(dir string) error {
	return func(dir string) error {
		return eachFile(dir, pattern, func(f string) error {
			b, err := os.ReadFile(f)
			return errors.Join(err, os.Remove(f), os.WriteFile(f, change(b), 0o600))
		})
	}
}

// makeKilled makes a task store as a kill leaves it: at 40, all of it in the log.
func makeKilled(t testing.TB, dir string) {
	t.Helper()
	open := filepath.Join(t.TempDir(), "open")
	s, err := statestore.Open(open, statestore.Options{CacheBytes: -1})
	must(t, err)
	must(t, s.Register(statestore.Spec{Name: "a", Kind: statestore.KindKeyValue, Changelog: "app-a-changelog"}))
	for i := range 40 {
		must(t, s.Restore("a", []statestore.RestoreRecord{{Key: fmt.Appendf(nil, "%d", i), Value: noise(i)}}, int64(i+1)))
		if i%10 == 9 {
			must(t, s.Sync())
		}
	}
	must(t, os.CopyFS(dir, os.DirFS(open)))
	must(t, s.Close())
}

// linked makes a directory with the files of another, which both then share; the lock is its own.
func linked(t testing.TB, from, to string) {
	t.Helper()
	must(t, os.Mkdir(to, 0o700))
	entries, err := os.ReadDir(from)
	must(t, err)
	for _, e := range entries {
		if e.Name() == "LOCK" {
			must(t, os.WriteFile(filepath.Join(to, "LOCK"), nil, 0o600))
			continue
		}
		must(t, os.Link(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
	}
}

// 200 damaged directories among 1,000: all of them are named, all others are read, and it takes
// as long as with 1,000 good ones.
func TestScanDamaged(t *testing.T) {
	const every = 5
	n := 1000
	if testing.Short() {
		n = 200
	}
	base := t.TempDir()
	clean, killed := filepath.Join(base, "clean"), filepath.Join(base, "killed")
	makeStore(t, clean, 42, 4000)
	makeKilled(t, killed)
	kinds := damages(t)
	var good, mixed []Directory
	for i := range n {
		g := Directory{Task: fmt.Sprintf("0_%d", i), Path: filepath.Join(base, fmt.Sprintf("0_%d", i))}
		d := Directory{Task: fmt.Sprintf("1_%d", i), Path: filepath.Join(base, fmt.Sprintf("1_%d", i))}
		from := clean
		kind := kinds[i/every%len(kinds)]
		if i%every == 0 && kind.killed {
			from = killed
		}
		linked(t, clean, g.Path)
		linked(t, from, d.Path)
		if i%every == 0 {
			must(t, kind.do(d.Path))
		}
		good, mixed = append(good, g), append(mixed, d)
	}
	timeOf := func(dirs []Directory) (*Cache, *Scan, time.Duration) {
		c := New()
		scan, err := c.Scan(t.Context(), dirs, ScanOptions{Logger: quiet})
		must(t, err)
		return c, scan, scan.Elapsed
	}
	_, _, first := timeOf(good)
	c, scan, with := timeOf(mixed)
	_, _, second := timeOf(good)
	t.Logf("%d good directories: %v and %v, with %d damaged ones: %v", n, first, second, n/every, with)
	if without := max(first, second); with > 4*without {
		t.Errorf("with damaged directories the scan took %v, without %v", with, without)
	}
	if scan.Opened != n-n/every || len(scan.Failed) != n/every || scan.Empty != 0 {
		t.Fatalf("%d opened, %d empty, %d failed", scan.Opened, scan.Empty, len(scan.Failed))
	}
	for i, f := range scan.Failed {
		kind := kinds[i%len(kinds)]
		if f.Directory != mixed[every*i] || !strings.Contains(f.Err.Error(), f.Path) || kind.want != nil && !errors.Is(f.Err, kind.want) {
			t.Errorf("%s: %+v", kind.name, f)
		}
		if _, ok := c.Lookup(f.Task); ok {
			t.Errorf("%s: there is an offset", kind.name)
		}
	}
	for i, d := range mixed {
		if got := say(c.Lookup(d.Task)); i%every != 0 && got != " a at 42 b absent" {
			t.Errorf("%s: %s", d.Task, got)
		}
	}
}

// A log that a crash has torn at its end is no damage: the store stands where its last whole
// write left it. What was synced is never lost like this.
func TestScanTornLog(t *testing.T) {
	base := t.TempDir()
	killed := filepath.Join(base, "killed")
	makeKilled(t, killed)
	logs, err := filepath.Glob(filepath.Join(killed, "*.log"))
	must(t, err)
	log := slices.Max(logs)
	whole, err := os.ReadFile(log)
	must(t, err)
	last := int64(41)
	for cut := len(whole); cut >= 0; cut -= 3000 {
		must(t, os.WriteFile(log, whole[:cut], 0o600))
		c := New()
		scan, err := c.Scan(t.Context(), []Directory{{"0_0", killed}}, ScanOptions{Logger: quiet})
		must(t, err)
		if len(scan.Failed) > 0 {
			t.Fatalf("cut at %d: %v", cut, scan.Failed)
		}
		task, _ := c.Lookup("0_0")
		at := int64(0)
		if len(task.Offsets) > 0 {
			at, _ = task.Offsets[0].Offset.Next()
		}
		if at > last || cut == len(whole) && at != 40 || cut > 0 && cut < len(whole) && at > int64(cut/1000) {
			t.Errorf("cut at %d of %d: at %d, after %d with more", cut, len(whole), at, last)
		}
		last = at
	}
	if last != 0 {
		t.Errorf("without a log: at %d", last)
	}
}
