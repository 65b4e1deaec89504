package task

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// filled lets the store hold a key, complete at commit id, its changelog at offset.
func (w *world) filled(id statestore.CommitID, offset statestore.Offset) {
	w.t.Helper()
	w.left(true)
	if err := w.task.store.Complete(statestore.Progress{ID: id, StreamTime: 5}, map[string]statestore.Offset{"counts": offset}); err != nil {
		w.t.Fatal(err)
	}
}

// A store that is complete at the group's commit is written again when its changelog does not hold it, and left alone
// when it does.
func TestCompareSeeds(t *testing.T) {
	at := statestore.At(50)
	for _, c := range []struct {
		name       string
		offset     statestore.Offset
		recreated  bool
		start, end int64
		why        string
	}{
		{"fits", at, false, 0, 50, ""},
		{"a marker behind it", at, false, 0, 52, ""},
		{"created again", at, true, 0, 0, "deleted and created again"},
		{"created again, and half written", at, true, 0, 70, "deleted and created again"},
		{"end lost", at, false, 0, 49, "ends at 49"},
		{"all deleted", at, false, 50, 50, "begins at 50"},
		{"beginning deleted", at, false, 49, 50, ""}, // nothing tells that it was not compaction
		{"half written", statestore.CleanUnknown(), false, 0, 50, "not written to the changelog to the end"},
		{"no offset", statestore.Offset{}, false, 0, 0, "no offset"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.filled(id(2, 3), c.offset)
			change := func(m *Metadata) {
				if c.recreated {
					m.Stores = []Covered{{HashName("counts"), 99}}
				}
			}
			w.commit(id(2, 3), change, inA, inB)
			p := w.compare()
			tp := w.task.changelog("counts")
			if err := p.bound(map[kafka.TopicPartition]int64{tp: c.start}, map[kafka.TopicPartition]int64{tp: c.end}); err != nil {
				t.Fatal(err)
			}
			switch {
			case len(p.stores) != 0:
				t.Errorf("it is restored: %+v", p.stores[0])
			case c.why == "" && len(p.seeds) != 0:
				t.Errorf("it is written again: %s", p.seeds[0].why)
			case c.why != "" && (len(p.seeds) != 1 || !strings.Contains(p.seeds[0].why, c.why)):
				t.Errorf("seeds %+v, want one because of %q", p.seeds, c.why)
			}
		})
	}
}

// Whose store is not complete at the group's commit does not start with a changelog that was created again.
func TestCompareChangelogCreatedAgain(t *testing.T) {
	for name, at := range map[string]statestore.CommitID{"behind": id(2, 2), "ahead": id(2, 4)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.filled(at, statestore.At(50))
			w.commit(id(2, 3), func(m *Metadata) { m.Stores = []Covered{{HashName("counts"), 99}} }, inA, inB)
			w.refused(ErrTopicChanged, "store counts", at.String(), "2/3", "host that had the task last")
		})
	}
}

// With use-store the store is the truth for a changelog that ends before it, or is another topic.
func TestUseStoreSeeds(t *testing.T) {
	tp := kafka.TopicPartition{Topic: "app-counts-changelog"}
	for name, c := range map[string]struct {
		topic uint32 // that the group's offsets name, if not the present one
		end   int64
	}{"changelog cut short": {0, 49}, "changelog created again": {99, 60}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(id(2, 4))
			w.commit(id(2, 3), func(m *Metadata) {
				if c.topic != 0 {
					m.Stores = []Covered{{HashName("counts"), c.topic}}
				}
			}, inA, inB)
			w.task.cfg.OnConflict = UseStore
			var err error
			p := &plan{}
			if c.topic == 0 {
				p = w.compare()
			} else if p, err = w.task.choose(UseStore, w.group, ErrStoreAhead); err != nil {
				t.Fatal(err)
			}
			if err := p.bound(map[kafka.TopicPartition]int64{}, map[kafka.TopicPartition]int64{tp: c.end}); err != nil {
				t.Fatal(err)
			}
			if len(p.seeds) != 1 || len(p.stores) != 0 {
				t.Errorf("seeds %+v, restores %+v", p.seeds, p.stores)
			}
		})
	}
}

// A store whose offset is one of the topic before that was created again, and which another process has written again
// meanwhile, is restored whole: its offset means nothing there.
func TestCompareOffsetOfAFormerTopic(t *testing.T) {
	w := newWorld(t)
	w.filled(id(2, 3), statestore.At(50))
	if err := errors.Join(w.task.adopt(), w.task.close()); err != nil {
		t.Fatal(err)
	}
	topic := w.task.cfg.Topics["app-counts-changelog"]
	topic.ID = kafka.TopicID{33}
	w.task.cfg.Topics["app-counts-changelog"] = topic
	var err error
	if w.task, err = newTask(w.task.cfg, w.task.sub, w.task.id); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.task.close() })
	w.commit(id(3, 1), nil, inA, inB)
	p := w.compare()
	if len(p.stores) != 1 || !p.stores[0].clear || !strings.Contains(p.stores[0].why, "created again") {
		t.Fatalf("plan %+v", p)
	}
	if err := w.task.adopt(); err != nil {
		t.Fatal(err)
	}
	if p := w.compare(); len(p.stores) != 1 || p.stores[0].clear {
		t.Errorf("adopted, and cleared again: %+v", p.stores)
	}
}
