package offsetcache

import "slices"

// Found says what is on the disk of a task that does not run: from the scan at start, or
// from a store that was just opened.
func (c *Cache) Found(task string, offsets []Offset) { c.closed(task, offsets) }

// Restored says that a batch of changelog records was applied: the store now stands at
// o.Offset. The task's other stores stay where they are. A task that is being restored, also
// once more, is not latest.
func (c *Cache) Restored(task string, o Offset) {
	c.change(task, func(s *slot, old Task) {
		s.now.Store(&Task{ID: task, Offsets: with(old.Offsets, o)})
	})
}

// Running says that the task is restored and runs here: it reads as latest until it is
// closed or wiped.
func (c *Cache) Running(task string) {
	c.change(task, func(s *slot, old Task) {
		s.now.Store(&Task{ID: task, Latest: true, Offsets: old.Offsets})
	})
}

// Committed says that a commit succeeded, with the offsets of the stores that it names. Call
// it after the store's batch was written, never before.
func (c *Cache) Committed(task string, offsets []Offset) {
	c.change(task, func(s *slot, old Task) {
		s.now.Store(&Task{ID: task, Latest: old.Latest, Offsets: withAll(old.Offsets, offsets)})
	})
}

// Durable says that these offsets are on the disk: what a dirty close falls back to.
func (c *Cache) Durable(task string, offsets []Offset) {
	c.change(task, func(s *slot, old Task) {
		s.disk = withAll(s.disk, offsets)
		if s.now.Load() == nil {
			s.now.Store(&old)
		}
	})
}

// Closed says that the task was closed cleanly with these offsets on the disk.
func (c *Cache) Closed(task string, offsets []Offset) { c.closed(task, offsets) }

func (c *Cache) closed(task string, offsets []Offset) {
	c.change(task, func(s *slot, _ Task) {
		s.disk = slices.Clone(offsets)
		s.now.Store(&Task{ID: task, Offsets: s.disk})
	})
}

// ClosedDirty says that the task is closed and that nobody knows what became of its last
// commits: it reads as what was last known to be on the disk.
func (c *Cache) ClosedDirty(task string) {
	c.change(task, func(s *slot, _ Task) {
		s.now.Store(&Task{ID: task, Offsets: s.disk})
	})
}

// Cleared says that one store of the task was emptied: it has no offset any more, here and on
// the disk.
func (c *Cache) Cleared(task string, o Offset) {
	o = Offset{Store: o.Store, Changelog: o.Changelog}
	c.change(task, func(s *slot, old Task) {
		s.disk = with(s.disk, o)
		s.now.Store(&Task{ID: task, Offsets: with(old.Offsets, o)})
	})
}

// Wiped says that the task's directory is gone, or was set aside: this host has nothing of it.
func (c *Cache) Wiped(task string) { c.forget(task) }

// with gives a copy in which o replaces the offset of its store.
func with(offsets []Offset, o Offset) []Offset { return withAll(offsets, []Offset{o}) }

func withAll(offsets, changed []Offset) []Offset {
	next := slices.Clone(offsets)
	for _, o := range changed {
		i := slices.IndexFunc(next, func(x Offset) bool { return x.Store == o.Store && x.Changelog == o.Changelog })
		if i < 0 {
			next = append(next, o)
		} else {
			next[i] = o
		}
	}
	return next
}
