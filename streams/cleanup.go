package streams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-streams/tidemark/internal/localstate"
	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
)

// defaultCleanupDelay is Kafka Streams' state.cleanup.delay.ms.
const defaultCleanupDelay = 10 * time.Minute

// CleanUp removes all state of the application on this host: its tasks begin with empty
// stores, which are restored from the changelogs; a store that is not logged begins with nothing. It
// fails while the application runs, here or in another process on the same state directory.
//
// It also fails, and then removes nothing, while a task's directory holds what another program left and no
// start of the application has taken over ([offsetcache.ErrLegacy]), or what a migration was told to keep
// ([offsetcache.ErrKept]), or is a symbolic link: that may exist nowhere else. The error names the directories.
func (a *App) CleanUp() (err error) {
	if s := a.State(); s != Created && s != Closed && s != Failed {
		return fmt.Errorf("clean up: the application is %v: close it first", s)
	}
	dir, err := statedir.Open(a.cfg.StateDir, a.cfg.AppID)
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if err := dir.RemoveAll(offsetcache.Removable); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

// startCleaner starts the goroutine that removes old directories; the function that it gives
// ends it and waits.
func (a *App) startCleaner(ctx context.Context, dir *statedir.Dir, cache *offsetcache.Cache, resources *statestore.Resources) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var cleaner sync.WaitGroup
	cleaner.Go(func() {
		delay := a.cfg.CleanupDelay
		if delay == 0 {
			delay = defaultCleanupDelay
		}
		localstate.Clean(ctx, dir, cache, delay, resources, a.log)
	})
	return func() {
		cancel()
		cleaner.Wait()
	}
}
