package statestore

import (
	"fmt"
	"iter"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

// Logged gives what a store holds in the form of its changelog: records that [TaskStore.Restore]
// turns, in an empty store, into the same content. It is for a changelog that has lost it. What has expired
// is left out; of a versioned store all versions are given, and where there was no value. The record
// timestamp of a kind that does not keep it is the start of a window, the end of a session, or the stream
// time, which is as long as the broker must keep the record.
//
// held are the records that the changelog still has, nil if none: those of keys that the store does not hold are
// deleted, since their deletion may be among what was lost. Its records are used until its next turn.
//
// It is the owner's, and there must be no uncommitted writes ([ErrUncommitted]). The slices are valid until the
// loop's next turn. An error, also one of held, ends the loop: it is the second value of the last turn.
func (s *TaskStore) Logged(name string, held iter.Seq2[RestoreRecord, error]) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		st, err := s.beginRestore("read for the changelog", name)
		if err != nil {
			yield(Change{}, err)
			return
		}
		if held == nil {
			held = func(func(RestoreRecord, error) bool) {}
		}
		x := logging{s: s, st: st, held: held, yield: func(c Change) bool {
			c.Store, c.Schema = st.spec.Name, st.spec.SchemaVersion
			return yield(c, nil)
		}}
		steps := []func() error{x.strays, x.rows}
		if st.versioned != nil {
			steps = []func() error{x.oldVersions, x.strays, x.newVersions}
		}
		for _, step := range steps {
			if err := step(); err != nil && !x.left {
				yield(Change{}, err)
				return
			}
			if x.left {
				return
			}
		}
	}
}

// logging is one loop over a store's content as changelog.
type logging struct {
	s     *TaskStore
	st    *store
	held  iter.Seq2[RestoreRecord, error]
	yield func(Change) bool
	left  bool // the loop was
}

func (x *logging) give(c Change) bool {
	x.left = x.left || !x.yield(c)
	return !x.left
}

// liveRows gives each row that has not expired, taken apart, with its whole key in the database; a row that says
// that there was no value too.
func (s *TaskStore) liveRows(st *store, each func(key []byte, e StoredEntry) bool) (err error) {
	var from []byte
	if st.layout != nil {
		from = st.layout.Expired(&st.clock)
	}
	lower, upper := st.bounds(from, nil)
	it, err := st.rows.NewIter("read for the changelog", lower, upper)
	if err != nil {
		return err
	}
	defer it.Close() // its error is that of the last move
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()[storePrefixLen:]
		e, _, err := decodeRow(st.spec.Kind, Row{Key: key, Value: it.Value()})
		if err != nil {
			return st.rows.Fail("read for the changelog", fmt.Errorf("store %q: %w", st.spec.Name, err))
		}
		if !each(key, e) {
			return nil
		}
	}
	return it.Err()
}

func (x *logging) rows() error {
	st, streamTime := x.st, max(0, x.s.StreamTime())
	return x.s.liveRows(st, func(key []byte, e StoredEntry) bool {
		c := Change{Key: st.logged(key), Value: e.Value, Timestamp: max(0, e.Timestamp)}
		switch st.spec.Kind {
		case KindKeyValue:
			c.Timestamp = streamTime
		case KindWindow:
			c.Timestamp = e.Start
		case KindSession:
			c.Timestamp = e.End
		}
		if c.Value == nil {
			c.Value = []byte{} // nil would delete it
		}
		return x.give(c)
	})
}

// strays deletes what the changelog holds and the store does not.
func (x *logging) strays() error {
	for r, err := range x.held {
		if err != nil {
			return err
		}
		c, stray, err := x.s.stray(x.st, r)
		if err != nil {
			return err
		}
		if stray && !x.give(c) {
			return nil
		}
	}
	return nil
}

// stray gives the record that deletes what a record of the changelog holds, if the store does not have it. An expired
// one is not stray.
func (s *TaskStore) stray(st *store, r RestoreRecord) (c Change, stray bool, err error) {
	const op = "compare with the changelog"
	if r.Value == nil {
		return Change{}, false, nil
	}
	c = Change{Key: r.Key, Timestamp: max(0, r.Timestamp)}
	if st.versioned != nil {
		// Not before the history: that would be refused as too old, and no read looks there.
		c.Timestamp = max(c.Timestamp, st.clock.Now()-st.layout.Retention)
		_, there, err := st.versioned.v.GetAsOf(r.Key, c.Timestamp)
		return c, !there, st.versioned.rows.checked(op, err)
	}
	row := r.Key
	if logic := st.segmented(); logic != nil {
		if row, err = logic.Restored(r.Key); err != nil {
			return Change{}, false, st.malformed(op, s.dir, []RestoreRecord{r}, 0, err)
		}
		if row == nil {
			return Change{}, false, nil
		}
	}
	_, there, err := st.rows.Get(op, append(st.prefix[:], row...), nil)
	return c, !there, err
}

// segmented is the logic of a window or session store, nil of another.
func (st *store) segmented() segmented {
	switch {
	case st.window != nil:
		return &st.window.w
	case st.session != nil:
		return &st.session.x
	}
	return nil
}

// Doubt records that the changelogs of stores do not hold them: their offsets become unknown, until a Complete or a
// Commit says what they are. Nothing else changes. It is the owner's, and there must be no uncommitted writes.
func (s *TaskStore) Doubt(names ...string) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.nothingUncommitted(); err != nil {
		return fmt.Errorf("doubt offsets of %s: %w", s.dir, err)
	}
	unknown := map[string]Offset{}
	for _, name := range names {
		unknown[name] = CleanUnknown()
	}
	s.write.Lock()
	defer s.write.Unlock()
	next, err := s.nextProgress(unknown)
	if err != nil {
		return fmt.Errorf("doubt offsets of %s: %w", s.dir, err)
	}
	return s.apply("doubt offsets", next, 0, func(engine.Batch) error { return nil })
}
