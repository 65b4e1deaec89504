package embedded

import (
	"context"
	"time"
)

// commitLife is how long commits may take that nobody gave a time: until a revoke has waited for
// Config.RevokeTimeout, also for one that was under way when it came.
type commitLife struct {
	ctx context.Context
	end context.CancelFunc
}

func (h *Host) newCommitLife() *commitLife {
	ctx, end := context.WithCancel(h.life)
	return &commitLife{ctx, end}
}

// commits is the context of commits.
func (h *Host) commits() context.Context { return h.commitLife.Load().ctx }

// bound ends the commits that are under way, and the reload that follows one that has failed, RevokeTimeout from now on, unless
// done is called before. A commit that was ended is dropped like one that has failed.
func (h *Host) bound() (done func()) {
	life := h.commitLife.Load()
	timer := time.AfterFunc(h.cfg.RevokeTimeout, life.end)
	return func() {
		if !timer.Stop() {
			h.commitLife.CompareAndSwap(life, h.newCommitLife())
		}
	}
}
