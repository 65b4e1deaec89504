package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// A snapshot of a running host is whole, and of one commit of each task; it may be taken in the middle of a message too.
func TestSnapshot(t *testing.T) {
	each(t, func(w *world) {
		x, cfg, dir := w.watch(), w.config(w.t.TempDir(), embedded.ExactlyOnce), w.t.TempDir()
		l := w.start(cfg)
		f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
		if err := l.Snapshot(context.Background(), filepath.Join(dir, "idle")); err == nil || !strings.Contains(err.Error(), "no task store is open") {
			w.t.Errorf("before the first assignment: %v", err)
		}
		w.until(l, f, "all partitions are here", func() bool { return len(l.Ready()) == 4 })
		taken := 0
		for range 5 {
			w.produce(300)
			want := w.seq - 150
			w.until(l, func(t *embedded.Task, r record) error {
				if taken%4 == 0 {
					taken++
					w.snapshot(l, cfg.App, filepath.Join(dir, fmt.Sprint(taken)))
				}
				return f(t, r)
			}, "half of the records are counted", func() bool { return x.reached(want) })
			taken++
			w.snapshot(l, cfg.App, filepath.Join(dir, fmt.Sprint(taken)))
			taken += 3 - taken%4
		}
		w.until(l, f, "all records are counted and committed", func() bool { return x.reached(w.seq) && l.Commit(context.Background()) == nil })
		if n := w.snapshot(l, cfg.App, filepath.Join(dir, "last")); n != int64(w.seq) {
			w.t.Errorf("the last snapshot counts %d records; want %d", n, w.seq)
		}
		w.close(l)
	})
}

// snapshot takes one, and gives how many records are counted in it: as many as its positions say.
func (w *world) snapshot(l loop, app, dir string) (sum int64) {
	w.t.Helper()
	if err := l.Snapshot(context.Background(), dir); err != nil {
		w.t.Error(err)
		return 0
	}
	for n := range 4 {
		sum += w.countedIn(filepath.Join(dir, app, fmt.Sprint("0_", n)))
	}
	return sum
}

func (w *world) countedIn(dir string) (sum int64) {
	w.t.Helper()
	v, err := statestore.OpenReadOnly(dir, statestore.ReadOptions{})
	if err != nil {
		w.t.Error(err)
		return 0
	}
	defer func() { _ = v.Close() }()
	if found, err := v.Verify(context.Background()); err != nil || len(found.Problems) > 0 {
		w.t.Errorf("%s: %v, problems %q", dir, err, found.Problems)
	}
	for row, err := range v.Entries("counts", nil, nil) {
		if err != nil {
			w.t.Error(err)
			return 0
		}
		n, err := serde.Int64.Decode(row.Value)
		if err != nil {
			w.t.Error(err)
		}
		sum += n
	}
	next := int64(0)
	for _, p := range v.Metadata().Positions {
		next += p.Next
	}
	if sum != next {
		w.t.Errorf("%s: %d records are counted, and the positions are %v", dir, sum, v.Metadata().Positions)
	}
	return sum
}

func TestStoreSettings(t *testing.T) {
	w := newWorld(t, doors[0])
	cfg := w.config(t.TempDir(), embedded.AtLeastOnce)
	cfg.SyncInterval, cfg.Resources.CacheBytes = time.Hour, 5<<20
	l := w.start(cfg)
	f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
	if n := l.StoreStats().Cache.BudgetBytes; n != 5<<20 {
		t.Errorf("cache budget %d; want 5 MiB", n)
	}
	l.SetCacheBytes(7 << 20)
	l.SetCacheBytes(0) // nothing happens
	if n := l.StoreStats().Cache.BudgetBytes; n != 7<<20 {
		t.Errorf("cache budget %d; want 7 MiB", n)
	}
	w.produce(40)
	w.until(l, f, "all is committed", func() bool { return l.Commit(context.Background()) == nil && committed(l) == 40 })
	// The start has synced what there was before the first record.
	for _, s := range l.Status().Tasks {
		if o, durable := s.Changelog["counts"], s.Durable["counts"]; s.Committed != nil && o == durable && !o.IsAbsent() {
			t.Errorf("task %v: %v is on the disk, though the sync is to come in an hour", s.ID, durable)
		}
	}
	w.close(l)
	l.SetCacheBytes(9 << 20) // nothing happens

	cfg.SyncEveryCommit = true
	l = w.start(cfg)
	w.produce(40)
	w.until(l, f, "all is committed", func() bool { return l.Commit(context.Background()) == nil && committed(l) == 80 })
	for _, s := range l.Status().Tasks {
		if o, durable := s.Changelog["counts"], s.Durable["counts"]; o != durable {
			t.Errorf("task %v: %v is committed, and %v on the disk", s.ID, o, durable)
		}
	}
	w.close(l)
}

// committed is how many records are, of all partitions.
func committed(l loop) (n int64) {
	for _, s := range l.Status().Tasks {
		for _, next := range s.Committed {
			n += next
		}
	}
	return n
}

// Too few file descriptors are found before the first store is opened.
func TestTooFewFileDescriptors(t *testing.T) {
	w := newWorld(t, doors[0])
	cfg := w.config(t.TempDir(), embedded.AtLeastOnce)
	cfg.Resources.OpenFiles = 1 << 40
	l := w.start(cfg)
	deadline := time.Now().Add(60 * time.Second)
	for l.Err() == nil && time.Now().Before(deadline) {
		_ = l.poll(func(*embedded.Task, record) error { return nil })
	}
	if err := l.Err(); err == nil || !strings.Contains(err.Error(), "state stores: too few file descriptors") || !strings.Contains(err.Error(), "4 task stores") {
		t.Errorf("%v; want what is needed for 4 task stores", err)
	}
	_ = l.Close(context.Background())
}
