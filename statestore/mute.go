package statestore

// Mute has the stores with these names, and no others, ignore writes: a write returns as if it had been
// done, and is not seen by reads, nor in the next interval. It is for a replay of records whose writes to
// these stores are in them already. Names that are not registered are passed over. No name ends it.
func (s *TaskStore) Mute(names ...string) {
	for _, st := range s.registered() {
		st.muted = false
		for _, name := range names {
			st.muted = st.muted || name == st.spec.Name
		}
	}
}

// ignored is the outcome of a put into a muted versioned store: that of a record in order.
func (v *Versioned) ignored() PutResult { return PutResult{Stored: true, Current: true} }
