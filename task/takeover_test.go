package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// changing is a group whose offsets are read again and again, with another commit each time
// as far as ids go, and a changelog that is as long as the commit says.
type changing struct {
	kafka.Admin
	r     *restoringWorker
	ids   []statestore.CommitID
	looks int
	ends  map[statestore.CommitID]int64
	specs []kafka.OffsetSpec
}

func (a *changing) now() statestore.CommitID { return a.ids[min(a.looks, len(a.ids))-1] }

func (a *changing) CommittedOffsets(context.Context, string, ...kafka.TopicPartition) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
	a.looks++
	a.r.group = map[kafka.TopicPartition]kafka.CommittedOffset{}
	a.r.world.commit(a.now(), nil, inA, inB)
	return a.r.group, nil
}

func (a *changing) ListOffsets(_ context.Context, spec kafka.OffsetSpec, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	a.specs = append(a.specs, spec)
	got := map[kafka.TopicPartition]int64{}
	for _, tp := range tps {
		if spec != kafka.Earliest {
			got[tp] = a.ends[a.now()]
		}
	}
	return got, nil
}

func (a *changing) TopicConfigs(context.Context, string) (map[string]string, error) {
	return map[string]string{"delete.retention.ms": "86400000"}, nil
}

func newTakeOver(t *testing.T, ids ...statestore.CommitID) (*restoringWorker, *changing) {
	r := newRestoring(t)
	a := &changing{r: r, ids: ids, ends: map[statestore.CommitID]int64{id(2, 4): 60, id(2, 5): 62}}
	r.w.cfg.Admin = a
	r.w.txn = &scripted{}
	r.w.tasks = []*Task{r.task}
	for _, q := range r.task.queues {
		r.w.queues[q.tp] = q
	}
	return r, a
}

// A commit of the last owner that becomes visible during the take-over is not overlooked: what
// it added to the changelog is restored before the first record (T7).
func TestTakeOverLooksAgain(t *testing.T) {
	r, a := newTakeOver(t, id(2, 4), id(2, 5))
	tp := r.task.changelog("counts")
	r.feed.fetches = append(r.feed.fetches, kafka.Fetched{TopicPartition: tp, Next: 62, Records: []kafka.Record{{Offset: 60, Key: []byte("late"), Value: []byte("3")}}})
	if err := r.w.takeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.looks != 3 || len(r.feed.fetches) != 0 {
		t.Errorf("%d looks, %d fetches left", a.looks, len(r.feed.fetches))
	}
	// Restored records tell of epoch 7; the task's own is committed before anything else.
	if got := r.task.store.CommitID(); got != id(8, 0) || r.at() != statestore.At(62) {
		t.Errorf("the store is at %v, the changelog at %v", got, r.at())
	}
	kv, err := r.task.store.KeyValue("counts")
	if err != nil {
		t.Fatal(err)
	}
	if v, _, _, err := kv.Get([]byte("late")); string(v) != "3" || err != nil {
		t.Errorf("late = %q, %v", v, err)
	}
	x := r.w.txn.(*scripted)
	if got := strings.Join(x.calls, ", "); got != "begin, offsets, commit" || len(x.offsets) != 2 {
		t.Errorf("calls %s with %v", got, x.offsets)
	}
	for _, o := range x.offsets {
		if m, err := DecodeMetadata(o.Metadata); err != nil || m.ID != id(8, 0) || o.Offset != 100 {
			t.Errorf("%v: %+v, %v", o, m, err)
		}
	}
	if r.feed.from[inA] != 100 || r.feed.from[inB] != 100 || r.task.inst == nil {
		t.Errorf("sources assigned from %v", r.feed.from)
	}
	// Right after a commit the read_committed end is short of it. The last question is about the sources.
	for _, spec := range a.specs[:len(a.specs)-1] {
		if spec != kafka.Earliest && spec != kafka.HighWatermark {
			t.Errorf("the end of a changelog was asked for as %d", spec)
		}
	}
}

// A group whose offsets never stand still has another writer.
func TestTakeOverBesideAnother(t *testing.T) {
	r, a := newTakeOver(t)
	for n := range int64(20) {
		a.ids = append(a.ids, id(2, 4+n))
		a.ends[id(2, 4+n)] = 60
	}
	err := r.w.takeOver(t.Context())
	if err == nil || errors.Is(err, ErrLost) || disposition(err) != FailTask {
		t.Errorf("it begins anew, to meet the other again and again: %v", err)
	}
	for _, words := range []string{"changed 6 times", "commit id of the last is " + a.now().String(), "group app", "stop it"} {
		if !strings.Contains(fmt.Sprint(err), words) {
			t.Errorf("%q is not in: %v", words, err)
		}
	}
	if a.looks > 10 || r.task.inst != nil {
		t.Errorf("%d looks, instance %v", a.looks, r.task.inst)
	}
}

// hanging is a group whose offsets are never stable.
type hanging struct {
	kafka.Admin
	asked chan struct{}
}

func (a hanging) CommittedOffsets(ctx context.Context, _ string, _ ...kafka.TopicPartition) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
	close(a.asked)
	<-ctx.Done()
	return nil, &kafka.Error{Class: kafka.ClassTimeout, Op: "read committed offsets", Err: ctx.Err()}
}

// A worker that is stopped does not wait for what it has begun to ask: with the transaction of a
// dead process open that may take long.
func TestStopDuringTakeOver(t *testing.T) {
	r, _ := newTakeOver(t)
	a := hanging{asked: make(chan struct{})}
	r.w.cfg.Admin = a
	res := make(chan error, 1)
	go func() { res <- r.w.untilStopped(t.Context(), r.w.takeOver) }()
	<-a.asked
	r.w.Stop()
	select {
	case err := <-res:
		if !errors.Is(err, errStopped) {
			t.Errorf("%v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it still waits")
	}
}

// What is wrong with a task is told even if it is being stopped.
func TestFailureDuringStop(t *testing.T) {
	r, _ := newTakeOver(t)
	r.w.Stop()
	failed := &Error{Err: ErrStoreAhead}
	if err := r.w.untilStopped(t.Context(), func(context.Context) error { return failed }); !errors.Is(err, failed) || errors.Is(err, errStopped) {
		t.Errorf("%v", err)
	}
}
