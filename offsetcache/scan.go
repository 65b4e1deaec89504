package offsetcache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Directory is a task directory to look into.
type Directory struct{ Task, Path string }

// ScanOptions is how to scan. The zero value is good.
type ScanOptions struct {
	// Parallel is how many directories are open at a time. 0 = 4 per core, and never more
	// than the limit of file descriptors allows.
	Parallel int
	// ReplayBytes bounds the write-ahead logs that are replayed into memory at a time, after
	// a crash. 0 = 256 MiB.
	ReplayBytes int64
	// Resources is what all task stores of the process share; nil = a small set for the scan.
	Resources *statestore.Resources
	// Logger takes failures, and progress when the scan takes longer than a second; nil =
	// slog.Default().
	Logger *slog.Logger
	// OnProgress, if not nil, is called about once a second, and at the end.
	OnProgress func(ScanProgress)
}

// ScanProgress is how far a scan is.
type ScanProgress struct{ Done, Total, Failed int }

// Scan is what a scan found.
type Scan struct {
	// Parallel is how many directories were open at a time.
	Parallel int
	// Opened is how many directories hold a task store; Empty how many hold none.
	Opened, Empty int
	// Failed are the directories that could not be opened, in the order of the directories:
	// their tasks have no state here.
	Failed []ScanFailure
	// Unknown are the directories of tasks that the application does not have (any more). A scan does not know
	// which those are: who knows the topology fills it in. They are left alone.
	Unknown []Directory
	// Elapsed is how long it took, ReplayTime how much of the work (of all goroutines) was
	// the replay of ReplayedBytes of write-ahead log.
	Elapsed, ReplayTime time.Duration
	ReplayedBytes       int64
	// OpenTimes are how long each opened directory took, shortest first.
	OpenTimes []time.Duration
}

// ScanFailure is one directory that could not be opened.
type ScanFailure struct {
	Directory
	Err error
}

// Scan opens every directory for reading, in parallel, and records the offsets that it
// finds. It writes nothing. A directory that cannot be opened is reported and its task has no
// state; it neither stops the others nor is it an error. The error is that of ctx.
func (c *Cache) Scan(ctx context.Context, directories []Directory, o ScanOptions) (*Scan, error) {
	s := &scanner{cache: c, o: o, dirs: directories, began: time.Now(), failed: make([]error, len(directories))}
	if s.o.Logger == nil {
		s.o.Logger = slog.Default()
	}
	if s.o.Resources == nil {
		r, err := statestore.NewResources(statestore.ResourceOptions{BlockCacheBytes: 8 << 20, OpenFiles: 64, Compactions: 1, Syncs: 1})
		if err != nil {
			return nil, err
		}
		defer r.Close()
		s.o.Resources = r
	}
	s.replays = newBudget(o.ReplayBytes)
	s.run(ctx)
	return s.report(), context.Cause(ctx)
}

// scanner is one scan.
type scanner struct {
	cache   *Cache
	o       ScanOptions
	dirs    []Directory
	began   time.Time
	replays *budget

	next, done, failures atomic.Int64

	mu     sync.Mutex
	scan   Scan
	failed []error // by directory
}

func (s *scanner) run(ctx context.Context) {
	var wg sync.WaitGroup
	s.scan.Parallel = parallelism(s.o.Parallel, len(s.dirs))
	for range s.scan.Parallel {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(s.next.Add(1)) - 1
				if i >= len(s.dirs) {
					return
				}
				s.look(ctx, i)
			}
		})
	}
	finished := make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		s.tell(finished)
	}()
	wg.Wait()
	close(finished)
	<-told
}

// look reads one directory.
func (s *scanner) look(ctx context.Context, i int) {
	defer s.done.Add(1)
	d := s.dirs[i]
	offsets, stats, err := s.read(ctx, d)
	if ctx.Err() != nil && err != nil {
		return // interrupted: nothing is known of it
	}
	if errors.Is(err, statestore.ErrNoStore) && isDangling(d.Path) {
		err = fmt.Errorf("%s: a symbolic link to nothing: is the disk that it leads to there?", d.Path)
	}
	if err == nil {
		s.cache.Found(d.Task, offsets)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, statestore.ErrNoStore):
		s.scan.Empty++
	case err != nil:
		s.failed[i] = err
		s.failures.Add(1)
		s.o.Logger.Warn("task directory cannot be opened, the task has no state here", "task", d.Task, "dir", d.Path, "error", err)
	default:
		s.scan.Opened++
		s.scan.ReplayedBytes += stats.ReplayedBytes
		s.scan.ReplayTime += stats.ReplayTime
		s.scan.OpenTimes = append(s.scan.OpenTimes, stats.Time)
	}
}

func (s *scanner) read(ctx context.Context, d Directory) ([]Offset, statestore.OpenStats, error) {
	partition, err := partitionOf(d.Task)
	if err != nil {
		return nil, statestore.OpenStats{}, err
	}
	var waited int64
	defer func() { s.replays.release(waited) }()
	v, err := statestore.OpenReadOnly(d.Path, statestore.ReadOptions{
		Resources: s.o.Resources, Logger: s.o.Logger,
		BeforeReplay: func(bytes int64) (err error) {
			waited, err = s.replays.acquire(ctx, bytes)
			return err
		},
	})
	if err != nil {
		return nil, statestore.OpenStats{}, err
	}
	offsets := offsetsOf(v.Metadata().Stores, partition)
	return offsets, v.OpenStats(), v.Close()
}

// offsetsOf gives the offsets of the logged stores, as the cache keeps them, for the task of
// a partition.
func offsetsOf(stores []statestore.StoreMetadata, partition int32) []Offset {
	var offsets []Offset
	for _, x := range stores {
		if x.Spec.Changelog == "" {
			continue
		}
		o := Offset{Store: x.Spec.Name, Changelog: kafka.TopicPartition{Topic: x.Spec.Changelog, Partition: partition}}
		if !x.Forgotten {
			o.Offset = x.Offset
		}
		offsets = append(offsets, o)
	}
	return offsets
}

func partitionOf(task string) (int32, error) {
	i := strings.LastIndexByte(task, '_')
	n, err := strconv.ParseInt(task[i+1:], 10, 32)
	if i < 0 || err != nil {
		return 0, fmt.Errorf("%q is not a task id: it ends with _<partition>", task)
	}
	return int32(n), nil
}

// tell says how far the scan is while it takes long, and at the end.
func (s *scanner) tell(finished <-chan struct{}) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-finished:
			if s.o.OnProgress != nil {
				s.o.OnProgress(s.progress())
			}
			return
		case <-t.C:
			p := s.progress()
			s.o.Logger.Info("reading task directories", "done", p.Done, "of", p.Total, "failed", p.Failed)
			if s.o.OnProgress != nil {
				s.o.OnProgress(p)
			}
		}
	}
}

func (s *scanner) progress() ScanProgress {
	return ScanProgress{Done: int(s.done.Load()), Total: len(s.dirs), Failed: int(s.failures.Load())}
}

func (s *scanner) report() *Scan {
	s.scan.Elapsed = time.Since(s.began)
	for i, err := range s.failed {
		if err != nil {
			s.scan.Failed = append(s.scan.Failed, ScanFailure{s.dirs[i], err})
		}
	}
	slices.Sort(s.scan.OpenTimes)
	return &s.scan
}

// isDangling tells whether a path is a symbolic link to nothing: what it led to may have state, and be back later.
func isDangling(path string) bool {
	_, err := os.Lstat(path)
	if err != nil {
		return false
	}
	_, err = os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
