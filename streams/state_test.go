package streams_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/streams"
)

// An application that fails while it takes its tasks over was never running: whoever waits for that, and a choice of the
// operator that is forgotten when all tasks run, must not be misled.
func TestFailedTakeOverNeverRuns(t *testing.T) {
	b := testbroker.Kfake(t)
	for _, workers := range []int{1, 2} {
		e := newEnv(t, b, clients[0])
		refuse := &atomic.Int32{}
		refuse.Store(1 << 20)
		var s states
		cfg := e.config()
		cfg.Workers, cfg.StateListener = workers, s.listen
		cfg.Client = refusing{e.client, kafka.ClassUnauthorized, refuse}
		e.start(e.wordCount(), cfg).fails("refused")
		s.mu.Lock()
		if slices.Contains(s.seen, streams.Restoring.String()+">"+streams.Running.String()) {
			t.Errorf("%d workers: %q", workers, s.seen)
		}
		if !slices.Contains(s.seen, streams.Restoring.String()+">"+streams.Failed.String()) {
			t.Errorf("%d workers: it did not fail in the take-over: %q", workers, s.seen)
		}
		s.mu.Unlock()
	}
}
