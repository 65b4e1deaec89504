package task

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// doubtful is a worker with one task whose sealed interval got no answer.
type doubtful struct {
	*world
	w      *Worker
	iv     *interval
	member kafka.Member
	inits  int
}

type doubtfulTxn struct {
	kafka.Transactional
	d *doubtful
}

func (x doubtfulTxn) Init(context.Context) error {
	x.d.inits++
	return nil
}

type groupAdmin struct {
	kafka.Admin
	w *world
}

func (a groupAdmin) CommittedOffsets(context.Context, string, ...kafka.TopicPartition) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
	return a.w.group, nil
}

func newDoubtful(t *testing.T) *doubtful {
	d := &doubtful{world: newWorld(t), member: kafka.Member{Group: "app", ID: "me", Generation: 1}}
	d.apply(id(2, 0))
	cfg := *d.task.cfg
	cfg.Admin, cfg.Started, cfg.Logger = groupAdmin{w: d.world}, d.member, slog.New(slog.DiscardHandler)
	cfg.Member = func() kafka.Member { return d.member }
	d.w = NewWorker(cfg, nil)
	d.w.txn = doubtfulTxn{d: d}
	d.task.epoch = 2
	kv, err := d.task.store.KeyValue("counts")
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Put([]byte("key"), []byte("sealed"), 1); err != nil {
		t.Fatal(err)
	}
	for _, q := range d.task.queues {
		q.position = 200
	}
	s, err := d.task.seal()
	if err != nil {
		t.Fatal(err)
	}
	d.iv = newInterval()
	d.iv.tasks = []*sealedTask{s}
	d.iv.changes.pending = 1
	d.iv.changes.report(kafka.Delivery{Next: []kafka.PartitionOffset{{TopicPartition: d.task.changelog("counts"), Offset: 77}}})
	return d
}

// committed lets the group have the offsets of a commit.
func (d *doubtful) committed(id statestore.CommitID, offset int64) {
	d.world.commit(id, nil, inA, inB)
	for tp, o := range d.group {
		o.Offset = offset
		d.group[tp] = o
	}
}

func (d *doubtful) resolve() commitResult {
	return d.w.resolve(d.t.Context(), commitResult{interval: d.iv, err: &kafka.Error{Class: kafka.ClassInDoubt, Op: "commit"}})
}

// The group's offsets carry the sealed interval's id: it was committed, and is applied with the
// changelog offsets that were reported.
func TestDoubtCommitted(t *testing.T) {
	d := newDoubtful(t)
	d.committed(id(2, 1), 200)
	res := d.resolve()
	if res.err != nil || !res.transacted || d.inits != 1 {
		t.Fatalf("%+v, %d inits", res, d.inits)
	}
	if got := d.task.store.CommitID(); got != id(2, 1) {
		t.Errorf("store at %v", got)
	}
	if got := d.task.store.CommittedOffsets()["counts"]; got != statestore.At(77) {
		t.Errorf("changelog offset %v", got)
	}
}

// Whatever else the group says, nothing is applied.
func TestDoubtNotCommitted(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(d *doubtful)
		lost    bool
	}{
		"the commit before it": {func(d *doubtful) { d.committed(id(2, 0), 100) }, false},
		"no offsets":           {func(d *doubtful) { clear(d.group) }, false},
		"another's id":         {func(d *doubtful) { d.committed(id(3, 1), 200) }, false},
		// It cannot be, and yet is not believed.
		"another's commit of the same id": {func(d *doubtful) { d.committed(id(2, 1), 150) }, false},
		"one partition only": {func(d *doubtful) {
			d.committed(id(2, 1), 200)
			delete(d.group, inB)
		}, false},
		"a record of it was not delivered": {func(d *doubtful) {
			d.committed(id(2, 1), 200)
			d.iv.changes.pending = 1
			d.iv.changes.report(kafka.Delivery{Err: errors.New("not delivered")})
		}, false},
		"the place was lost": {func(d *doubtful) {
			d.committed(id(2, 1), 200)
			d.member = kafka.Member{Group: "app", ID: "me again"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoubtful(t)
			c.prepare(d)
			res := d.resolve()
			if res.err == nil || res.transacted {
				t.Fatalf("believed: %+v", res)
			}
			if c.lost != errors.Is(res.err, ErrLost) {
				t.Errorf("error %v", res.err)
			}
			if got := d.task.store.CommitID(); got != id(2, 0) {
				t.Errorf("store at %v", got)
			}
		})
	}
}
