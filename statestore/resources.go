package statestore

import (
	"fmt"
	"runtime"

	"github.com/tidemark-streams/tidemark/statestore/internal/pebbledb"
)

// ResourceOptions sizes [Resources]. The zero value is good for a process with some
// dozens of task stores.
type ResourceOptions struct {
	// BlockCacheBytes is the cache of database blocks, outside the Go heap when cgo is
	// enabled. 0 = 64 MiB.
	BlockCacheBytes int64
	// OpenFiles is how many table files are kept open. 0 = 1000. (Each open task store
	// takes about 8 descriptors more.)
	OpenFiles int
	// Compactions is how many run at a time. 0 = half of GOMAXPROCS, at least 1.
	Compactions int
	// Syncs is how many background syncs run at a time. 0 = 4.
	Syncs int
}

// Validate reports every problem at once.
func (o ResourceOptions) Validate() error {
	if o.BlockCacheBytes < 0 || o.OpenFiles < 0 || o.Compactions < 0 || o.Syncs < 0 {
		return fmt.Errorf("task store resources: a size is negative: %+v", o)
	}
	return nil
}

// Resources is what the task stores of a process share: block cache, file cache, and the
// limits on compactions and background syncs. It is safe for concurrent use.
type Resources struct {
	r *pebbledb.Resources
}

// NewResources makes the caches and limits. Close it after the last task store.
func NewResources(o ResourceOptions) (*Resources, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	if o.BlockCacheBytes == 0 {
		o.BlockCacheBytes = 64 << 20
	}
	def(&o.OpenFiles, 1000)
	def(&o.Compactions, max(1, runtime.GOMAXPROCS(0)/2))
	def(&o.Syncs, 4)
	return &Resources{pebbledb.NewResources(pebbledb.ResourceOptions(o))}, nil
}

// Close frees the caches. It fails while a task store is open.
func (r *Resources) Close() error {
	if n := r.r.Users(); n > 0 {
		return fmt.Errorf("close task store resources: %d task stores are open", n)
	}
	r.r.Close()
	return nil
}

// privateResources is for one task store alone.
func privateResources() *Resources {
	return &Resources{pebbledb.NewResources(pebbledb.ResourceOptions{BlockCacheBytes: 8 << 20, OpenFiles: 100, Compactions: 1, Syncs: 1})}
}
