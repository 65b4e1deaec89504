package task

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// A store that its changelog does not take fails its own task, although the producer does not say whose record it was.
func TestSeedingFailsItsOwnTask(t *testing.T) {
	w := newWorld(t)
	w.filled(id(2, 3), statestore.CleanUnknown())
	w.commit(id(2, 3), nil, inA, inB)
	x := w.worker(KeepOthers)
	x.cfg.Member = func() kafka.Member { return x.cfg.Started }
	x.txn = &scripted{fail: "commit", with: &kafka.Error{Class: kafka.ClassTooLarge, Op: "commit"}}
	other := &Task{id: processor.TaskID{Partition: 1}, sub: w.task.sub, cfg: w.task.cfg}
	x.adopt(other)
	p := w.compare()
	if err := p.bound(map[kafka.TopicPartition]int64{}, map[kafka.TopicPartition]int64{}); err != nil {
		t.Fatal(err)
	}
	if len(p.seeds) != 1 {
		t.Fatalf("seeds %v", p.seeds)
	}
	err := x.seedNow(t.Context(), []*plan{p})
	if disposition(err) != FailTask || !strings.Contains(err.Error(), "task 0_0: write store counts into its changelog") {
		t.Fatalf("error %v", err)
	}
	if blamed, known := x.blame(err); !known || blamed != w.task.id {
		t.Errorf("task %v is blamed, known: %v", blamed, known)
	}
}

// What another task holds back fails that one, also in the turn of a task that is to commit alone.
func TestCommitAloneBlamesTheTaskThatFailed(t *testing.T) {
	w := newWorld(t)
	x := w.worker(KeepOthers)
	x.alone = map[kafka.TopicPartition]int64{inA: 1}
	other := &Task{id: processor.TaskID{Partition: 1}}
	if err := w.task.store.Close(); err != nil { // its seal fails
		t.Fatal(err)
	}
	w.task.wrote = true
	err := x.commitAlone(t.Context(), other)
	if blamed, known := x.blame(err); !known || blamed != w.task.id {
		t.Errorf("task %v is blamed for %v", blamed, err)
	}
}

// A store whose changelog was being written again is the only one with its content, unless the group has gone on: an
// operator's choice that empties it leaves a copy.
func TestHalfWrittenStoreIsKept(t *testing.T) {
	for _, c := range []struct {
		name   string
		choice Conflict
		keep   bool
	}{{"the group went on", Stop, false}, {"accept-reset", AcceptReset, true}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.filled(id(2, 3), statestore.At(50))
			if err := w.task.store.Doubt("counts"); err != nil {
				t.Fatal(err)
			}
			if w.task.cfg.OnConflict = c.choice; c.choice == Stop {
				w.commit(id(3, 0), nil, inA, inB)
			} // else the group's offsets are gone
			if p := w.compare(); len(p.stores) != 1 || !p.stores[0].clear || p.stores[0].keep != c.keep {
				t.Errorf("plan %+v", p.stores[0])
			}
		})
	}
}

// A store that had no changelog, and is to have one now, is not restored from that unless it is whole: it would be
// emptied.
func TestCompareChangelogIsNew(t *testing.T) {
	for name, c := range map[string]struct {
		at        statestore.CommitID
		replaying bool
		topic     kafka.TopicID
		whole     bool
	}{
		"whole":                          {id(2, 3), false, kafka.TopicID{4}, true},
		"whole, broker without ids":      {id(2, 3), false, kafka.TopicID{}, true},
		"behind":                         {id(2, 2), false, kafka.TopicID{4}, false},
		"behind, broker without ids":     {id(2, 2), false, kafka.TopicID{}, false},
		"in a replay":                    {id(2, 3), true, kafka.TopicID{4}, false},
		"in a replay, broker without id": {id(2, 3), true, kafka.TopicID{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWith(t, processor.KeyValue("counts", serde.String, serde.Int64).Unlogged())
			w.left(false)
			w.standAt(c.at, c.replaying, 90, 90)
			w.commit(id(2, 3), func(m *Metadata) { m.Starts = []StoreStart{{HashName("counts"), 10}} }, inA, inB)
			if err := w.task.close(); err != nil {
				t.Fatal(err)
			}
			logged := newWorldWith(t, processor.KeyValue("counts", serde.String, serde.Int64)).task
			cfg := *w.task.cfg
			cfg.Topology, cfg.Topics = logged.cfg.Topology, map[string]kafka.Topic{"a": cfg.Topics["a"], "b": cfg.Topics["b"],
				"app-counts-changelog": {Name: "app-counts-changelog", ID: c.topic, Partitions: 1}}
			var err error
			if w.task, err = newTask(&cfg, logged.sub, w.task.id); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.task.close() })
			p, err := w.task.compare(w.group)
			if c.whole {
				if err == nil {
					err = p.bound(map[kafka.TopicPartition]int64{}, map[kafka.TopicPartition]int64{})
				}
				if err != nil || len(p.seeds) != 1 || len(p.stores) != 0 {
					t.Errorf("plan %+v, error %v", p, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "store counts had no changelog at commit 2/3") || errors.Is(err, ErrTopicChanged) {
				t.Errorf("plan %+v, error %v", p, err)
			}
		})
	}
}

// The status of a task that has failed does not hold its store, which is closed.
func TestStatusLetsGoOfFailedStores(t *testing.T) {
	w := newWorld(t)
	x := w.worker(KeepOthers)
	x.status.opened(w.task.id, w.task.store)
	if err := x.failAlone(&Error{Task: w.task.id, Err: errors.New("of the user")}); err != nil {
		t.Fatal(err)
	}
	if n := len(x.status.stores); n != 0 {
		t.Errorf("%d stores are held", n)
	}
	if i := slices.IndexFunc(x.Status().Tasks, func(s TaskStatus) bool { return s.Failed != nil }); i < 0 {
		t.Error("the status does not tell of the failure")
	}
}

// Take-overs run beside whoever absorbs others: run it with -race.
func TestTakeOverBesideAbsorb(t *testing.T) {
	cfg := *newWorld(t).task.cfg
	cfg.Logger, cfg.Guarantee = slog.New(slog.DiscardHandler), ExactlyOnce
	cfg.Consumer = func() (kafka.Consumer, error) { return &feed{t: t}, nil }
	me := kafka.Member{Group: "app", ID: "me"}
	cfg.Member = func() kafka.Member { return me }
	h := NewHosted(cfg)
	h.w.txn = closing{}
	taken := make(chan *Taken, 20)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range cap(taken) / 2 {
				x, err := h.TakeOver(t.Context(), me, nil)
				if err != nil {
					t.Error(err)
				}
				taken <- x
			}
		})
	}
	for range cap(taken) {
		if _, err := h.Absorb(t.Context(), <-taken); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

type closing struct{ kafka.Transactional }

func (closing) Close(context.Context) error { return nil }
