package embedded

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
)

// A loop may end at any moment of a rebalance: with the assignment still on its way, or told and not looked at. Close ends it
// all the same. (librdkafka may drop without an answer what it is asked then: D4.)
func TestCloseInARebalance(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	each(t, func(w *world) {
		moment := rand.New(rand.NewPCG(uint64(seed), 0))
		w.produce(20)
		for range 12 {
			l := w.start(w.config(t.TempDir(), embedded.AtLeastOnce))
			// Without a poll the assignment stays in the client's queue.
			<-time.After(time.Duration(moment.Int64N(int64(250 * time.Millisecond)))) // the random moment is the input
			if moment.IntN(3) == 0 {
				_ = l.poll(func(*embedded.Task, record) error { return nil })
			}
			w.close(l)
		}
	})
}
