package localstate

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Clean removes, until ctx ends, the directories of tasks that were not owned here for a delay. It begins one delay
// after the start: until then a task may be on its way back. A delay that is not positive removes nothing.
func Clean(ctx context.Context, dir *statedir.Dir, cache *offsetcache.Cache, delay time.Duration, resources *statestore.Resources, log *slog.Logger) {
	if delay <= 0 {
		return
	}
	t := time.NewTicker(delay)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			clean(ctx, dir, cache, delay, statestore.ReadOptions{Resources: resources, Logger: log})
		}
	}
}

func clean(ctx context.Context, dir *statedir.Dir, cache *offsetcache.Cache, delay time.Duration, o statestore.ReadOptions) {
	all, err := dir.Clean(ctx, statedir.CleanOptions{OlderThan: delay, LastOwned: func(path string) (time.Time, error) {
		return offsetcache.LastOwned(path, o)
	}})
	if err != nil && ctx.Err() == nil {
		o.Logger.Warn("old task directories are not removed", "error", err)
	}
	for _, c := range all {
		switch {
		case c.Remove:
			cache.Wiped(c.Task)
			o.Logger.Info("task directory was removed: the task was not owned here for long", "task", c.Task, "last-owned", c.LastOwned)
		case c.Err != nil:
			o.Logger.Debug("task directory stays", "task", c.Task, "reason", c.Err)
		}
	}
}
