package offsetcache

import (
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Offset is how far one store of a task has followed its changelog partition.
type Offset struct {
	Store     string
	Changelog kafka.TopicPartition
	Offset    statestore.Offset
}

// Task is what this host has of a task. It is never changed once it was given out.
type Task struct {
	// ID is <sub-topology>_<partition>.
	ID string
	// Latest: the task runs here and is restored, so it stands at the end of its changelogs
	// whatever the offsets of its last commit are.
	Latest bool
	// Offsets, in the order in which they came in. Stores that are not logged have none.
	Offsets []Offset
}

// shardCount divides the tasks, so that a new task copies a small map.
const shardCount = 64

// Cache is the offsets of all tasks on this host. The zero value is not usable: see [New].
type Cache struct {
	seed   maphash.Seed
	shards [shardCount]atomic.Pointer[map[string]*slot]
	// adding is held while a task gets its slot or loses it.
	adding sync.Mutex

	watching sync.Mutex
	watchers map[*watcher]struct{}
}

// slot is the place of one task. Writers of one task take turns; readers take what is there.
type slot struct {
	mu   sync.Mutex
	now  atomic.Pointer[Task]
	disk []Offset // what is known to be on the disk; guarded by mu
	gone bool     // taken out of the map; guarded by mu
}

// New makes an empty cache.
func New() *Cache {
	c := &Cache{seed: maphash.MakeSeed(), watchers: map[*watcher]struct{}{}}
	for i := range c.shards {
		c.shards[i].Store(&map[string]*slot{})
	}
	return c
}

func (c *Cache) shard(task string) *atomic.Pointer[map[string]*slot] {
	return &c.shards[maphash.String(c.seed, task)%shardCount]
}

// Lookup gives what this host has of a task; false: nothing. It takes no lock and allocates
// nothing. The caller must not change the slice.
func (c *Cache) Lookup(task string) (Task, bool) {
	s := (*c.shard(task).Load())[task]
	if s == nil {
		return Task{}, false
	}
	t := s.now.Load()
	if t == nil {
		return Task{}, false
	}
	return *t, true
}

// Len is how many tasks have a place here.
func (c *Cache) Len() int {
	n := 0
	for i := range c.shards {
		n += len(*c.shards[i].Load())
	}
	return n
}

// change runs f on the task's place, which is made when there is none, and tells the
// watchers. f replaces s.now and never changes what it points to.
func (c *Cache) change(task string, f func(s *slot, old Task)) {
	for {
		s := c.place(task)
		s.mu.Lock()
		if s.gone { // forgotten in between
			s.mu.Unlock()
			continue
		}
		old := Task{ID: task}
		if t := s.now.Load(); t != nil {
			old = *t
		}
		f(s, old)
		s.mu.Unlock()
		c.tell()
		return
	}
}

func (c *Cache) place(task string) *slot {
	shard := c.shard(task)
	if s := (*shard.Load())[task]; s != nil {
		return s
	}
	c.adding.Lock()
	defer c.adding.Unlock()
	old := *shard.Load()
	if s := old[task]; s != nil {
		return s
	}
	next := maps.Clone(old)
	s := &slot{}
	next[task] = s
	shard.Store(&next)
	return s
}

// forget takes the task's place away.
func (c *Cache) forget(task string) {
	c.adding.Lock()
	shard := c.shard(task)
	s := (*shard.Load())[task]
	if s != nil {
		next := maps.Clone(*shard.Load())
		delete(next, task)
		shard.Store(&next)
	}
	c.adding.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	c.tell()
}
