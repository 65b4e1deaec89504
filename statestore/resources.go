package statestore

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/tidemark-streams/tidemark/statestore/internal/pebbledb"
)

// ResourceOptions sizes [Resources]. The zero value is good for a process with some
// dozens of task stores.
type ResourceOptions struct {
	// BlockCacheBytes is for the cache of database blocks, outside the Go heap when cgo is
	// enabled; what memtables do not use of MemTableBytes is for blocks too. 0 = 64 MiB.
	BlockCacheBytes int64
	// OpenFiles is how many table files are kept open. 0 = 1000, but at most a quarter of the
	// descriptors that the process may have. (Each open task store takes 8 more; see
	// [Resources.CheckFileDescriptors].)
	OpenFiles int
	// Compactions is how many run at a time. 0 = half of GOMAXPROCS, at least 1.
	Compactions int
	// Syncs is how many background syncs run at a time. 0 = 4.
	Syncs int
	// CacheBytes is what all task stores together may take for clean values that they have read
	// or written, kept across commits, in the Go heap. It is taken only as needed. 0 = 256 MiB;
	// negative = as little as possible.
	CacheBytes int64
	// MemTableBytes is about what the memtables of all task stores together may hold, outside the
	// Go heap when cgo is enabled: beyond it the fullest are flushed early, and the more task
	// stores there are, the smaller is the memtable of a new one (see [Options.MemTableBytes]).
	// 0 = 256 MiB.
	MemTableBytes int64
	// LargeRestores is how many restores of large stores go on at a time ([TaskStore.RestoreRuns]), beside as
	// many that write their last run; others wait, or are done record by record. 0 = 2.
	LargeRestores int
	// RestoreRunBytes is how much of keys and values such a restore collects before it writes. Each takes, in the Go
	// heap, four to six times that. 0 = 32 MiB.
	RestoreRunBytes int
}

// SmallContainer is for a process with 512 MB for everything, and some dozens of task stores.
func SmallContainer() ResourceOptions {
	return ResourceOptions{BlockCacheBytes: 32 << 20, OpenFiles: 256, Compactions: 1, Syncs: 2, CacheBytes: 64 << 20, MemTableBytes: 64 << 20,
		LargeRestores: 1, RestoreRunBytes: 8 << 20}
}

// BigHost is for a process that has a machine of 16 GB or more, with many cores, to itself.
func BigHost() ResourceOptions {
	return ResourceOptions{BlockCacheBytes: 1 << 30, OpenFiles: 10_000, Compactions: runtime.GOMAXPROCS(0), Syncs: 16, CacheBytes: 4 << 30, MemTableBytes: 1 << 30}
}

// Validate reports every problem at once.
func (o ResourceOptions) Validate() error {
	if o.BlockCacheBytes < 0 || o.OpenFiles < 0 || o.Compactions < 0 || o.Syncs < 0 || o.MemTableBytes < 0 || o.LargeRestores < 0 || o.RestoreRunBytes < 0 {
		return fmt.Errorf("task store resources: a size is negative: %+v", o)
	}
	return nil
}

// Resources is what the task stores of a process share: block cache, file cache, the budget of
// their caches and memtables, and the limits on compactions and background syncs. It is safe
// for concurrent use.
type Resources struct {
	r     *pebbledb.Resources // nil: for a task store in memory alone
	cache cacheBudget
	runs  runSlots
	// read has the directories on the real disk that a [View] opened, by path: an Open that follows need not look at
	// the format again before it writes.
	read sync.Map
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
	def(&o.OpenFiles, defaultOpenFiles())
	def(&o.Compactions, max(1, runtime.GOMAXPROCS(0)/2))
	def(&o.Syncs, 4)
	if o.CacheBytes == 0 {
		o.CacheBytes = 256 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 256 << 20
	}
	r := &Resources{r: pebbledb.NewResources(pebbledb.ResourceOptions{BlockCacheBytes: o.BlockCacheBytes, OpenFiles: o.OpenFiles,
		Compactions: o.Compactions, Syncs: o.Syncs, MemTableBytes: o.MemTableBytes})}
	r.cache.total = max(o.CacheBytes, 0)
	r.runs.sized(o.LargeRestores, o.RestoreRunBytes)
	return r, nil
}

// SetCacheBytes changes the budget of the caches while task stores are open; less than 0
// counts as 0. Each owner goes by its new part soon (see [TaskStore.Trim]).
func (r *Resources) SetCacheBytes(n int64) { r.cache.resize(n) }

// ResourceStats tells how the shared resources are used.
type ResourceStats struct {
	// TaskStores is how many are open, those in memory included.
	TaskStores int
	// Cache sums up the task stores' caches, counts of closed ones included.
	Cache CacheStats
	// BlockCacheBytes is what the cache of database blocks holds; hits and misses count the
	// looks for a block.
	BlockCacheBytes, BlockCacheHits, BlockCacheMisses int64
	// MemTableBytes is about what is in the memtables.
	MemTableBytes int64
	// Abandoned counts the databases that failed and could not be closed, in the whole process.
	Abandoned int64
}

// Stats tells how the resources are used.
func (r *Resources) Stats() ResourceStats {
	x := ResourceStats{Abandoned: Abandoned()}
	x.Cache, x.TaskStores = r.cache.stats()
	if r.r != nil {
		x.BlockCacheBytes, x.BlockCacheHits, x.BlockCacheMisses = r.r.BlockStats()
		x.MemTableBytes = r.r.MemTableBytes()
	}
	return x
}

// Close frees the caches. It fails while a task store is open.
func (r *Resources) Close() error {
	if r.r == nil {
		return nil
	}
	if n := r.r.Users(); n > 0 {
		return fmt.Errorf("close task store resources: %d task stores are open", n)
	}
	r.r.Close()
	return nil
}

// privateResources is for one task store alone.
func privateResources(o Options) *Resources {
	r := &Resources{}
	r.runs.sized(0, 0)
	if r.cache.total = max(int64(o.CacheBytes), 0); o.CacheBytes == 0 {
		r.cache.total = privateCacheBytes
	}
	if o.Engine == Pebble {
		r.r = pebbledb.NewResources(pebbledb.ResourceOptions{BlockCacheBytes: 8 << 20, OpenFiles: 100, Compactions: 1, Syncs: 1, MemTableBytes: 256 << 20})
	}
	return r
}

const privateCacheBytes = 32 << 20

// readingResources is for one task store that is only read.
func readingResources() *Resources {
	return &Resources{r: pebbledb.NewResources(pebbledb.ResourceOptions{BlockCacheBytes: 1 << 20, OpenFiles: 16, Compactions: 1, Syncs: 1, MemTableBytes: 1 << 20})}
}

// memTableSize is the configured one, or what suits the number of open task stores.
func (s *TaskStore) memTableSize() uint64 {
	if s.o.MemTableBytes > 0 {
		return uint64(s.o.MemTableBytes)
	}
	const least = 256 << 10
	each := s.resources.r.MemTableBudget() / int64(2*(s.resources.r.Users()+1))
	return uint64(min(max(each, least), defaultMemTableBytes))
}
