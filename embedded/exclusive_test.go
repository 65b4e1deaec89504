package embedded

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// group is a transactional producer whose commits go through, get lost, or are in doubt, as a test says.
type group struct {
	kafka.Transactional
	sent, committed kafka.CommittedOffset
	applied         bool
	err             error
}

func (g *group) Init(context.Context) error { return nil }
func (g *group) Begin() error               { return nil }
func (g *group) SendOffsets(_ context.Context, _ kafka.Member, offsets []kafka.CommittedOffset) error {
	g.sent = offsets[0]
	return nil
}

func (g *group) Commit(context.Context) error {
	if g.applied {
		g.committed = g.sent
	}
	return g.err
}

// A commit in doubt that is found to be through is this one's own also when the next one has failed.
func TestExclusiveKnowsItsOwn(t *testing.T) {
	tp := kafka.TopicPartition{Topic: "in", Partition: 1}
	doubt := &kafka.Error{Class: kafka.ClassInDoubt, Op: "commit"}
	aborted := &kafka.Error{Class: kafka.ClassAbortable, Op: "commit"}
	g := &group{}
	x := &exclusive{Transactional: g, id: "a-assigned-1", timeout: time.Hour, committed: func(context.Context, ...kafka.TopicPartition) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
		return map[kafka.TopicPartition]kafka.CommittedOffset{tp: g.committed}, nil
	}}
	for i, step := range []struct {
		applied bool
		err     error
	}{{true, nil}, {true, doubt}, {false, aborted}, {false, aborted}, {false, doubt}, {true, doubt}, {true, nil}, {false, aborted}} {
		g.applied, g.err = step.applied, step.err
		offsets := []kafka.CommittedOffset{{TopicPartition: tp, Offset: int64(10 * i)}}
		err := errors.Join(x.Begin(), x.SendOffsets(t.Context(), kafka.Member{}, offsets))
		if cerr := x.Commit(t.Context()); err != nil || !errors.Is(cerr, step.err) {
			t.Fatalf("step %d: %v, %v", i, err, cerr)
		}
		if err := x.Init(t.Context()); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	g.committed.Offset = 1000
	if err := x.Init(t.Context()); !errors.Is(err, ErrTaken) {
		t.Errorf("another has committed: %v", err)
	}
}
