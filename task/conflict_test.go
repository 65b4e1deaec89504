package task

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// conflicts are the ways in which store and group cannot both be right, and where each choice goes
// on: offsets of a and b; -1 is the start position.
var conflicts = map[string]struct {
	prepare       func(w *world)
	accept, store [2]int64
}{
	"store ahead": {func(w *world) {
		w.apply(id(2, 4))
		w.commit(id(2, 3), nil, inA, inB)
		w.at(70)
	}, [2]int64{70, 70}, [2]int64{100, 100}},
	"offsets lost": {func(w *world) { w.apply(id(2, 4)) }, [2]int64{-1, -1}, [2]int64{100, 100}},
	"one partition's offset lost": {func(w *world) {
		w.apply(id(2, 4))
		w.commit(id(2, 4), nil, inA)
	}, [2]int64{100, -1}, [2]int64{100, 100}},
	"offsets reset": {func(w *world) {
		w.apply(id(2, 4))
		w.group[inA] = kafka.CommittedOffset{TopicPartition: inA, Offset: 1}
		w.group[inB] = kafka.CommittedOffset{TopicPartition: inB, Offset: 2}
	}, [2]int64{1, 2}, [2]int64{100, 100}},
	"one offset reset": {func(w *world) {
		w.apply(id(2, 4))
		w.commit(id(2, 4), nil, inA)
		w.group[inB] = kafka.CommittedOffset{TopicPartition: inB, Offset: 2}
	}, [2]int64{100, 2}, [2]int64{100, 100}},
	"ids differ": {func(w *world) {
		w.apply(id(2, 4))
		w.commit(id(2, 3), nil, inA)
		w.commit(id(9, 3), nil, inB)
	}, [2]int64{100, 100}, [2]int64{100, 100}},
	"input created again": {func(w *world) {
		w.apply(id(2, 4))
		w.commit(id(2, 4), nil, inA, inB)
		w.task.covered.sources[0].Topic++
	}, [2]int64{-1, 100}, [2]int64{100, 100}},
}

// at lets all offsets of the group be n.
func (w *world) at(n int64) {
	for tp, o := range w.group {
		o.Offset = n
		w.group[tp] = o
	}
}

// What each choice makes of each conflict: without one the task stops; with one it goes on, under an
// epoch that neither side has seen.
func TestChoices(t *testing.T) {
	for name, c := range conflicts {
		for choice, want := range map[Conflict][2]int64{Stop: {}, AcceptReset: c.accept, UseStore: c.store} {
			t.Run(name+"/"+choice.String(), func(t *testing.T) {
				w := newWorld(t)
				c.prepare(w)
				w.task.cfg.OnConflict = choice
				if choice == Stop {
					if _, err := w.task.compare(w.group); err == nil || !resolvable(err) {
						t.Errorf("%v", err)
					}
					return
				}
				p := w.compare()
				tp := w.task.changelog("counts")
				if err := p.bound(map[kafka.TopicPartition]int64{}, map[kafka.TopicPartition]int64{tp: 60}); err != nil {
					t.Fatal(err)
				}
				p.position(map[kafka.TopicPartition]int64{inA: -1, inB: -1})
				if got := [2]int64{w.task.queue(inA).position, w.task.queue(inB).position}; got != want {
					t.Errorf("goes on at %v, want %v", got, want)
				}
				if w.task.epoch <= 2 || name == "ids differ" && choice == AcceptReset && w.task.epoch <= 9 {
					t.Errorf("epoch %d", w.task.epoch)
				}
				if w.task.streamTime != 5 {
					t.Errorf("stream time %d", w.task.streamTime)
				}
				// The state is that of the store and of what the changelog has beyond it; with use-store it has nothing.
				if len(p.stores) != 1 || p.stores[0].clear || p.stores[0].status.From != 50 || p.stores[0].still != (choice == UseStore) {
					t.Errorf("stores %+v", p.stores[0])
				}
			})
		}
	}
}

// The disk and the offsets are lost: the changelogs are all there is, and can be accepted.
func TestAcceptChangelog(t *testing.T) {
	for _, left := range []bool{false, true} {
		w := newWorld(t)
		if left {
			w.left(true)
		}
		w.task.cfg.OnConflict = AcceptReset
		p := w.compare()
		tp := w.task.changelog("counts")
		if err := p.bound(map[kafka.TopicPartition]int64{tp: 3}, map[kafka.TopicPartition]int64{tp: 60}); err != nil {
			t.Fatal(err)
		}
		if len(p.stores) != 1 || p.stores[0].status.From != 3 || p.stores[0].status.End != 60 || p.stores[0].clear != left {
			t.Errorf("stores %+v", p.stores[0])
		}
	}
}

// A store that does not tell where its content ends cannot be used.
func TestUseStoreRefuses(t *testing.T) {
	tp := kafka.TopicPartition{Topic: "app-counts-changelog"}
	for name, c := range map[string]struct {
		prepare func(w *world)
		end     int64
		words   string
	}{
		"no commit":              {func(w *world) { w.commit(id(2, 3), nil, inA) }, 60, "has no commit"},
		"not complete":           {func(w *world) { w.apply(id(2, 4)); w.left(true); w.commit(id(2, 3), nil, inA) }, 60, "not complete"},
		"changelog holds enough": {func(w *world) { w.apply(id(2, 4)); w.commit(id(2, 3), nil, inA, inB) }, 50, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.prepare(w)
			w.task.cfg.OnConflict = UseStore
			p, err := w.task.compare(w.group)
			if err == nil {
				err = p.bound(map[kafka.TopicPartition]int64{}, map[kafka.TopicPartition]int64{tp: c.end})
			}
			if c.words == "" && err != nil || c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words)) {
				t.Errorf("%v, want %q", err, c.words)
			}
		})
	}
}

// Records behind the store mean that a commit was lost out of the offsets whose position nobody knows.
func TestUseStoreMeetsRecords(t *testing.T) {
	r := newRestoring(t)
	r.plan.stores[0].still = true
	if err := r.restore(); err == nil || !strings.Contains(err.Error(), "goes on behind the store") {
		t.Errorf("%v", err)
	}
	if r.at() != statestore.At(50) {
		t.Errorf("the store is at %v", r.at())
	}
	r = newRestoring(t)
	r.plan.stores[0].still = true
	r.feed.fetches = r.feed.fetches[2:] // a marker alone
	if err := r.restore(); err != nil {
		t.Errorf("%v", err)
	}
}

func TestParseConflict(t *testing.T) {
	for _, c := range []Conflict{Stop, AcceptReset, UseStore} {
		if got, err := ParseConflict(c.String()); got != c || err != nil {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	if _, err := ParseConflict("x"); err == nil || errors.Is(err, ErrStoreAhead) {
		t.Errorf("%v", err)
	}
}
