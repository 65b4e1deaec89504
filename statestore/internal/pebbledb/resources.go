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
	syncs  chan struct{}
	users  atomic.Int64
	// leaked: an abandoned database still uses the caches.
	leaked atomic.Bool
}

// ResourceOptions sizes Resources; all fields must be positive.
type ResourceOptions struct {
	BlockCacheBytes int64
	OpenFiles       int
	Compactions     int
	Syncs           int
}

// NewResources makes caches and limits. Close gives them back.
func NewResources(o ResourceOptions) *Resources {
	return &Resources{
		blocks: pebble.NewCache(o.BlockCacheBytes),
		files:  pebble.NewFileCache(runtime.GOMAXPROCS(0), o.OpenFiles),
		limit:  &limiter{max: o.Compactions},
		syncs:  make(chan struct{}, o.Syncs),
	}
}

// Users is the number of open databases.
func (r *Resources) Users() int { return int(r.users.Load()) }

// Close gives the memory back. No database may be open; the memory of abandoned ones stays.
func (r *Resources) Close() {
	if r.leaked.Load() {
		return // an offer to an abandoned database may hang
	}
	r.limit.offers.Wait()
	r.files.Unref()
	r.blocks.Unref()
}

// LimitSync runs fn when one of the process's sync slots is free.
func (r *Resources) LimitSync(fn func()) {
	r.syncs <- struct{}{}
	defer func() { <-r.syncs }()
	fn()
}

var abandoned atomic.Int64

// Abandoned counts the databases that this process left behind.
func Abandoned() int64 { return abandoned.Load() }
