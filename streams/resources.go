package streams

import (
	"cmp"

	"github.com/tidemark-streams/tidemark/statestore"
)

// openResources makes what the task stores share; closeResources ends it.
func (a *App) openResources() (*statestore.Resources, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.cfg.Store.Resources
	if n := a.cfg.Store.BlockCacheBytes; n > 0 {
		o.BlockCacheBytes = n
	}
	if n := cmp.Or(a.cacheBytes, a.cfg.Store.CacheBytes); n > 0 {
		o.CacheBytes = n
	}
	r, err := statestore.NewResources(o)
	if err != nil {
		return nil, err
	}
	a.resources = r
	return r, nil
}

func (a *App) closeResources() error {
	a.mu.Lock()
	r := a.resources
	a.resources = nil
	a.mu.Unlock()
	return r.Close()
}

// SetCacheBytes changes how much memory the tasks of this process may together use for values
// that they have read or written (StoreConfig.CacheBytes), at any time; n must be positive,
// else nothing happens. Each task goes by it at its next turn.
func (a *App) SetCacheBytes(n int64) {
	if n <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cacheBytes = n
	if a.resources != nil {
		a.resources.SetCacheBytes(n)
	}
}

// StoreStats tells how the task stores use memory, and how often their caches answer. It is
// zero when the App does not run.
func (a *App) StoreStats() statestore.ResourceStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.resources == nil {
		return statestore.ResourceStats{}
	}
	return a.resources.Stats()
}
