package task

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// feed is a consumer that gives one fetch with each poll; after is called behind it.
type feed struct {
	kafka.Consumer
	t        *testing.T
	from     map[kafka.TopicPartition]int64
	assigned bool
	fetches  []kafka.Fetched
	after    func(left int)
}

func (f *feed) Assign(_ context.Context, from map[kafka.TopicPartition]int64) error {
	f.from, f.assigned = from, true
	return nil
}

func (f *feed) Unassign(...kafka.TopicPartition) error {
	f.assigned = false
	return nil
}

func (f *feed) Poll(_ context.Context, into *kafka.Poll) error {
	into.Reset()
	if len(f.fetches) == 0 {
		f.t.Error("polled behind the end")
		return errors.New("nothing left")
	}
	into.Partitions = append(into.Partitions, f.fetches[0])
	f.fetches = f.fetches[1:]
	if f.after != nil {
		f.after(len(f.fetches))
	}
	return nil
}

// restoring is a worker with a task whose store is at 50, and a changelog that ends at 60.
type restoringWorker struct {
	*world
	w      *Worker
	feed   *feed
	plan   *plan
	member kafka.Member
}

func newRestoring(t *testing.T) *restoringWorker {
	r := &restoringWorker{world: newWorld(t), feed: &feed{t: t}, member: kafka.Member{Group: "app", ID: "me"}}
	r.apply(id(2, 3))
	r.world.commit(id(2, 4), nil, inA, inB)
	cfg := *r.task.cfg
	cfg.Started, cfg.Logger = r.member, slog.New(slog.DiscardHandler)
	cfg.Member = func() kafka.Member { return r.member }
	r.w = NewWorker(cfg, nil)
	r.w.consumer, r.task.cfg = r.feed, &r.w.cfg
	r.plan = r.compare()
	tp := r.task.changelog("counts")
	if err := r.plan.bound(map[kafka.TopicPartition]int64{}, map[kafka.TopicPartition]int64{tp: 60}); err != nil {
		t.Fatal(err)
	}
	header := func(epoch int64) []kafka.Header {
		return []kafka.Header{{Key: "other", Value: []byte{9}}, {Key: HeaderKey, Value: ChangeHeader{Kind: ChangeCommit, ID: id(epoch, 1)}.Append(nil)}}
	}
	r.feed.fetches = []kafka.Fetched{
		{TopicPartition: tp, Next: 52, Records: []kafka.Record{{Offset: 50, Key: []byte("a"), Value: []byte("1"), Headers: header(2)}, {Offset: 51, Key: []byte("b"), Value: []byte("2"), Headers: header(7)}}},
		{TopicPartition: tp, Next: 59, Records: []kafka.Record{{Offset: 58, Key: []byte("a"), Headers: header(3)}}},
		{TopicPartition: tp, Next: 60}, // a marker
	}
	return r
}

func (r *restoringWorker) restore() (err error) {
	x := newRestoration(r.w)
	defer func() { err = errors.Join(err, x.end()) }()
	if err := x.add(r.plan); err != nil {
		return err
	}
	for !x.over() {
		if err := x.step(r.t.Context()); err != nil {
			return err
		}
	}
	return nil
}

func (r *restoringWorker) at() statestore.Offset { return r.task.store.CommittedOffsets()["counts"] }

// A restore is over when the position reaches the end: the last offsets may hold no record.
func TestRestore(t *testing.T) {
	r := newRestoring(t)
	if err := r.restore(); err != nil {
		t.Fatal(err)
	}
	if r.feed.from[r.plan.stores[0].tp] != 50 || r.feed.assigned || len(r.feed.fetches) != 0 {
		t.Errorf("from %v, assigned %v, %d fetches left", r.feed.from, r.feed.assigned, len(r.feed.fetches))
	}
	if got := r.at(); got != statestore.At(60) {
		t.Errorf("the store is at %v", got)
	}
	if s := r.plan.stores[0].status; s.Next != 60 || s.Records != 3 || s.Took == 0 {
		t.Errorf("status %+v", s)
	}
	if complete, err := r.task.complete(); complete || err != nil {
		t.Errorf("complete before Complete: %v, %v", complete, err)
	}
	kv, err := r.task.store.KeyValue("counts")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok, err := kv.Get([]byte("a")); ok || err != nil {
		t.Errorf("a deleted key: %v, %v", ok, err)
	}
	if v, _, _, err := kv.Get([]byte("b")); string(v) != "2" || err != nil {
		t.Errorf("b = %q, %v", v, err)
	}
	// The next writer epoch is above every one that is in the changelog.
	if r.plan.position(nil); r.task.epoch != 8 {
		t.Errorf("epoch %d", r.task.epoch)
	}
}

// A restore that ends early keeps what it has, is not complete, and gives its partition back.
func TestRestoreEndsEarly(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(r *restoringWorker)
		want error
	}{
		"lost":    {func(r *restoringWorker) { r.member.ID = "me again" }, ErrLost},
		"stopped": {func(r *restoringWorker) { r.w.Stop() }, errStopped},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRestoring(t)
			r.feed.after = func(left int) {
				if left == 2 {
					c.end(r)
				}
			}
			if err := r.restore(); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if got := r.at(); got != statestore.At(52) || r.feed.assigned || len(r.feed.fetches) != 2 {
				t.Errorf("the store is at %v, assigned %v, %d fetches left", got, r.feed.assigned, len(r.feed.fetches))
			}
		})
	}
}

// A store that is to begin anew is empty before its first record.
func TestRestoreClears(t *testing.T) {
	r := newRestoring(t)
	if err := r.task.store.Restore("counts", []statestore.RestoreRecord{{Key: []byte("old"), Value: []byte("x")}}, 50); err != nil {
		t.Fatal(err)
	}
	s := r.plan.stores[0]
	s.clear, s.why = true, "the test says so"
	if err := r.restore(); err != nil {
		t.Fatal(err)
	}
	kv, err := r.task.store.KeyValue("counts")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok, err := kv.Get([]byte("old")); ok || err != nil {
		t.Errorf("a key of before: %v, %v", ok, err)
	}
}
