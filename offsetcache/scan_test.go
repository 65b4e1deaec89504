package offsetcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-streams/tidemark/internal/fdlimit"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

var quiet = slog.New(slog.DiscardHandler)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// makeStore makes a task store with two logged stores and one that is not, at next, with
// about bytes of data. It is left as a kill leaves it when clean is false.
func makeStore(t testing.TB, dir string, next int64, bytes int) {
	t.Helper()
	s, err := statestore.Open(dir, statestore.Options{CacheBytes: -1})
	must(t, err)
	must(t, s.Register(statestore.Spec{Name: "a", Kind: statestore.KindKeyValue, Changelog: "app-a-changelog"},
		statestore.Spec{Name: "b", Kind: statestore.KindKeyValue, Changelog: "app-b-changelog"}))
	var records []statestore.RestoreRecord
	for i := range max(1, bytes/1000) {
		records = append(records, statestore.RestoreRecord{Key: fmt.Appendf(nil, "%08d", i), Value: noise(i)})
	}
	must(t, s.Restore("a", records, next))
	must(t, s.Close())
}

// noise is a kilobyte that does not compress.
func noise(n int) []byte {
	b := make([]byte, 1000)
	x := uint64(n)*0x9e3779b97f4a7c15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

// copies makes n directories of one task store.
func copies(t testing.TB, original string, n int) []Directory {
	t.Helper()
	parent := t.TempDir()
	var dirs []Directory
	for i := range n {
		d := Directory{Task: fmt.Sprintf("0_%d", i), Path: filepath.Join(parent, fmt.Sprintf("0_%d", i))}
		must(t, os.CopyFS(d.Path, os.DirFS(original)))
		dirs = append(dirs, d)
	}
	return dirs
}

func TestScan(t *testing.T) {
	original := filepath.Join(t.TempDir(), "t")
	makeStore(t, original, 42, 1)
	dirs := copies(t, original, 20)
	before := names(t, dirs[3].Path)
	must(t, os.RemoveAll(dirs[5].Path)) // removed since it was listed
	must(t, os.RemoveAll(dirs[6].Path))
	must(t, os.Mkdir(dirs[6].Path, 0o700)) // nothing was ever in it
	c := New()
	var last ScanProgress
	scan, err := c.Scan(t.Context(), dirs, ScanOptions{Logger: quiet, OnProgress: func(p ScanProgress) { last = p }})
	must(t, err)
	if scan.Opened != 18 || scan.Empty != 2 || len(scan.Failed) != 0 || len(scan.OpenTimes) != 18 || scan.ReplayedBytes != 0 {
		t.Errorf("%+v", scan)
	}
	if last != (ScanProgress{Done: 20, Total: 20}) {
		t.Errorf("progress %+v", last)
	}
	for i, d := range dirs {
		got, ok := c.Lookup(d.Task)
		if i == 5 || i == 6 {
			if ok {
				t.Errorf("%s: %+v", d.Task, got)
			}
			continue
		}
		want := kafka.TopicPartition{Topic: "app-a-changelog", Partition: int32(i)}
		if say(got, ok) != " a at 42 b absent" || got.Offsets[0].Changelog != want {
			t.Errorf("%s: %+v", d.Task, got)
		}
	}
	if after := names(t, dirs[3].Path); !slices.Equal(before, after) {
		t.Errorf("the scan wrote: %q, then %q", before, after)
	}
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		if e.Name() == "LOCK" {
			list = append(list, e.Name()) // the database's lock, which the scan takes
			continue
		}
		list = append(list, fmt.Sprintf("%s %d %v", e.Name(), info.Size(), info.ModTime()))
	}
	return list
}

func TestScanInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	makeStore(t, dir, 1, 1)
	s, err := statestore.Open(dir, statestore.Options{})
	must(t, err)
	defer s.Close()
	scan, err := New().Scan(t.Context(), []Directory{{"0_0", dir}, {"foreign", dir}}, ScanOptions{Logger: quiet})
	must(t, err)
	if len(scan.Failed) != 2 || !errors.Is(scan.Failed[0].Err, statestore.ErrLocked) || !strings.Contains(scan.Failed[1].Err.Error(), "not a task id") {
		t.Errorf("%+v", scan)
	}
}

func TestScanCancelled(t *testing.T) {
	original := filepath.Join(t.TempDir(), "t")
	makeStore(t, original, 42, 1)
	dirs := copies(t, original, 30)
	why := errors.New("the application is closing")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	scan, err := New().Scan(ctx, dirs, ScanOptions{Logger: quiet})
	if !errors.Is(err, why) || scan.Opened+scan.Empty+len(scan.Failed) != 0 {
		t.Errorf("%v, %+v", err, scan)
	}
}

// A scan that is stopped on the way ends soon, keeps what it has found, and says nothing of the
// directories that it did not come to.
func TestScanCancelledOnTheWay(t *testing.T) {
	original := filepath.Join(t.TempDir(), "t")
	makeStore(t, original, 42, 1)
	dirs := copies(t, original, 200)
	why := errors.New("the application is closing")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := New()
	changed, stop := c.Watch()
	defer stop()
	go func() {
		<-changed
		cancel(why)
	}()
	scan, err := c.Scan(ctx, dirs, ScanOptions{Logger: quiet, Parallel: 2})
	if !errors.Is(err, why) || scan.Opened == 0 || scan.Opened == len(dirs) || len(scan.Failed)+scan.Empty > 0 || c.Len() != scan.Opened {
		t.Errorf("%v, %d opened, %d empty, failed %v, %d in the cache", err, scan.Opened, scan.Empty, scan.Failed, c.Len())
	}
}

// A scan that takes long tells once a second how far it is, and at the end.
func TestScanTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var told []ScanProgress
		s := &scanner{dirs: make([]Directory, 10), o: ScanOptions{
			Logger: slog.New(slog.NewTextHandler(&log, nil)), OnProgress: func(p ScanProgress) { told = append(told, p) }}}
		finished, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			s.tell(finished)
		}()
		for done := int64(3); done <= 6; done += 3 {
			s.done.Store(done)
			<-time.After(1100 * time.Millisecond)
		}
		s.done.Store(10)
		s.failures.Store(1)
		close(finished)
		<-ended
		want := []ScanProgress{{3, 10, 0}, {6, 10, 0}, {10, 10, 1}}
		if !slices.Equal(told, want) {
			t.Errorf("told %+v", told)
		}
		if n := strings.Count(log.String(), "reading task directories"); n != 2 || !strings.Contains(log.String(), "done=6 of=10") {
			t.Errorf("log:\n%s", log.String())
		}
	})
}

// Directories come and go under the scan.
func TestScanWhileDirectoriesChange(t *testing.T) {
	original := filepath.Join(t.TempDir(), "t")
	makeStore(t, original, 42, 1)
	dirs := copies(t, original, 40)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			d := dirs[i%20].Path
			if err := os.RemoveAll(d); err == nil && i%2 == 0 {
				_ = os.CopyFS(d, os.DirFS(original)) // half of it may be there when it is looked at
			}
		}
	})
	for range 5 {
		c := New()
		scan, err := c.Scan(t.Context(), dirs, ScanOptions{Logger: quiet})
		must(t, err)
		if n := scan.Opened + scan.Empty + len(scan.Failed); n != len(dirs) {
			t.Errorf("%d of %d directories are accounted for", n, len(dirs))
		}
		for _, d := range dirs[20:] {
			if got := say(c.Lookup(d.Task)); got != " a at 42 b absent" {
				t.Errorf("%s: %s", d.Task, got)
			}
		}
	}
	close(stop)
	wg.Wait()
}

func TestReplayBudget(t *testing.T) {
	b := newBudget(100)
	first, err := b.acquire(t.Context(), 5000) // larger than all: it gets all
	if err != nil || first != 100 {
		t.Fatal(first, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if n, err := b.acquire(ctx, 1); !errors.Is(err, context.DeadlineExceeded) || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	b.release(first)
	if n, err := b.acquire(t.Context(), 0); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestParallelism(t *testing.T) {
	if n := parallelism(0, 3); n != 3 {
		t.Errorf("%d for 3 directories", n)
	}
	if n := parallelism(5, 0); n != 1 {
		t.Errorf("%d for none", n)
	}
	if limit, known := fdlimit.Get(); known {
		if n := parallelism(1<<30, 1<<30); uint64(n*descriptorsEach) > limit {
			t.Errorf("%d at a time with %d descriptors", n, limit)
		}
	}
}
