package statestore

import (
	"errors"
	"maps"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore/internal/checkpoint"
	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// openExternal puts a user's store in its place, and finds out how far it is.
func (s *TaskStore) openExternal(st *store) error {
	x := s.externals[slices.IndexFunc(s.externals, func(x *externalRows) bool { return x.st.spec.Name == st.spec.Name })]
	x.st = st
	st.rows = x
	err := x.guard("open", func() (err error) {
		if x.store.ManagesOffsets() {
			x.at, err = x.store.Point()
			return err
		}
		if st.spec.Changelog == "" {
			return errors.New("it has neither offsets of its own nor a changelog from which a torn write could be made good")
		}
		x.file = &checkpointFile{fs: s.o.FS, path: checkpoint.Path(s.o.FS, s.dir, st.spec.Name), log: s.log,
			topic: st.spec.Changelog, partition: st.spec.ChangelogPartition, nowhere: s.o.Engine == Memory}
		x.at.Offset, err = x.file.read(s.committed.Load().stores[st.id].offset)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.believe(x); err != nil {
		return err
	}
	s.putBeside(x)
	return nil
}

// believe takes over what a user's store says of itself. It holds the state of the last
// commit only if it stands exactly where the commit record says: a crash may have come
// between the two, in either order when the machine crashed.
func (s *TaskStore) believe(x *externalRows) error {
	p := *s.committed.Load()
	p.stores = maps.Clone(p.stores)
	sp := p.stores[x.st.id]
	complete := sp.complete && sp.offset == x.at.Offset && (x.file != nil || x.at.ID == p.id)
	if complete && x.at.Offset.IsAbsent() && (x.file != nil || x.at.ID.IsZero()) { // nothing tells what it holds
		empty, err := isEmpty(x, x.st.id)
		if err != nil {
			return err
		}
		complete = empty
	}
	if x.st.spec.Kind.expiring() && (isAhead(x.at.Offset, sp.offset) || !complete && x.ofAnotherContent(p.id, sp)) {
		s.log.Warn("the task's database has lost the store's stream time: the store is restored from the start of its changelog",
			"store", x.st.spec.Name, "store at", x.at.Offset, "database at", sp.offset)
		x.at = StorePoint{}
		if x.file != nil {
			if err := x.file.write(Offset{}); err != nil {
				return err
			}
		}
	}
	sp.offset, sp.complete = x.at.Offset, complete
	if !complete && x.st.spec.Kind == KindVersioned {
		// No version of the changelog to come is late because of what was put behind it.
		sp.before, sp.clock = sp.clock, kinds.Clock{}
	}
	p.stores[x.st.id] = sp
	// What the store says of itself is durable. What Register has written by now is not.
	durable := p
	s.foundOtherwise(&p, &durable)
	return nil
}

// foundOtherwise makes p what is committed and durable what is on the disk, because a user's store has turned out to be elsewhere than the
// record says. A sync that is under way began with the record's word: what it has synced is not counted, and the next one syncs again.
func (s *TaskStore) foundOtherwise(p, durable *progress) {
	p.seq = s.committed.Load().seq + 1
	durable.seq = p.seq - 1
	s.committed.Store(p)
	s.durable.Store(durable)
}

// ofAnotherContent tells whether the store was emptied and restored since the record was written, up to an offset that
// the record need not find too large: it is complete at a later commit, or it is not complete, which a
// complete store becomes in no other way. The record's stream time is that of the former content.
func (x *externalRows) ofAnotherContent(id CommitID, recorded storeProgress) bool {
	if x.file != nil || x.at.Offset.IsAbsent() {
		return false
	}
	return id.Compare(x.at.ID) < 0 || recorded.complete && x.at.ID.IsZero()
}

// isAhead tells whether a store has followed its changelog further than the database knows. Its
// stream time, which the database keeps, is then that of another state.
func isAhead(store, recorded Offset) bool {
	at, ok := store.Next()
	known, _ := recorded.Next()
	return ok && at > known || store.IsUnknown() && !recorded.IsUnknown()
}
