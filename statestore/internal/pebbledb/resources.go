package pebbledb

import (
	"runtime"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// Resources is what the databases of a process share.
type Resources struct {
	blocks *pebble.Cache
	files  *pebble.FileCache
	limit  *limiter
	tables *memTables
	syncs  chan struct{}
	users  atomic.Int64
	// openFiles is the size of files.
	openFiles int
	// leaked: an abandoned database still uses the caches.
	leaked atomic.Bool
}

// ResourceOptions sizes Resources; all fields must be positive. Pebble takes the memtables'
// memory out of the block cache: the cache is made as large as both, and what the memtables
// do not need is for blocks.
type ResourceOptions struct {
	BlockCacheBytes int64
	OpenFiles       int
	Compactions     int
	Syncs           int
	MemTableBytes   int64
}

// NewResources makes caches and limits. Close gives them back.
func NewResources(o ResourceOptions) *Resources {
	return &Resources{
		blocks: pebble.NewCache(o.BlockCacheBytes + o.MemTableBytes),
		files:  pebble.NewFileCache(runtime.GOMAXPROCS(0), o.OpenFiles),
		limit:  &limiter{max: o.Compactions},
		tables: &memTables{budget: o.MemTableBytes},
		syncs:  make(chan struct{}, o.Syncs),

		openFiles: o.OpenFiles,
	}
}

// OpenFiles is how many table files may be open.
func (r *Resources) OpenFiles() int { return r.openFiles }

// Users is the number of open databases.
func (r *Resources) Users() int { return int(r.users.Load()) }

// Close gives the memory back. No database may be open; the memory of abandoned ones stays.
func (r *Resources) Close() {
	if r.leaked.Load() {
		return // an offer to an abandoned database may hang
	}
	r.limit.close()
	r.files.Unref()
	r.blocks.Unref()
}

// BlockStats gives the bytes in the block cache, and how many looks found a block there.
func (r *Resources) BlockStats() (bytes, hits, misses int64) {
	m := r.blocks.Metrics()
	return m.Size, m.Hits, m.Misses
}

// MemTableBudget is what the memtables may hold together.
func (r *Resources) MemTableBudget() int64 { return r.tables.budget }

// MemTableBytes is about what the memtables of all databases hold.
func (r *Resources) MemTableBytes() int64 { return r.tables.total.Load() }

// LimitSync runs fn when one of the process's sync slots is free, or not at all if quit is closed
// before: others may wait for a disk that does not answer.
func (r *Resources) LimitSync(quit <-chan struct{}, fn func()) {
	select {
	case r.syncs <- struct{}{}:
	case <-quit:
		return
	}
	defer func() { <-r.syncs }()
	fn()
}

var abandoned atomic.Int64

// Abandoned counts the databases that this process left behind.
func Abandoned() int64 { return abandoned.Load() }
