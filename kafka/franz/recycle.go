package franz

import (
	"math/bits"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recycles tells whether a consumer may give fetched records back. With a pool of the user's for
// decompressed bytes it must not: the bytes would go with them, while keys and values are in use.
func recycles(cl *kgo.Client) bool {
	pools, _ := cl.OptValue(kgo.WithPools).([]kgo.Pool)
	for _, p := range pools {
		if _, bytes := p.(kgo.PoolDecompressBytes); bytes {
			return false
		}
	}
	return true
}

// giveBack is called when a fetched record was copied.
func (c *consumer) giveBack(r *kgo.Record) {
	if c.recycles {
		r.Recycle()
	}
}

// recordPool lets franz-go decode fetches into records that were decoded into before: a
// consumer copies what it needs of them in Poll, and gives them back there. They are a third of
// the bytes that consuming allocates, and nearly all of the pointers that the garbage collector
// looks at. The bytes of keys and values are not theirs, and are never used again.
//
// Only the pool of whole batches is franz-go's own idea of reuse (kgo.WithPools); the buffer of a
// response has none.
type recordPool struct{ free sync.Pool }

// GetRecords gives a slice with capacity for n records. The capacities are powers of two, so that
// batches of about the same size can use each other's.
func (p *recordPool) GetRecords(n int) []kgo.Record {
	if s, ok := p.free.Get().(*[]kgo.Record); ok && cap(*s) >= n {
		return *s
	}
	return make([]kgo.Record, 1<<bits.Len(uint(max(n, 1)-1)))
}

// PutRecords takes a slice back, whose records franz-go has cleared.
func (p *recordPool) PutRecords(s []kgo.Record) { p.free.Put(&s) }
