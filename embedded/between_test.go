package embedded

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/task"
)

// A revoke waits for a step of a take-over no longer than for a commit; the take-over of other partitions is tried again.
func TestRevokeEndsAStepOfATakeOver(t *testing.T) {
	h := &Host{cfg: Config{RevokeTimeout: 100 * time.Millisecond}, log: slog.New(slog.DiscardHandler), mu: newTurn(), parts: map[kafka.TopicPartition]*part{},
		halfway: map[*task.Hosted]bool{}, workers: map[int32]*task.Hosted{}, batches: map[*batch]bool{}}
	h.life, h.end = context.WithCancel(context.Background())
	h.open, h.ending = context.WithCancel(h.life)
	h.well, h.unwell = context.WithCancel(h.life)
	defer h.end()
	defer h.ending()
	defer h.unwell()
	h.commitLife.Store(h.newCommitLife())
	tp := kafka.TopicPartition{Topic: "in", Partition: 1}
	b := &batch{tps: []kafka.TopicPartition{tp}, done: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(h.life)
	defer b.cancel()
	h.parts[tp] = &part{}
	inside, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- h.between(b, new(task.Hosted), func(ctx context.Context) error { // a transaction that waits for its broker
			close(inside)
			<-ctx.Done()
			h.end() // so that nothing is reloaded
			return ctx.Err()
		})
	}()
	<-inside
	done := h.bound() // what a revoke begins with
	defer done()
	select {
	case err := <-ended:
		if !errors.Is(err, errCancelled) || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the revoke waits for the step")
	}
}
