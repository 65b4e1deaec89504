package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// scripted is a transactional producer that notes its calls, and fails the one that it is told to.
type scripted struct {
	kafka.Transactional
	calls    []string
	fail     string
	with     error
	unbound  []string // calls that may wait for a broker for ever
	member   kafka.Member
	offsets  []kafka.CommittedOffset
	produced []kafka.Record
}

func (x *scripted) call(ctx context.Context, name string) error {
	x.calls = append(x.calls, name)
	if _, ok := ctx.Deadline(); !ok {
		x.unbound = append(x.unbound, name)
	}
	if name == x.fail {
		return x.with
	}
	return nil
}

func (x *scripted) Begin() error {
	x.calls = append(x.calls, "begin")
	return nil
}

func (x *scripted) Send(_ context.Context, records []kafka.Record, report func(kafka.Delivery)) error {
	x.calls = append(x.calls, "send "+records[0].Topic)
	x.produced = append(x.produced, records...)
	var next []kafka.PartitionOffset
	for i, r := range records {
		next = append(next, kafka.PartitionOffset{TopicPartition: r.TopicPartition(), Offset: int64(1000 + i + 1)})
	}
	report(kafka.Delivery{Next: next})
	return nil
}

func (x *scripted) SendOffsets(ctx context.Context, m kafka.Member, offsets []kafka.CommittedOffset) error {
	x.member, x.offsets = m, offsets
	return x.call(ctx, "offsets")
}
func (x *scripted) Commit(ctx context.Context) error { return x.call(ctx, "commit") }
func (x *scripted) Abort(ctx context.Context) error  { return x.call(ctx, "abort") }

// The steps of a commit, in their order, each bounded: with a broker that is gone, a worker that
// is stopped must come to an end.
func TestCommitSteps(t *testing.T) {
	d := newDoubtful(t)
	x := &scripted{}
	d.w.txn = x
	d.w.box.add("out", 0, []byte("k"), []byte("v"), time.UnixMilli(1), nil)
	d.iv.held = d.w.box.take()
	if res := d.w.commit(t.Context(), d.iv); res.err != nil || !res.transacted {
		t.Fatalf("%+v", res)
	}
	if got, want := strings.Join(x.calls, ", "), "begin, send out, send app-counts-changelog, offsets, commit"; got != want {
		t.Errorf("calls %s, want %s", got, want)
	}
	if len(x.unbound) > 0 {
		t.Errorf("without a bound: %v", x.unbound)
	}
	if len(x.offsets) != len(d.task.queues) || !x.member.Same(d.member) {
		t.Errorf("offsets %+v of %+v", x.offsets, x.member)
	}
	if got := d.task.store.CommitID(); got != id(2, 1) {
		t.Errorf("the store is at %v", got)
	}
	if got, _ := d.task.store.CommittedOffsets()["counts"].Next(); got != 1001 {
		t.Errorf("changelog offset %d", got)
	}
}

// Nothing reaches the store of a commit that fails at any step; the transaction is aborted
// where that is safe.
func TestCommitFails(t *testing.T) {
	for _, step := range []string{"offsets", "commit"} {
		for class, aborts := range map[kafka.ErrorClass]bool{kafka.ClassAbortable: true, kafka.ClassUnknownMember: true, kafka.ClassTimeout: true,
			kafka.ClassInDoubt: false, kafka.ClassFenced: false} {
			t.Run(fmt.Sprint(step, " ", class), func(t *testing.T) {
				d := newDoubtful(t)
				x := &scripted{fail: step, with: &kafka.Error{Class: class, Op: step}}
				d.w.txn = x
				res := d.w.commit(t.Context(), d.iv)
				if !kafka.IsClass(res.err, class) || res.transacted {
					t.Fatalf("%+v", res)
				}
				if got := slices.Contains(x.calls, "abort"); got != aborts {
					t.Errorf("calls %v", x.calls)
				}
				if len(x.unbound) > 0 {
					t.Errorf("without a bound: %v", x.unbound)
				}
				if got := d.task.store.CommitID(); got != id(2, 0) {
					t.Errorf("the store is at %v", got)
				}
			})
		}
	}
}

// So it is with offsets that are committed alone: a transaction left open would hold up the readers of what comes next.
func TestCommitOfOffsetsFails(t *testing.T) {
	for _, step := range []string{"offsets", "commit"} {
		for class, aborts := range map[kafka.ErrorClass]bool{kafka.ClassAbortable: true, kafka.ClassUnknownMember: true, kafka.ClassTimeout: true,
			kafka.ClassInDoubt: false, kafka.ClassFenced: false} {
			for name, do := range map[string]func(d *doubtful) error{
				"start":  func(d *doubtful) error { return d.w.commitEpochs(t.Context(), []*plan{{task: d.task}}) },
				"failed": func(d *doubtful) error { return d.w.commitOffsets(t.Context(), nil, "") },
			} {
				t.Run(fmt.Sprint(name, " ", step, " ", class), func(t *testing.T) {
					d := newDoubtful(t)
					x := &scripted{fail: step, with: &kafka.Error{Class: class, Op: step}}
					d.w.txn = x
					if err := do(d); !kafka.IsClass(err, class) {
						t.Errorf("%v", err)
					}
					if got := slices.Contains(x.calls, "abort"); got != aborts {
						t.Errorf("calls %v", x.calls)
					}
				})
			}
		}
	}
}

// Under another member id nothing is committed at all (T5).
func TestCommitUnderAnotherMember(t *testing.T) {
	d := newDoubtful(t)
	x := &scripted{}
	d.w.txn = x
	d.member.ID = "me again"
	if res := d.w.commit(t.Context(), d.iv); res.err == nil || disposition(res.err) != Rejoin {
		t.Errorf("%+v", res)
	}
	if slices.Contains(x.calls, "offsets") || slices.Contains(x.calls, "commit") {
		t.Errorf("calls %v", x.calls)
	}
}

// No transaction begins before the outputs of the interval are safe, and none at all if they
// are not.
func TestCommitAwaitsOutputs(t *testing.T) {
	for _, failure := range []error{nil, &kafka.Error{Class: kafka.ClassTooLarge, Op: "produce"}} {
		d := newDoubtful(t)
		x := &scripted{}
		d.w.txn = x
		d.iv.outputs.pending = 2
		d.iv.outputs.report(kafka.Delivery{Err: failure})
		done := make(chan commitResult, 1)
		go func() { done <- d.w.commit(t.Context(), d.iv) }()
		select {
		case res := <-done:
			t.Fatalf("committed before its outputs were: %+v", res)
		case <-time.After(20 * time.Millisecond):
		}
		d.iv.outputs.report(kafka.Delivery{})
		res := <-done
		if !errors.Is(res.err, failure) || res.transacted != (failure == nil) {
			t.Errorf("%+v", res)
		}
		if failure != nil && len(x.calls) > 0 {
			t.Errorf("calls %v", x.calls)
		}
	}
}

// Every commit carries all partitions of the task under one id, also those that did not move:
// the next take-over compares them (T8).
func TestSealCarriesAllPartitions(t *testing.T) {
	w := newWorld(t)
	w.apply(id(2, 0))
	w.task.epoch = 2
	for _, q := range w.task.queues {
		q.position = 100
		w.task.sealedAt[q.tp] = 100
	}
	if w.task.moved() {
		t.Error("moved at the start")
	}
	w.task.queue(inA).position = 101
	if !w.task.moved() {
		t.Error("not moved by a record")
	}
	s, err := w.task.seal()
	if err != nil {
		t.Fatal(err)
	}
	got := map[kafka.TopicPartition]int64{}
	for _, o := range s.offsets {
		m, err := DecodeMetadata(o.Metadata)
		if err != nil || m.ID != id(2, 1) {
			t.Errorf("%v: %+v, %v", o.TopicPartition, m, err)
		}
		got[o.TopicPartition] = o.Offset
	}
	if len(got) != 2 || got[inA] != 101 || got[inB] != 100 || len(s.progress.Positions) != 2 {
		t.Errorf("offsets %v, positions %v", got, s.progress.Positions)
	}
	if h, ok, err := FindChangeHeader(s.header); !ok || err != nil || h.ID != id(2, 1) {
		t.Errorf("header %+v, %v, %v", h, ok, err)
	}
	if w.task.moved() {
		t.Error("moved behind the seal")
	}
	w.task.wrote = true
	if !w.task.moved() {
		t.Error("not moved by an output")
	}
}
