package offsetcache

import (
	"cmp"
	"slices"
)

// Snapshot gives every task, ordered by id. Each is as of one moment, but not all as of the
// same. The caller owns the slice, and must not change what is in it.
func (c *Cache) Snapshot() []Task {
	var tasks []Task
	for i := range c.shards {
		for _, s := range *c.shards[i].Load() {
			if t := s.now.Load(); t != nil {
				tasks = append(tasks, *t)
			}
		}
	}
	slices.SortFunc(tasks, func(a, b Task) int { return cmp.Compare(a.ID, b.ID) })
	return tasks
}

// watcher is one who wants to know of changes.
type watcher struct{ changed chan struct{} }

// Watch gives a channel that receives after a change. Changes that come faster than they are
// taken are one: look at the cache after each receive. Nobody who reports a change waits for
// a watcher. stop ends it; the channel is not closed.
func (c *Cache) Watch() (changed <-chan struct{}, stop func()) {
	w := &watcher{changed: make(chan struct{}, 1)}
	c.watching.Lock()
	c.watchers[w] = struct{}{}
	c.watching.Unlock()
	return w.changed, func() {
		c.watching.Lock()
		delete(c.watchers, w)
		c.watching.Unlock()
	}
}

// tell is called after the change can be seen.
func (c *Cache) tell() {
	c.watching.Lock()
	defer c.watching.Unlock()
	for w := range c.watchers {
		select {
		case w.changed <- struct{}{}:
		default: // there is one already that has not been taken
		}
	}
}
