package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
)

// Task is what the function given to Process works with: the state of the message's partition. It is
// valid in that function, on its goroutine, and not afterwards.
type Task struct {
	host   *Host
	ctx    processor.Context[[]byte, []byte]
	at     time.Time // timestamp of the record in process
	now    bool      // it is being processed; not looked at in debug mode
	strict *strict   // in debug mode
}

// Stores gives the stores that may be used here. It is for handles: seen.In(t).
func (t *Task) Stores() *processor.Stores {
	if err := t.check(); err != nil {
		return broken(err)
	}
	if t.strict != nil {
		return t.strict.stores(t.ctx.Stores())
	}
	return t.ctx.Stores()
}

// check finds a use outside the function. Without debug mode another goroutine is not noticed.
func (t *Task) check() error {
	if t.strict != nil {
		return t.strict.check(t.strict.call.Load())
	}
	if !t.now {
		return errReturned
	}
	return nil
}

// broken gives stores whose every use says why it is wrong.
func broken(err error) *processor.Stores {
	s, _ := processor.NewStores("", nil) // no store, so no error
	return s.Guarded(func() error { return err })
}

// Partition is the task's number, which is that of its partitions.
func (t *Task) Partition() int32 { return t.ctx.TaskID().Partition }

// StreamTime is the largest record timestamp that the task has seen.
func (t *Task) StreamTime() time.Time { return t.ctx.StreamTime() }

// Replaying tells that the message was processed before, and comes again only to bring stores without a changelog
// (Unlogged) up to date: what the function writes to other stores and sends is dropped, and BeforeCommit does
// nothing. Leave out other effects, such as writes with a producer of your own.
func (t *Task) Replaying() bool { return t.ctx.Replaying() }

// Commit asks for a commit behind this message, before the interval is over. It does not wait:
// the host's Commit does.
func (t *Task) Commit() {
	if err := t.check(); err != nil { // its partition may be gone
		t.host.log.Error("a commit that was asked for is left out", "task", t.ctx.TaskID(), "error", err)
		return
	}
	t.ctx.Commit()
}

// Send writes a record to one of Config.Outputs, with the timestamp of the message in process: under
// ExactlyOnce in the commit's transaction, under AtLeastOnce at once, and acknowledged before the
// commit. The partition is chosen by the key as Kafka's Java client does. A nil key or value is null. The slices are copied.
func (t *Task) Send(topic string, key, value []byte, headers ...kafka.Header) error {
	if err := t.check(); err != nil {
		return fmt.Errorf("send to %s: %w", topic, err)
	}
	err := t.host.worker(t.Partition()).Send(t.ctx.TaskID(), processor.Output{Topic: topic, Key: key, Value: value, Timestamp: t.at, Headers: headers})
	if err != nil {
		return fmt.Errorf("send: %w: name it in Config.Outputs", err)
	}
	return nil
}

// BeforeCommit has f called before the offset behind this message is committed: for outputs that your own
// producer writes. f must return only when they are acknowledged; its error drops the interval, whose messages
// come again. It runs on a goroutine of the host, beside the loop, and must not call the host.
// What such a producer writes is at-least-once in both guarantees.
func (t *Task) BeforeCommit(f func(ctx context.Context) error) {
	if err := t.check(); err != nil { // its partition may be gone
		t.host.log.Error("what was to be done before a commit is left out", "task", t.ctx.TaskID(), "error", err)
		return
	}
	if t.Replaying() {
		return
	}
	t.host.worker(t.Partition()).BeforeCommit(f)
}
