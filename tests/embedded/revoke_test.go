package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/internal/testlog"
	"github.com/tidemark-streams/tidemark/processor"
)

// A revoke does not wait for longer than RevokeTimeout for a commit, also not for one that had begun before: the
// partitions go on elsewhere from the commit before.
func TestRevokeTimeout(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		x := w.watch()
		var hang atomic.Bool
		back := make(chan struct{})
		hung := make(chan struct{}, 100)
		f := func(t *embedded.Task, r record) error {
			if hang.Load() {
				t.BeforeCommit(func(ctx context.Context) error { // a sink that does not answer
					select {
					case hung <- struct{}{}:
					default:
					}
					select {
					case <-back:
					case <-ctx.Done():
					}
					return ctx.Err()
				})
			}
			return count(t, r.key, w.out)
		}
		cfg := w.config(w.t.TempDir(), embedded.ExactlyOnce)
		cfg.RevokeTimeout = 300 * time.Millisecond
		a := w.member(cfg, f)
		w.produce(100)
		eventually(w.t, 90*time.Second, "all records are counted", func() bool { return x.reached(w.seq) })
		hang.Store(true)
		w.produce(100)
		<-hung
		b := w.member(w.config(w.t.TempDir(), embedded.ExactlyOnce), func(t *embedded.Task, r record) error { return count(t, r.key, w.out) })
		eventually(w.t, 90*time.Second, "the second has two", func() bool { return len(b.l.Ready()) == 2 })
		close(back)
		eventually(w.t, 90*time.Second, "all records are counted", func() bool { return x.reached(w.seq) })
		a.leave()
		b.leave()
		x.check(w.t, w.seq, embedded.ExactlyOnce)
	})
}

// A plain revoke commits: nothing comes again elsewhere, and a commit afterwards has nothing to tell. What was kept of a partition that is
// gone is of no use, and says so.
func TestCommitAfterRevoke(t *testing.T) {
	t.Parallel()
	everywhere(t, func(w *world) {
		w.produce(50)
		var log testlog.Log
		cfg := w.config(w.t.TempDir(), embedded.AtLeastOnce)
		cfg.Limits.CommitInterval = time.Hour
		cfg.Logger = log.Logger()
		l := w.start(cfg)
		tasks := map[int32]*embedded.Task{}
		stores := map[int32]*processor.KeyValueStore[string, int64]{}
		got := 0
		f := func(t *embedded.Task, r record) error {
			got++
			tasks[r.partition], stores[r.partition] = t, counts.In(t)
			return count(t, r.key, w.out)
		}
		w.until(l, f, "all came", func() bool { return got >= 50 })
		var again atomic.Int32
		b := w.member(w.config(w.t.TempDir(), embedded.AtLeastOnce), func(*embedded.Task, record) error { again.Add(1); return nil })
		w.until(l, f, "each has two", func() bool { return len(b.l.Ready()) == 2 && len(l.Ready()) == 2 })
		if err := l.Commit(context.Background()); err != nil {
			w.t.Error(err)
		}
		for _, tp := range b.l.Ready() {
			p := tp.Partition
			if tasks[p] == nil {
				continue // no key has it
			}
			tasks[p].Commit()
			wants(w.t, errors.New(log.String()), "a commit that was asked for is left out", "Process has returned", fmt.Sprintf("task=0_%d", p))
			wants(w.t, tasks[p].Send(w.out, nil, nil), "Process has returned")
			wants(w.t, stores[p].Put("wrong", 1), "closed")
		}
		if err := l.Commit(context.Background()); err != nil || l.Err() != nil {
			w.t.Error(err, l.Err())
		}
		w.close(l)
		b.leave()
		if got != 50 || again.Load() != 0 {
			w.t.Errorf("%d records came here, and %d of them again elsewhere", got, again.Load())
		}
	})
}
