package offsetcache

import (
	"context"
	"runtime"

	"github.com/tidemark-streams/tidemark/internal/fdlimit"
	"golang.org/x/sync/semaphore"
)

const defaultReplayBytes = 256 << 20

// budget bounds the logs that are replayed at a time. One that is larger than all of it has
// to wait until it is alone.
type budget struct {
	size int64
	sem  *semaphore.Weighted
}

func newBudget(size int64) *budget {
	if size <= 0 {
		size = defaultReplayBytes
	}
	return &budget{size: size, sem: semaphore.NewWeighted(size)}
}

func (b *budget) acquire(ctx context.Context, bytes int64) (taken int64, err error) {
	taken = max(1, min(bytes, b.size))
	if err := b.sem.Acquire(ctx, taken); err != nil {
		return 0, context.Cause(ctx)
	}
	return taken, nil
}

func (b *budget) release(taken int64) {
	if taken > 0 {
		b.sem.Release(taken)
	}
}

// descriptorsEach is how many file descriptors a directory takes while it is open for
// reading: lock, markers, manifest, options, a log or table.
const descriptorsEach = 8

// parallelism is how many directories are open at a time.
func parallelism(wanted, directories int) int {
	if wanted <= 0 {
		wanted = 4 * runtime.GOMAXPROCS(0)
	}
	if limit, known := fdlimit.Get(); known {
		wanted = min(wanted, int(min(limit, 1<<30))/2/descriptorsEach) // the other half is for everybody else
	}
	return max(1, min(wanted, directories))
}
