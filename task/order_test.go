package task

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// started is a task that processes records; seen are theirs, as topic and timestamp.
func (w *world) started(seen *[]string) *Task {
	w.t.Helper()
	t := w.task
	t.cfg.Limits.Defaults()
	t.cfg.ExtractTimestamp = func(r *kafka.Record, _ time.Time) (int64, error) {
		*seen = append(*seen, fmt.Sprint(r.Topic, r.Timestamp))
		return r.Timestamp, nil
	}
	env := processor.Env{TaskID: t.id, Stores: t.store, Now: time.Now, ExtractTimestamp: t.cfg.ExtractTimestamp,
		Send: func(processor.Output) error { return nil }, Commit: func() {}}
	var err error
	if t.inst, err = t.sub.NewInstance(env, time.Time{}); err != nil {
		w.t.Fatal(err)
	}
	return t
}

// offer gives records of one topic to the task, with these timestamps.
func (w *world) offer(tp kafka.TopicPartition, times ...int64) {
	q := w.task.queue(tp)
	f := &kafka.Fetched{TopicPartition: tp}
	for i, at := range times {
		f.Records = append(f.Records, kafka.Record{Topic: tp.Topic, Offset: q.fetched + int64(i), Timestamp: at, Value: []byte("v")})
	}
	f.Next = q.fetched + int64(len(times))
	q.offer(f)
}

// Records of several partitions come in the order of their timestamps, each partition's own in
// the order of its offsets; an empty partition is waited for as long as the limit says.
func TestOrderOfPartitions(t *testing.T) {
	w := newWorld(t)
	var seen []string
	task := w.started(&seen)
	task.cfg.Limits.MaxTaskIdle = 100 * time.Millisecond
	now := time.UnixMilli(1_000_000)
	run := func(wait time.Duration, want int) {
		t.Helper()
		now = now.Add(wait)
		if n, err := task.process(turnRecords, now); n != want || err != nil {
			t.Fatalf("%d records, %v; want %d", n, err, want)
		}
	}
	w.offer(inA, 5, 2, 7)
	run(0, 0) // b has none
	w.offer(inB, 3, 6)
	run(50*time.Millisecond, 4) // b 3, a 5, a 2, b 6; then b is empty again
	run(0, 0)
	run(99*time.Millisecond, 0)
	run(time.Millisecond, 1)
	w.offer(inB, 1)
	run(0, 0) // a is empty now
	run(100*time.Millisecond, 1)
	// What is read ahead to be compared is seen before it is processed.
	if got, want := strings.Join(slices.Compact(seen), " "), "a5 b3 b6 a2 a7 b1"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	if task.streamTime != 7 || task.queue(inA).partitionTime != 7 || task.queue(inB).partitionTime != 6 {
		t.Errorf("stream time %d, partition times %d and %d", task.streamTime, task.queue(inA).partitionTime, task.queue(inB).partitionTime)
	}
	task.cfg.Limits.MaxTaskIdle = 0
	w.offer(inA, 8)
	run(0, 1)
}

// Stream time goes on where the group's last commit, or the store, stood.
func TestStreamTimeAfterTakeOver(t *testing.T) {
	for _, store := range []int64{-1, 3, 9} {
		w := newWorld(t)
		p := statestore.Progress{ID: id(2, 3), StreamTime: store}
		if err := w.task.store.Complete(p, nil); err != nil {
			t.Fatal(err)
		}
		w.commit(id(2, 3), nil, inA, inB) // stream time 5, partition time 4
		if w.compare().position(nil); w.task.streamTime != max(store, 5) {
			t.Errorf("store at %d: stream time %d", store, w.task.streamTime)
		}
	}
}

// switches is a consumer that notes what is paused.
type switches struct {
	feed
	calls []string
}

func (s *switches) Pause(tps ...kafka.TopicPartition) {
	s.calls = append(s.calls, fmt.Sprint("pause ", tps))
}
func (s *switches) Resume(tps ...kafka.TopicPartition) {
	s.calls = append(s.calls, fmt.Sprint("resume ", tps))
}

// A partition with too many waiting records is paused, and resumed at half of them.
func TestThrottle(t *testing.T) {
	w := newWorld(t)
	s := &switches{}
	worker := NewWorker(*w.task.cfg, nil)
	worker.consumer, worker.cfg.Limits.BufferedRecords = s, 4
	q := w.task.queue(inA)
	step := func(want string) {
		t.Helper()
		s.calls = nil
		worker.throttle(q)
		if got := strings.Join(s.calls, ","); got != want {
			t.Errorf("with %d records: %q, want %q", q.len(), got, want)
		}
	}
	w.offer(inA, 1, 2, 3)
	step("")
	w.offer(inA, 4)
	step("pause [a-0]")
	step("")
	q.pop(1)
	step("")
	q.pop(2)
	step("resume [a-0]")
	step("")
}

// A backlog is merged by timestamp whatever comes first: what is known to be at the broker is
// waited for, also without MaxTaskIdle. Offsets without records (markers) end the wait too.
func TestOrderOfABacklog(t *testing.T) {
	w := newWorld(t)
	var seen []string
	task := w.started(&seen)
	now := time.UnixMilli(1_000_000)
	run := func(want int) {
		t.Helper()
		if n, err := task.process(turnRecords, now); n != want || err != nil {
			t.Fatalf("%d records, %v; want %d", n, err, want)
		}
	}
	task.queue(inA).known, task.queue(inB).known = 2, 3
	w.offer(inA, 5, 7)
	run(0)
	w.offer(inB, 3)
	run(1) // b 3; then b is empty again, and two offsets are to come
	w.offer(inB, 6)
	run(2) // a 5, b 6
	task.queue(inB).offer(&kafka.Fetched{TopicPartition: inB, Next: 3})
	run(1)
	w.offer(inB, 1) // behind what was known nothing is waited for
	run(1)
	if got, want := strings.Join(slices.Compact(seen), " "), "a5 b3 b6 a7 b1"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}
