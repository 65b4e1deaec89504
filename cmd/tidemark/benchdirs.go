package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
)

// benchSet is the task directories that are measured.
type benchSet struct {
	benchMade
	path  string // they are in it
	found bool   // an application's own: not made for this
	dirs  []offsetcache.Directory
}

// benchMade is what all directories hold that were made for measuring. It is kept beside them, so that
// a later run knows.
type benchMade struct {
	StoreBytes int  `json:"store_bytes"`
	Dirty      bool `json:"dirty"`
}

const benchMadeName = "tidemark-bench.json"

// benchDirectories gives the task directories in parent. Those that it made are completed, as they were made; those of
// an application are taken as they are; anything else is left alone.
func benchDirectories(ctx context.Context, parent string, b benchFlags, stderr io.Writer) (*benchSet, error) {
	made := benchMade{b.storeBytes, b.dirty}
	switch before, err := readBenchMade(parent); {
	case err == nil:
		if b.given["store-bytes"] && before.StoreBytes != b.storeBytes || b.given["dirty"] && before.Dirty != b.dirty {
			return nil, fmt.Errorf("the task directories in %s were made with --store-bytes %d --dirty=%t: give these flags or none, or another --dir", parent, before.StoreBytes, before.Dirty)
		}
		made = before
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	default:
		entries, err := os.ReadDir(parent)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(entries) > 0 {
			return benchFound(parent, b)
		}
		if err := writeBenchMade(parent, made); err != nil {
			return nil, err
		}
	}
	set := &benchSet{benchMade: made, path: benchApp(parent)}
	return set, set.complete(ctx, parent, b, stderr)
}

func readBenchMade(parent string) (m benchMade, err error) {
	text, err := os.ReadFile(filepath.Join(parent, benchMadeName))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("what %s was made with: %w", parent, err)
	}
	return m, nil
}

func writeBenchMade(parent string, m benchMade) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(parent, 0o700), os.WriteFile(filepath.Join(parent, benchMadeName), append(text, '\n'), 0o600))
}

// benchFound takes the task directories of an application that does not run.
func benchFound(dir string, b benchFlags) (*benchSet, error) {
	t, err := lookAt(dir)
	if err != nil {
		return nil, fmt.Errorf("--dir: it is not empty, and was not made by bench: %w", err)
	}
	a, err := t.choose("")
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: no, give the directory of one of them", err)
	case b.given["store-bytes"] || b.given["dirty"]:
		return nil, fmt.Errorf("the task directories in %s are the application's: --store-bytes and --dirty are for those that are made", a.Path)
	case len(a.Tasks) == 0:
		return nil, fmt.Errorf("%s has no task directories, and is not a place to make some: give another --dir", a.Path)
	}
	if h, held, err := a.Holder(); err != nil || held {
		return nil, errors.Join(err, fmt.Errorf("%s is in use (%v): stop the application", a.Path, h))
	}
	set := &benchSet{path: a.Path, found: true}
	if b.given["tasks"] {
		a.Tasks = a.Tasks[:min(len(a.Tasks), b.tasks)]
	}
	var total int64
	for _, task := range a.Tasks {
		d := offsetcache.Directory{Task: task, Path: filepath.Join(a.Path, task)}
		set.dirs = append(set.dirs, d)
		n, err := bytesIn(d.Path)
		if err != nil {
			return nil, err
		}
		total += n
	}
	set.StoreBytes = int(total / int64(len(set.dirs)))
	return set, nil
}

func bytesIn(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

// complete makes the directories that are missing: copies of one, so that a thousand do not take minutes.
func (s *benchSet) complete(ctx context.Context, parent string, b benchFlags, stderr io.Writer) error {
	tasks := b.tasks
	if there, err := filepath.Glob(filepath.Join(s.path, "0_*")); err == nil && len(there) > 0 && !b.given["tasks"] {
		tasks = len(there)
	}
	var missing []string
	for i := range tasks {
		d := offsetcache.Directory{Task: fmt.Sprintf("0_%d", i), Path: filepath.Join(s.path, fmt.Sprintf("0_%d", i))}
		s.dirs = append(s.dirs, d)
		if _, err := os.Stat(d.Path); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, d.Path)
		} else if err != nil {
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(stderr, "making %d task directories in %s\n", len(missing), s.path)
	original := filepath.Join(parent, "original")
	defer os.RemoveAll(original)
	if err := makeBenchStore(original, s.benchMade); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2 * runtime.GOMAXPROCS(0))
	for _, path := range missing {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			// Half a directory must not be taken for one the next time.
			if err := copyDir(original, path+".making"); err != nil {
				return err
			}
			return os.Rename(path+".making", path)
		})
	}
	return g.Wait()
}

// workDir makes a directory for copies: where links are possible, but not among what somebody else owns.
func (s *benchSet) workDir() (string, error) {
	if s.found {
		return os.MkdirTemp("", "tidemark-bench-")
	}
	return os.MkdirTemp(filepath.Dir(s.path), "copies-")
}

// linkDir copies a task directory for a moment. Tables are never written to again, so a link will do.
func linkDir(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case e.IsDir():
			return os.MkdirAll(target, 0o700)
		case !e.Type().IsRegular():
			return nil
		case filepath.Ext(path) == ".sst" && os.Link(path, target) == nil:
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
}

// makeBenchStore makes a task store with two stores. A dirty one is copied while it is open:
// just that is what kill -9 leaves.
func makeBenchStore(dir string, b benchMade) error {
	work := dir + "-open"
	defer os.RemoveAll(work)
	memTable := min(max(4<<20, b.StoreBytes+b.StoreBytes/4), 1<<30)
	s, err := statestore.Open(work, statestore.Options{MemTableBytes: memTable, CacheBytes: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	err = fillBenchStore(s, b.StoreBytes)
	if err == nil && b.Dirty {
		err = errors.Join(s.Sync(), copyDir(work, dir))
	}
	if err = errors.Join(err, s.Close()); err != nil || b.Dirty {
		return err
	}
	return copyDir(work, dir)
}

func fillBenchStore(s *statestore.TaskStore, bytes int) error {
	err := s.Register(
		statestore.Spec{Name: "counts", Kind: statestore.KindKeyValue, Changelog: "bench-counts-changelog"},
		statestore.Spec{Name: "names", Kind: statestore.KindKeyValue, Changelog: "bench-names-changelog"})
	if err != nil {
		return err
	}
	const valueBytes, batchRecords = 200, 1000
	random := rand.New(rand.NewPCG(1, 2))
	var records []statestore.RestoreRecord
	written, n := 0, int64(0)
	for written < bytes {
		value := make([]byte, valueBytes)
		for i := 0; i < valueBytes; i += 8 {
			binary.LittleEndian.PutUint64(value[i:], random.Uint64())
		}
		records = append(records, statestore.RestoreRecord{Key: fmt.Appendf(nil, "key%013d", n), Value: value})
		written, n = written+valueBytes+16, n+1
		if len(records) == batchRecords || written >= bytes {
			if err := s.Restore("counts", records, n); err != nil {
				return err
			}
			records = records[:0]
		}
	}
	return s.Restore("names", []statestore.RestoreRecord{{Key: []byte("k"), Value: []byte("v")}}, 1)
}

func copyDir(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}
