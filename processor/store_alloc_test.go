package processor_test

import (
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// A typed window store adds no allocation to those of the bytes below, once its buffers are there.
func TestWindowStoreAllocations(t *testing.T) {
	numbers := processor.TimestampedWindow("numbers", serde.Int64, serde.Int64, time.Second, time.Hour)
	start := time.UnixMilli(1_000_000)
	_, err := inStores(t, func(ctx strCtx) error {
		s := numbers.In(ctx)
		key := int64(0)
		work := func() {
			key = (key + 1) % 100
			n, _, _, err := s.Get(key, start)
			if err == nil {
				err = s.Put(key, n+1, start, start)
			}
			if err != nil {
				t.Error(err)
			}
		}
		for range 1000 {
			work()
		}
		if allocs := testing.AllocsPerRun(1000, work); allocs > 0 {
			t.Errorf("%v allocations for a get and a put", allocs)
		}
		return nil
	}, numbers)
	if err != nil {
		t.Error(err)
	}
}
