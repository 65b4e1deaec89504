package task

import (
	"context"
	"time"
)

// Writing a changelog again takes as long as the store is large. The goroutine beside the loop that has the
// task reads the store; the loop, which has the transactional producer, writes the pieces between its own commits, in the
// place of one.

// seedPoll is how long a poll waits while pieces come.
const seedPoll = 5 * time.Millisecond

// seed writes the changelogs of one task after the other, and hands each on when it is done.
func (b *beside) seed(ctx context.Context, plans []*plan) error {
	b.seeds.Store(len(plans) > 0)
	defer b.seeds.Store(false)
	for _, p := range plans {
		if err := b.w.seedStores(ctx, p, b.offer); err != nil {
			return err
		}
		b.hand(p)
	}
	return nil
}

// offer has the loop write a piece. What the failure of one is for the loop the loop sees to: unless that ends
// the take-over, the piece is written again. Twice in the log it does no harm.
func (b *beside) offer(ctx context.Context, p *seedPiece) error {
	for {
		select {
		case b.pieces <- p:
		case <-ctx.Done(): // a stop ends it too, see run
			return ctx.Err()
		}
		select {
		case written := <-p.written:
			if written {
				return nil
			}
		case <-ctx.Done(): // the piece is not touched any more
			return ctx.Err()
		}
	}
}

// writeSeeds begins to write a piece that waits, if any does and nothing is being committed, and tells whether it did. It is called
// when no commit is due, and once between two commits: neither waits for the other for longer than one of them takes.
func (w *Worker) writeSeeds(ctx context.Context) bool {
	if w.sealed != nil || time.Now().Before(w.seedAfter) {
		return false
	}
	for _, b := range w.besides {
		select {
		case p := <-b.pieces:
			iv := newInterval()
			iv.seed = p
			w.sealed, w.seedTurn = iv, false
			go func() { w.results <- w.commit(ctx, iv) }() // ended by collect or await
			return true
		default:
		}
	}
	return false
}

// pieceEnded answers a piece. After one that has failed there is none for a second, then two, up to a minute: a changelog that
// cannot be written must not take every interval of the other tasks with it, since what they do while a piece fails is dropped.
func (w *Worker) pieceEnded(p *seedPiece, err error) {
	p.written <- err == nil
	if w.seedPause = min(max(2*w.seedPause, time.Second), time.Minute); err == nil {
		w.seedPause = 0
	}
	w.seedAfter = time.Now().Add(w.seedPause)
}

// seedsBeside tells whether pieces come.
func (w *Worker) seedsBeside() bool {
	for _, b := range w.besides {
		if b.seeds.Load() {
			return true
		}
	}
	return false
}
