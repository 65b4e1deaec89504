package task

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// world is a task with one store, and a group.
type world struct {
	t     *testing.T
	task  *Task
	group map[kafka.TopicPartition]kafka.CommittedOffset
}

var (
	inA = kafka.TopicPartition{Topic: "a", Partition: 0}
	inB = kafka.TopicPartition{Topic: "b", Partition: 0}
)

func newWorld(t *testing.T) *world {
	return newWorldWith(t, processor.KeyValue("counts", serde.String, serde.Int64))
}

func newWorldWith(t *testing.T, stores ...processor.StoreDef) *world {
	topology := processor.NewTopology()
	processor.AddSource(topology, "source", serde.String, serde.String, "a", "b")
	processor.AddProcessor(topology, "count", func() processor.Processor[string, string, string, string] {
		return processor.Func[string, string, string, string](func(processor.Context[string, string], processor.Record[string, string]) error { return nil })
	}, []string{"source"}, stores...)
	if err := topology.Build(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := &Config{AppID: "app", Topology: topology, Topics: map[string]kafka.Topic{
		"a": {Name: "a", ID: kafka.TopicID{1}, Partitions: 1}, "b": {Name: "b", ID: kafka.TopicID{2}, Partitions: 1},
		"app-counts-changelog": {Name: "app-counts-changelog", ID: kafka.TopicID{3}, Partitions: 1}},
		OpenStore: func(processor.TaskID) (*statestore.TaskStore, error) {
			return statestore.Open(dir, statestore.Options{})
		}}
	task, err := newTask(cfg, topology.Subtopologies()[0], processor.TaskID{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = task.close() })
	return &world{t, task, map[kafka.TopicPartition]kafka.CommittedOffset{}}
}

// commit lets the group have offsets of commit id for the partitions.
func (w *world) commit(id statestore.CommitID, change func(*Metadata), tps ...kafka.TopicPartition) {
	for _, tp := range tps {
		m := Metadata{ID: id, StreamTime: 5, PartitionTime: 4, Sources: w.task.covered.sources, Stores: w.task.covered.stores}
		if change != nil {
			change(&m)
		}
		s, err := m.Encode()
		if err != nil {
			w.t.Fatal(err)
		}
		w.group[tp] = kafka.CommittedOffset{TopicPartition: tp, Offset: 100, Metadata: s}
	}
}

// apply lets the store stand complete at commit id, its changelog at 50.
func (w *world) apply(id statestore.CommitID) {
	p := statestore.Progress{ID: id, StreamTime: 5, Positions: []statestore.Position{{Topic: "a", Next: 100}, {Topic: "b", Next: 100}}}
	if err := w.task.store.Complete(p, map[string]statestore.Offset{"counts": statestore.At(50)}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) compare() *plan {
	w.t.Helper()
	p, err := w.task.compare(w.group)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) refused(want error, words ...string) {
	w.t.Helper()
	_, err := w.task.compare(w.group)
	if !errors.Is(err, want) {
		w.t.Fatalf("got %v, want %v", err, want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("%q does not contain %q", err, word)
		}
	}
}

func id(epoch, number int64) statestore.CommitID {
	return statestore.CommitID{Epoch: epoch, Number: number}
}

func TestCompareNewGroup(t *testing.T) {
	w := newWorld(t)
	p := w.compare()
	if len(p.fresh) != 2 || len(p.empty) != 1 || len(p.stores) != 0 {
		t.Errorf("plan %+v", p)
	}
}

func TestCompareEqual(t *testing.T) {
	w := newWorld(t)
	w.commit(id(2, 3), nil, inA, inB)
	w.apply(id(2, 3))
	p := w.compare()
	if len(p.fresh)+len(p.empty)+len(p.stores) != 0 || p.id != id(2, 3) {
		t.Errorf("plan %+v", p)
	}
	p.position(nil)
	if w.task.epoch != 3 || w.task.queues[0].position != 100 || w.task.streamTime != 5 {
		t.Errorf("epoch %d, position %d, stream time %d", w.task.epoch, w.task.queues[0].position, w.task.streamTime)
	}
}

// A crash between the transaction and the apply, or the loss of the log's buffer.
func TestCompareGroupAhead(t *testing.T) {
	w := newWorld(t)
	w.apply(id(2, 3))
	w.commit(id(2, 4), nil, inA, inB)
	p := w.compare()
	if len(p.stores) != 1 || p.stores[0].from != statestore.At(50) || p.stores[0].clear {
		t.Fatalf("plan %+v", p)
	}
	if err := p.bound(map[kafka.TopicPartition]int64{}, map[kafka.TopicPartition]int64{p.stores[0].tp: 60}); err != nil {
		t.Fatal(err)
	}
	if s := p.stores[0].status; s.From != 50 || s.End != 60 || p.stores[0].clear {
		t.Errorf("restore %+v", s)
	}
}

func TestCompareEmptyStore(t *testing.T) {
	w := newWorld(t)
	w.commit(id(2, 4), nil, inA, inB)
	p := w.compare()
	if len(p.stores) != 1 || !p.stores[0].from.IsAbsent() {
		t.Fatalf("plan %+v", p)
	}
	tp := p.stores[0].tp
	if err := p.bound(map[kafka.TopicPartition]int64{tp: 7}, map[kafka.TopicPartition]int64{tp: 60}); err != nil {
		t.Fatal(err)
	}
	if s := p.stores[0].status; s.From != 7 || p.stores[0].clear {
		t.Errorf("restore %+v", s)
	}
}

// An offset outside the log is not replayed over: the store is emptied first.
func TestCompareOffsetOutsideLog(t *testing.T) {
	for name, bounds := range map[string][2]int64{"before the start": {51, 60}, "behind the end": {0, 49}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(id(2, 3))
			w.commit(id(2, 4), nil, inA, inB)
			p := w.compare()
			tp := p.stores[0].tp
			if err := p.bound(map[kafka.TopicPartition]int64{tp: bounds[0]}, map[kafka.TopicPartition]int64{tp: bounds[1]}); err != nil {
				t.Fatal(err)
			}
			if s := p.stores[0]; !s.clear || s.status.From != bounds[0] {
				t.Errorf("restore %+v, clear %v", s.status, s.clear)
			}
		})
	}
}

func TestCompareRefuses(t *testing.T) {
	ours := id(2, 3)
	t.Run("store ahead", func(t *testing.T) {
		w := newWorld(t)
		w.apply(id(2, 4))
		w.commit(ours, nil, inA, inB)
		w.refused(ErrStoreAhead, "store counts", "2/4", "2/3", "delete the task's directory")
	})
	t.Run("task without stores ahead", func(t *testing.T) {
		w := newWorldWith(t)
		for _, at := range []statestore.CommitID{id(2, 2), ours, id(2, 4)} {
			if err := w.task.store.Complete(statestore.Progress{ID: at, Positions: []statestore.Position{{Topic: "a", Next: 100}, {Topic: "b", Next: 100}}}, nil); err != nil {
				t.Fatal(err)
			}
			w.commit(ours, nil, inA, inB)
			if at != id(2, 4) {
				w.compare() // behind, or equal: a crash
			}
		}
		w.refused(ErrStoreAhead, "no stores", "2/4", "2/3", "accept-reset")
	})
	t.Run("offsets lost", func(t *testing.T) {
		w := newWorld(t)
		w.apply(ours)
		w.refused(ErrOffsetsLost, "2/3", "no offset for")
	})
	t.Run("one partition's offset lost", func(t *testing.T) {
		w := newWorld(t)
		w.commit(ours, nil, inA)
		w.refused(ErrForeignCommit, "b-0")
	})
	t.Run("ids differ", func(t *testing.T) {
		w := newWorld(t)
		w.commit(ours, nil, inA)
		w.commit(id(2, 4), nil, inB)
		w.refused(ErrForeignCommit, "2/3", "2/4")
	})
	t.Run("one without id", func(t *testing.T) {
		w := newWorld(t)
		w.commit(ours, nil, inA)
		w.group[inB] = kafka.CommittedOffset{TopicPartition: inB, Offset: 1}
		w.refused(ErrForeignCommit)
	})
	t.Run("none with id, but the store has one", func(t *testing.T) {
		w := newWorld(t)
		w.apply(ours)
		w.group[inA] = kafka.CommittedOffset{TopicPartition: inA, Offset: 1}
		w.group[inB] = kafka.CommittedOffset{TopicPartition: inB, Offset: 1}
		w.refused(ErrForeignCommit, "2/3")
	})
	t.Run("input re-created", func(t *testing.T) {
		w := newWorld(t)
		w.commit(ours, nil, inA, inB)
		w.task.covered.sources[0].Topic++
		w.refused(ErrTopicChanged, "input", "a is not the topic")
	})
	t.Run("changelog re-created", func(t *testing.T) {
		w := newWorld(t)
		w.commit(ours, func(m *Metadata) { m.Stores = []Covered{{HashName("counts"), 99}} }, inA, inB)
		w.refused(ErrTopicChanged, "app-counts-changelog", "store counts")
	})
	t.Run("new store with a changelog that is not empty", func(t *testing.T) {
		w := newWorld(t)
		w.commit(ours, func(m *Metadata) { m.Stores = nil }, inA, inB)
		p := w.compare()
		tp := w.task.changelog("counts")
		err := p.bound(map[kafka.TopicPartition]int64{}, map[kafka.TopicPartition]int64{tp: 1})
		if !errors.Is(err, ErrOffsetsLost) || !strings.Contains(err.Error(), "app-counts-changelog-0") {
			t.Errorf("error %v", err)
		}
	})
}

// left lets the store hold a key that no commit tells of, as a restore that was killed leaves it, or
// without an offset, as a store that was once taken out of the topology keeps it.
func (w *world) left(offset bool) {
	w.t.Helper()
	record := []statestore.RestoreRecord{{Key: []byte("old"), Value: []byte("8 bytes!")}}
	if err := w.task.store.Restore("counts", record, 50); err != nil {
		w.t.Fatal(err)
	}
	if offset {
		return
	}
	if err := w.task.store.Complete(statestore.Progress{ID: w.task.store.CommitID()}, map[string]statestore.Offset{"counts": {}}); err != nil {
		w.t.Fatal(err)
	}
}

// A store that begins anew begins empty, whatever the disk holds of it: that belongs to a
// changelog that is gone.
func TestCompareLeftOvers(t *testing.T) {
	for _, offset := range []bool{true, false} {
		t.Run("new group", func(t *testing.T) {
			w := newWorld(t)
			w.left(offset)
			p := w.compare()
			if len(p.empty) != 1 || len(p.stores) != 1 || !p.stores[0].clear {
				t.Fatalf("plan %+v", p)
			}
			if err := p.bound(map[kafka.TopicPartition]int64{}, map[kafka.TopicPartition]int64{}); err != nil || !p.stores[0].clear {
				t.Errorf("%v, clear %v", err, p.stores[0].clear)
			}
		})
		t.Run("new store", func(t *testing.T) {
			w := newWorld(t)
			w.apply(id(2, 3))
			w.left(offset)
			w.commit(id(2, 3), func(m *Metadata) { m.Stores = nil }, inA, inB)
			p := w.compare()
			if len(p.empty) != 1 || len(p.stores) != 1 || !p.stores[0].clear {
				t.Errorf("plan %+v", p)
			}
		})
	}
	t.Run("data without offset", func(t *testing.T) {
		w := newWorld(t)
		w.left(false)
		w.commit(id(2, 3), nil, inA, inB)
		if p := w.compare(); len(p.stores) != 1 || !p.stores[0].clear {
			t.Errorf("plan %+v", p)
		}
	})
}

// What was imported with an offset of another topic is not continued at that offset.
func TestCompareOffsetOfAnotherChangelog(t *testing.T) {
	for _, recorded := range []string{"other-table", "app-counts-changelog"} {
		w := newWorld(t)
		spec, dir := w.task.sub.Stores[0].Spec(), w.task.store.Dir()
		if err := errors.Join(w.task.close(), os.RemoveAll(dir)); err != nil {
			t.Fatal(err)
		}
		s, err := statestore.Open(dir, statestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		spec.Changelog = recorded
		err = errors.Join(s.Register(spec), s.RecordImport(statestore.Import{Store: "counts", Source: "old"}, statestore.At(50), nil), s.Close())
		if err == nil {
			w.task, err = newTask(w.task.cfg, w.task.sub, processor.TaskID{})
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.task.close() })
		for _, tp := range []kafka.TopicPartition{inA, inB} {
			w.group[tp] = kafka.CommittedOffset{TopicPartition: tp, Offset: 9, Metadata: "AQAAAAAAAAEC"}
		}
		if p := w.compare(); len(p.stores) != 1 || p.stores[0].clear != (recorded == "other-table") || p.stores[0].from != statestore.At(50) {
			t.Errorf("%s: plan %+v", recorded, p.stores[0])
		}
	}
}

// A Kafka Streams application's group is taken over: everything is restored, then the
// offsets get an id.
func TestCompareKafkaStreamsGroup(t *testing.T) {
	w := newWorld(t)
	for _, tp := range []kafka.TopicPartition{inA, inB} {
		w.group[tp] = kafka.CommittedOffset{TopicPartition: tp, Offset: 9, Metadata: "AQAAAAAAAAEC"}
	}
	p := w.compare()
	if len(p.stores) != 1 {
		t.Fatalf("plan %+v", p)
	}
	p.position(nil)
	if q := w.task.queues[0]; q.position != 9 || q.partitionTime != 258 || w.task.streamTime != 258 {
		t.Errorf("position %d, partition time %d, stream time %d", q.position, q.partitionTime, w.task.streamTime)
	}
}

// A new input topic of a known group starts at the start position, which is committed first.
func TestCompareNewInput(t *testing.T) {
	w := newWorld(t)
	w.commit(id(2, 3), func(m *Metadata) { m.Sources = w.task.covered.sources[:1] }, inA)
	w.apply(id(2, 3))
	p := w.compare()
	if len(p.fresh) != 1 || p.fresh[0] != inB {
		t.Fatalf("plan %+v", p)
	}
	p.position(map[kafka.TopicPartition]int64{inB: 42})
	if w.task.queue(inB).position != 42 || w.task.queue(inA).position != 100 {
		t.Errorf("positions %d, %d", w.task.queue(inB).position, w.task.queue(inA).position)
	}
}
