package task

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// seedKeys make two full pieces and a rest.
const seedKeys = 2*seedRecords + 500

// seedWorld is a worker with a task that runs, and one beside whose changelog has lost its store.
type seedWorld struct {
	t        *testing.T
	w        *Worker
	txn      *seedTxn
	run, own *world // the task that runs; that of the store
	open     func() *Task
	records  chan kafka.Fetched // for the task that runs
}

// seedTxn gathers what is committed. begun is called before the end of a piece, and may fail it.
type seedTxn struct {
	kafka.Transactional
	begun     func(piece int) error
	pieces    int
	open      []kafka.Record
	offsets   []kafka.CommittedOffset
	committed []kafka.Record
	of        []int32 // the partitions of the tasks whose transactions these were, in their order
	aborts    int
	// failStart, unless nil, may fail a commit without records.
	failStart func(first kafka.TopicPartition) error
}

func (x *seedTxn) Begin() error { x.open, x.offsets = nil, nil; return nil }
func (x *seedTxn) Send(_ context.Context, records []kafka.Record, report func(kafka.Delivery)) error {
	x.open = append(x.open, records...)
	report(kafka.Delivery{Next: []kafka.PartitionOffset{{TopicPartition: records[0].TopicPartition(), Offset: int64(len(x.committed) + len(x.open))}}})
	return nil
}
func (x *seedTxn) SendOffsets(_ context.Context, _ kafka.Member, offsets []kafka.CommittedOffset) error {
	x.offsets = append(x.offsets, offsets...)
	return nil
}
func (x *seedTxn) Commit(context.Context) error {
	if len(x.open) > 0 && x.open[0].Partition == 1 {
		x.pieces++
		if x.begun != nil {
			if err := x.begun(x.pieces); err != nil {
				return err
			}
		}
	}
	if len(x.open) == 0 && x.failStart != nil {
		if err := x.failStart(x.offsets[0].TopicPartition); err != nil {
			return err
		}
	}
	x.of = append(x.of, x.offsets[0].Partition)
	x.committed = append(x.committed, x.open...)
	return nil
}
func (x *seedTxn) Abort(context.Context) error { x.aborts++; return nil }
func (x *seedTxn) Close(context.Context) error { return nil }

// keys gives how often each key was written into the lost changelog.
func (x *seedTxn) keys() map[string]int {
	keys := map[string]int{}
	for _, r := range x.committed {
		if r.Partition == 1 && r.Topic == "app-counts-changelog" {
			keys[string(r.Key)]++
		}
	}
	return keys
}

// quiet is a consumer that gets what is put into records.
type quiet struct {
	kafka.Consumer
	records chan kafka.Fetched
}

func (quiet) Assign(context.Context, map[kafka.TopicPartition]int64) error { return nil }
func (quiet) Unassign(...kafka.TopicPartition) error                       { return nil }
func (quiet) Close(context.Context) error                                  { return nil }
func (q quiet) Poll(ctx context.Context, into *kafka.Poll) error {
	into.Reset()
	select {
	case f := <-q.records:
		into.Partitions = append(into.Partitions, f)
	case <-ctx.Done():
	}
	return nil
}

type seedAdmin struct{ groupAdmin }

func (seedAdmin) ListOffsets(_ context.Context, _ kafka.OffsetSpec, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	all := map[kafka.TopicPartition]int64{}
	for _, tp := range tps {
		all[tp] = 0
	}
	return all, nil
}

func newSeedWorld(t *testing.T) *seedWorld {
	x := &seedWorld{t: t, run: newWorld(t), txn: &seedTxn{}, records: make(chan kafka.Fetched, 1)}
	cfg := *x.run.task.cfg
	cfg.Topics = maps.Clone(cfg.Topics)
	for name, topic := range cfg.Topics {
		topic.Partitions = 2
		cfg.Topics[name] = topic
	}
	dir := t.TempDir()
	cfg.OpenStore = func(processor.TaskID) (*statestore.TaskStore, error) {
		return statestore.Open(dir, statestore.Options{})
	}
	me := kafka.Member{Group: "app", ID: "me"}
	cfg.Started, cfg.Logger, cfg.Member = me, slog.New(slog.DiscardHandler), func() kafka.Member { return me }
	cfg.Guarantee, cfg.Limits.MaxTaskIdle, cfg.Limits.CommitRecords = ExactlyOnce, -1, 1
	cfg.Consumer = func() (kafka.Consumer, error) { return quiet{}, nil }
	x.open = func() *Task {
		task, err := newTask(&cfg, x.run.task.sub, processor.TaskID{Partition: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = task.close() })
		return task
	}
	x.own = &world{t, x.open(), map[kafka.TopicPartition]kafka.CommittedOffset{}}
	var rows []statestore.RestoreRecord
	for i := range seedKeys {
		rows = append(rows, statestore.RestoreRecord{Key: fmt.Appendf(nil, "key %d", i), Value: []byte("value")})
	}
	if err := x.own.task.store.Restore("counts", rows, 50); err != nil {
		t.Fatal(err)
	}
	x.own.apply(id(2, 3))
	x.own.commit(id(2, 3), nil, x.own.task.partitions()...)
	cfg.Admin = seedAdmin{groupAdmin{w: x.own}}

	x.run.apply(id(2, 0))
	x.w = NewWorker(cfg, nil)
	x.w.txn, x.w.consumer = x.txn, quiet{records: x.records}
	x.run.task.cfg, x.run.task.epoch = &x.w.cfg, 2
	x.w.adopt(x.run.task)
	if err := x.w.newInstance(x.run.task); err != nil {
		t.Fatal(err)
	}
	return x
}

// begin has the changelog, of which the broker has nothing, written beside the loop.
func (x *seedWorld) begin() {
	x.t.Helper()
	plans, err := x.w.survey(x.t.Context(), []*Task{x.own.task})
	if err != nil || len(plans) != 1 || !plans[0].unseeded() {
		x.t.Fatalf("plans %+v, error %v", plans, err)
	}
	if short := x.w.splitLong(x.t.Context(), plans); len(short) != 0 {
		x.t.Fatal("it is brought before the loop")
	}
}

// process has the running task process a record of each source.
func (x *seedWorld) process(offset int64) {
	for _, tp := range []kafka.TopicPartition{inA, inB} {
		r := kafka.Record{Topic: tp.Topic, Offset: offset, Key: []byte("k"), Value: []byte("v"), Timestamp: 1}
		select {
		case x.records <- kafka.Fetched{TopicPartition: tp, Records: []kafka.Record{r}, Next: offset + 1}:
		case <-time.After(10 * time.Second):
			x.t.Error("nobody polls")
		}
	}
}

func (x *seedWorld) release() {
	x.t.Helper()
	if err := x.w.release(x.t.Context(), nil); err != nil {
		x.t.Error(err)
	}
}

// stopWhenRunning ends the loop once all tasks run.
func (x *seedWorld) stopWhenRunning() {
	x.w.status.changed = func() {
		if x.w.State() == "running" {
			x.w.Stop()
		}
	}
}

// While a store is written into its changelog, however large it is, the other tasks of the worker process and commit.
func TestOthersRunWhileAChangelogIsWritten(t *testing.T) {
	x := newSeedWorld(t)
	// Due at once, but never full: a full interval waits for the piece.
	x.w.cfg.Limits.CommitRecords, x.w.cfg.Limits.CommitInterval = 0, time.Millisecond
	x.txn.begun = func(piece int) error {
		before := x.w.status.processed.Load()
		x.process(int64(100 + piece))
		for deadline := time.Now().Add(10 * time.Second); x.w.status.processed.Load() == before; {
			if time.Now().After(deadline) {
				return errors.New("the others wait for the piece")
			}
		}
		if piece == 2 {
			if r := x.w.Status().Tasks[0].Repaired; len(r) != 1 || r[0].Action != beingSeeded || r[0].Records != seedRecords {
				t.Errorf("in the middle: %+v", r)
			}
		}
		return nil
	}
	x.stopWhenRunning()
	x.begin()
	if err := x.w.loop(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys := x.txn.keys()
	if len(keys) != seedKeys || x.txn.pieces != 3 {
		t.Errorf("%d keys in %d pieces", len(keys), x.txn.pieces)
	}
	// Commits come between the pieces, not behind the last.
	last := slices.Index(x.txn.of, 1)
	for range x.txn.pieces - 1 {
		next := slices.Index(x.txn.of[last+1:], 1) + last + 1
		if !slices.Contains(x.txn.of[last:next], 0) {
			t.Errorf("transactions of the tasks %v", x.txn.of)
		}
		last = next
	}
	if got := x.own.task.store.CommittedOffsets()["counts"]; got.IsUnknown() || got.IsAbsent() {
		t.Errorf("the store is at offset %v", got)
	}
	if i := slices.IndexFunc(x.w.Status().Tasks, func(s TaskStatus) bool {
		return len(s.Repaired) == 1 && s.Repaired[0].Action == seeded && s.Repaired[0].Records == seedKeys
	}); i < 0 {
		t.Errorf("status %+v", x.w.Status().Tasks)
	}
	x.release()
}

// A stop ends the writing behind the piece that is under way; what the others have done is committed. The next start
// writes the store whole.
func TestStopWhileAChangelogIsWritten(t *testing.T) {
	x := newSeedWorld(t)
	x.txn.begun = func(int) error {
		x.process(100)
		x.w.Stop()
		return nil
	}
	x.begin()
	if err := x.w.loop(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.release()
	if x.txn.pieces != 1 {
		t.Errorf("%d pieces", x.txn.pieces)
	}
	if got := x.run.task.store.CommitID(); !slices.Contains(x.txn.of, 0) || got.Number == 0 {
		t.Errorf("transactions of the tasks %v, the one that ran is at %v", x.txn.of, got)
	}
	for _, w := range []*world{x.run, x.own} {
		if w.task.store.Sync() == nil {
			t.Errorf("the store of task %v is open", w.task.id)
		}
	}
	again := &world{t, x.open(), x.own.group}
	p := again.compare()
	tp := again.task.changelog("counts")
	if err := p.bound(nil, map[kafka.TopicPartition]int64{tp: seedRecords}); err != nil || len(p.seeds) != 1 || len(p.stores) != 0 {
		t.Errorf("plan %+v, error %v", p, err)
	}
}

// A piece whose transaction has failed is the worker's failure, as a commit is; then it is written again.
func TestPieceThatFailedIsWrittenAgain(t *testing.T) {
	for _, class := range []kafka.ErrorClass{kafka.ClassAbortable, kafka.ClassInDoubt} {
		t.Run(class.String(), func(t *testing.T) {
			x := newSeedWorld(t)
			x.txn.begun = func(piece int) error {
				if piece == 2 {
					return &kafka.Error{Class: class, Op: "commit"}
				}
				return nil
			}
			x.stopWhenRunning()
			x.begin()
			err := x.w.loop(t.Context())
			if disposition(err) != Reload || !strings.Contains(err.Error(), "task 0_1: write store counts into its changelog") {
				t.Fatalf("error %v", err)
			}
			if aborted := x.txn.aborts == 1; aborted != (class == kafka.ClassAbortable) {
				t.Errorf("%d transactions were aborted", x.txn.aborts)
			}
			if err := x.w.loop(t.Context()); err != nil { // the reload between is the worker's
				t.Fatal(err)
			}
			if keys := x.txn.keys(); len(keys) != seedKeys || x.txn.pieces != 4 {
				t.Errorf("%d keys in %d attempts", len(keys), x.txn.pieces)
			}
			x.release()
		})
	}
}

// A reload does not leave the goroutine beside waiting for an answer.
func TestReloadAnswersAPiece(t *testing.T) {
	x := newSeedWorld(t)
	x.stopWhenRunning()
	x.begin()
	for x.w.sealed == nil {
		x.w.writeSeeds(t.Context())
	}
	x.w.await()
	if err := x.w.loop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if keys := x.txn.keys(); len(keys) != seedKeys {
		t.Errorf("%d keys", len(keys))
	}
	x.release()
}

// Under the lock of whoever owns a hosted worker only one piece is written at a time.
func TestHostedSeeds(t *testing.T) {
	for _, c := range []struct {
		name      string
		fail      error
		cancelled bool
		turns     int
		whole     bool
	}{{"whole", nil, false, 3, true}, {"a piece fails", &kafka.Error{Class: kafka.ClassAbortable}, false, 4, true}, {"cancelled", nil, true, 1, false}, {"given up", errors.New("closed"), false, 1, false}} {
		t.Run(c.name, func(t *testing.T) {
			x := newSeedWorld(t)
			h := NewHosted(x.w.cfg)
			h.w.txn = x.txn
			taken := &Taken{w: NewWorker(x.w.cfg, nil)}
			taken.w.consumer = quiet{}
			taken.w.adopt(x.own.task)
			var err error
			if taken.plans, err = taken.w.bringAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			turns, fail := 0, c.fail
			err = h.Seed(ctx, taken, func(write func(context.Context) error) error {
				if turns++; fail != nil {
					defer func() { fail = nil }()
					return fail
				}
				if c.cancelled {
					defer cancel()
				}
				return write(t.Context())
			})
			if turns != c.turns || (err == nil) != c.whole {
				t.Fatalf("%d turns, error %v", turns, err)
			}
			if !c.whole {
				if x.own.task.store.Sync() == nil {
					t.Error("the store is open")
				}
				return
			}
			before := x.txn.pieces
			if _, err := h.Absorb(t.Context(), taken); err != nil {
				t.Fatal(err)
			}
			if x.txn.pieces != before || len(x.txn.keys()) != seedKeys {
				t.Errorf("%d pieces, %d of them when it was absorbed; %d keys", x.txn.pieces, x.txn.pieces-before, len(x.txn.keys()))
			}
			if err := h.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// writtenAdmin is a broker whose changelog of the lost store holds what was committed to it.
type writtenAdmin struct {
	seedAdmin
	txn *seedTxn
}

func (a writtenAdmin) ListOffsets(_ context.Context, spec kafka.OffsetSpec, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	all := map[kafka.TopicPartition]int64{}
	for _, tp := range tps {
		all[tp] = 0
		if spec != kafka.Earliest && tp.Topic == "app-counts-changelog" {
			all[tp] = int64(len(a.txn.committed))
		}
	}
	return all, nil
}

// A store that was written to the end is not written once more because the commit of the new epoch fails, unless its
// changelog was lost again.
func TestWrittenStoreIsNotWrittenAgain(t *testing.T) {
	for name, lost := range map[string]bool{"changelog holds it": false, "lost again": true} {
		t.Run(name, func(t *testing.T) {
			x := newSeedWorld(t)
			x.w.cfg.Admin = writtenAdmin{x.w.cfg.Admin.(seedAdmin), x.txn}
			broken := errors.New("the broker is gone")
			x.txn.failStart = func(tp kafka.TopicPartition) error {
				if tp.Partition == 1 {
					return &kafka.Error{Class: kafka.ClassAbortable, Op: "commit", Err: broken}
				}
				return nil
			}
			x.begin()
			if err := x.w.loop(t.Context()); !errors.Is(err, broken) {
				t.Fatalf("the loop ends with %v", err)
			}
			if lost {
				x.txn.committed = nil
			}
			plans, err := x.w.survey(t.Context(), []*Task{x.own.task})
			if err != nil || len(plans) != 1 || plans[0].unseeded() != lost {
				t.Fatalf("it is to be written: %v, want %v; %v", plans[0].unseeded(), lost, err)
			}
			if lost {
				x.release()
				return
			}
			x.txn.failStart = nil
			plans[0].position(nil)
			if err := x.w.commitEpochs(t.Context(), plans); err != nil {
				t.Fatal(err)
			}
			if err := x.w.startTasks(t.Context(), plans); err != nil {
				t.Fatal(err)
			}
			if got := x.own.task.store.CommittedOffsets()["counts"]; got != statestore.At(int64(len(x.txn.committed))) || x.txn.pieces != 3 {
				t.Errorf("the store is at offset %v after %d pieces", got, x.txn.pieces)
			}
			for _, s := range x.w.Status().Tasks {
				if s.ID == x.own.task.id && (len(s.Repaired) != 1 || s.Repaired[0].Action != seeded) {
					t.Errorf("repairs %+v", s.Repaired)
				}
			}
			x.release()
		})
	}
}
