package task

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// newLocalWorld is a task with a store that has a changelog, and two that have none.
func newLocalWorld(t *testing.T) *world {
	return newWorldWith(t, processor.KeyValue("counts", serde.String, serde.Int64), processor.KeyValue("local", serde.String, serde.Int64).Unlogged(),
		processor.KeyValue("later", serde.String, serde.Int64).Unlogged())
}

// began has the group say that local began at 10 and later at 30, in both partitions.
func began(m *Metadata) {
	m.Starts = []StoreStart{{HashName("local"), 10}, {HashName("later"), 30}}
}

// standAt lets the stores stand complete at commit id, or in a replay, with a at na and b at nb.
func (w *world) standAt(id statestore.CommitID, replaying bool, na, nb int64) {
	p := statestore.Progress{ID: id, StreamTime: 3, Replaying: replaying, Positions: []statestore.Position{{Topic: "a", Next: na}, {Topic: "b", Next: nb}}}
	if err := w.task.store.Complete(p, map[string]statestore.Offset{"counts": statestore.At(50)}); err != nil {
		w.t.Fatal(err)
	}
}

func TestCompareUnlogged(t *testing.T) {
	type from = map[kafka.TopicPartition]int64
	for name, c := range map[string]struct {
		prepare func(w *world)
		from    from
		rebuild bool
		begins  string
	}{
		"new group":                       {prepare: func(*world) {}, begins: "later local"},
		"equal":                           {prepare: func(w *world) { w.commit(id(2, 3), began, inA, inB); w.standAt(id(2, 3), false, 100, 100) }},
		"group ahead":                     {prepare: func(w *world) { w.commit(id(2, 4), began, inA, inB); w.standAt(id(2, 3), false, 100, 60) }, from: from{inA: 100, inB: 60}},
		"group ahead, same positions":     {prepare: func(w *world) { w.commit(id(2, 4), began, inA, inB); w.standAt(id(2, 3), false, 100, 100) }},
		"killed in a replay, same commit": {prepare: func(w *world) { w.commit(id(2, 3), began, inA, inB); w.standAt(id(2, 3), true, 70, 80) }, from: from{inA: 70, inB: 80}},
		"killed in a replay, group ahead": {prepare: func(w *world) { w.commit(id(3, 0), began, inA, inB); w.standAt(id(2, 3), true, 70, 80) }, from: from{inA: 70, inB: 80}},
		"disk lost":                       {prepare: func(w *world) { w.commit(id(2, 3), began, inA, inB) }, from: from{inA: 10, inB: 10}, rebuild: true},
		"one store lost": {prepare: func(w *world) {
			w.commit(id(2, 3), began, inA, inB)
			w.standAt(id(2, 3), false, 100, 100)
			w.clear("later")
		}, from: from{inA: 10, inB: 10}, rebuild: true},
		"a new source, its commit lost":    {prepare: func(w *world) { w.commit(id(2, 4), began, inA, inB); w.onlyA(id(2, 3)) }, from: from{inA: 100, inB: 10}},
		"store not known to the group":     {prepare: func(w *world) { w.commit(id(2, 3), forgetLater, inA, inB); w.standAt(id(2, 3), false, 100, 100) }, begins: "later"},
		"offsets of Kafka Streams":         {prepare: func(w *world) { w.foreign(inA, inB) }, begins: "later local"},
		"nothing was processed, disk lost": {prepare: func(w *world) { w.commit(id(2, 0), beganAt(100), inA, inB) }, rebuild: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLocalWorld(t)
			c.prepare(w)
			u := w.compare().unlogged
			if diff := cmp.Diff(c.from, u.from); diff != "" {
				t.Errorf("replay: -want +got\n%s", diff)
			}
			if got := strings.Join(slices.Sorted(maps.Keys(u.begins)), " "); u.rebuild != c.rebuild || got != c.begins {
				t.Errorf("rebuild %t, begins %q", u.rebuild, got)
			}
		})
	}
}

func forgetLater(m *Metadata) {
	m.Starts = []StoreStart{{HashName("local"), 10}}
	m.Stores = slices.DeleteFunc(slices.Clone(m.Stores), func(c Covered) bool { return c.Name == HashName("later") })
}

func beganAt(n int64) func(*Metadata) {
	return func(m *Metadata) { m.Starts = []StoreStart{{HashName("local"), n}, {HashName("later"), n}} }
}

func (w *world) clear(store string) {
	if err := w.task.store.Clear(store); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) onlyA(id statestore.CommitID) {
	if err := w.task.store.Complete(statestore.Progress{ID: id, Positions: []statestore.Position{{Topic: "a", Next: 100}}}, nil); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) foreign(tps ...kafka.TopicPartition) {
	for _, tp := range tps {
		w.group[tp] = kafka.CommittedOffset{TopicPartition: tp, Offset: 100}
	}
}

func TestCompareUnloggedRefuses(t *testing.T) {
	w := newLocalWorld(t)
	w.commit(id(2, 3), began, inA, inB)
	w.standAt(id(2, 4), true, 90, 90)
	w.refused(ErrStoreAhead, "2/4")

	w = newLocalWorld(t)
	w.commit(id(2, 4), began, inA, inB)
	w.standAt(id(2, 3), false, 100, 101)
	w.refused(ErrStoreAhead, "b-0", "101")

	w = newLocalWorld(t)
	w.commit(id(2, 4), nil, inA, inB) // it had changelogs, or an older version wrote this
	w.refused(ErrInputGone, "local", "was not recorded", "accept-reset")
	w.task.cfg.OnConflict = AcceptReset
	if u := w.compare().unlogged; len(u.begins) != 2 || u.from != nil {
		t.Errorf("accept-reset: %+v", u)
	}
	w.task.cfg.OnConflict = UseStore
	w.refused(ErrInputGone, "use-store is not possible")
}

// Half of a replay is no state to go on with.
func TestUseStoreInReplay(t *testing.T) {
	w := newLocalWorld(t)
	w.task.cfg.OnConflict = UseStore
	w.standAt(id(2, 4), true, 90, 90)
	w.refused(ErrOffsetsLost, "use-store is not possible", "later")
}

// What is committed in a replay is what the group has already; the store has the replay's own positions. Where the stores
// began is said on in every commit.
func TestReplayCommits(t *testing.T) {
	w := newLocalWorld(t)
	w.commit(id(2, 4), began, inA, inB)
	w.standAt(id(2, 3), false, 60, 100)
	p := w.compare()
	p.position(nil)
	x := w.task
	if x.replay == nil || x.queue(inA).position != 60 || x.queue(inB).position != 100 || x.streamTime != 3 {
		t.Fatalf("replay %+v, stream time %d", x.replay, x.streamTime)
	}
	x.queue(inA).position = 80
	s, err := x.seal()
	if err != nil {
		t.Fatal(err)
	}
	if !s.progress.Replaying || fmt.Sprint(s.progress.Positions) != "[{a 0 80} {b 0 100}]" || s.progress.StreamTime != 3 {
		t.Errorf("the store gets %+v", s.progress)
	}
	for _, o := range s.offsets {
		m, err := DecodeMetadata(o.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		if o.Offset != 100 || m.StreamTime != 5 || m.PartitionTime != 4 || m.ID != id(3, 1) {
			t.Errorf("the group gets %v at %d with %+v", o.TopicPartition, o.Offset, m)
		}
		if at, ok := m.start("later"); !ok || at != 30 || len(m.Starts) != 2 {
			t.Errorf("starts %+v", m.Starts)
		}
	}
}

// A store that began later than another takes nothing of the records before that.
func TestReplayOfStoresThatBeganLater(t *testing.T) {
	w := newLocalWorld(t)
	w.commit(id(2, 4), began, inA, inB)
	p := w.compare()
	p.position(nil)
	w.task.mute()
	later, err := w.task.store.KeyValue("later")
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []int64{10, 29, 30, 31, 12} {
		r := kafka.Record{Topic: "a", Offset: at}
		w.task.replaying(&r)
		if err := later.Put(fmt.Append(nil, i), []byte("v"), 1); err != nil {
			t.Fatal(err)
		}
		if _, _, ok, err := later.Get(fmt.Append(nil, i)); err != nil || ok != (at >= 30) {
			t.Errorf("a write at offset %d is there: %t, %v", at, ok, err)
		}
	}
	counts, err := w.task.store.KeyValue("counts")
	if err != nil {
		t.Fatal(err)
	}
	if err := counts.Put([]byte("k"), []byte("v"), 1); err != nil {
		t.Fatal(err)
	}
	if _, _, ok, _ := counts.Get([]byte("k")); ok {
		t.Error("the store with a changelog was written")
	}
}

// Records of an input that is through wait for the other, and a hole in front of the group's offset is noticed.
func TestWaitsForTheReplay(t *testing.T) {
	w := newLocalWorld(t)
	w.commit(id(2, 4), began, inA, inB)
	w.standAt(id(2, 3), false, 60, 90)
	w.compare().position(nil)
	h := &Hosted{w: NewWorker(*w.task.cfg, nil)}
	h.w.adopt(w.task)
	for _, c := range []struct {
		tp     kafka.TopicPartition
		offset int64
		waits  bool
	}{{inA, 60, false}, {inA, 99, false}, {inA, 100, true}, {inB, 95, false}, {inB, 105, false}} {
		if got := h.Waits(c.tp, c.offset); got != c.waits {
			t.Errorf("%v@%d waits: %t", c.tp, c.offset, got)
		}
	}
	if !h.Replaying(inA) || !w.task.replayed() {
		t.Error("it is not at its end")
	}
}

func TestMetadataStarts(t *testing.T) {
	want := Metadata{PartitionTime: 7, ID: id(2, 4), StreamTime: 9, Sources: []Covered{{1, 2}}, Stores: []Covered{{3, 0}, {4, 5}},
		Starts: []StoreStart{{3, 1 << 40}, {9, 0}}}
	s, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeMetadata(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for n := range len(s) / 4 {
		if _, err := DecodeMetadata(s[:len(s)-4*n-4]); err == nil {
			t.Errorf("%d characters short: no error", 4*n+4)
		} else if !errors.Is(err, ErrForeignMetadata) && !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%d characters short: %v", 4*n+4, err)
		}
	}
}
