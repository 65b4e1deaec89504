package statestore

import (
	"fmt"
	"iter"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// Versioned is a versioned store of a task: of each key the newest value, and the values
// before it for as long as the history goes back. It belongs to the task store's owner. Keys are any
// bytes; timestamps are milliseconds, not negative.
//
// The store's own stream time is the largest timestamp ever written to it. The newest value of a key
// never expires; the others are found for times from stream time - history on.
//
// Its scans see the store as it is when the loop begins, all writes included; writes made
// in the loop are allowed and not seen. An error ends the loop: it is the second value of the
// last turn, with an empty version.
type Versioned struct {
	rows storeRows
	v    kinds.Versioned
}

// Version is a value of a key and when it was valid. Its slices are valid until the next
// call on any store of the task, or the loop's next turn.
type Version struct {
	Key, Value []byte
	// From is the timestamp at which it became valid, To the one from which on it is not:
	// valid for From <= t < To. To has no meaning when Current.
	From, To int64
	// Current: it is valid until further notice.
	Current bool
}

// PutResult is what became of a put into a versioned store.
type PutResult struct {
	// Stored is false for a version older than the history: a dropped record. The rest is
	// then zero.
	Stored bool
	// Current: the version put is the newest one, valid until further notice.
	Current bool
	// ValidTo is, unless Current, the timestamp of the next newer version.
	ValidTo int64
}

// Versioned gives a registered versioned store.
func (s *TaskStore) Versioned(name string) (*Versioned, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	st, err := s.find(name)
	if err == nil && st.versioned == nil {
		err = st.isNot("versioned")
	}
	if err != nil {
		return nil, err
	}
	return st.versioned, nil
}

// Name is the store's name.
func (v *Versioned) Name() string { return v.rows.Name() }

// History is how far back versions go, in milliseconds.
func (v *Versioned) History() int64 { return v.v.Retention }

// StreamTime is the largest timestamp ever written to the store, or [NoStreamTime].
func (v *Versioned) StreamTime() int64 { return v.v.Clock.Now() }

// Put writes the value that is valid from timestamp on; nil means that from then on there
// is none. Another version with the same timestamp is replaced. Key and value are copied.
func (v *Versioned) Put(key, value []byte, timestamp int64) (PutResult, error) {
	if v.rows.st.muted {
		return v.ignored(), v.rows.s.usable()
	}
	r, err := v.v.Put(key, value, timestamp)
	if err != nil {
		return PutResult{}, v.failed("put", err)
	}
	return PutResult(r), nil
}

// Delete is Put of nil, and gives the version that was valid at timestamp before; ok is
// false when there was none, or the timestamp is older than the history (then nothing is
// written: a dropped record, which [Versioned.Put] can tell from the other case).
func (v *Versioned) Delete(key []byte, timestamp int64) (before Version, ok bool, err error) {
	if v.rows.st.muted {
		return v.GetAsOf(key, timestamp)
	}
	x, ok, err := v.v.Delete(key, timestamp)
	if err != nil {
		return Version{}, false, v.failed("delete", err)
	}
	return Version(x), ok, nil
}

// Get gives the newest version of key.
func (v *Versioned) Get(key []byte) (Version, bool, error) {
	x, ok, err := v.v.Get(key)
	if err != nil {
		return Version{}, false, v.failed("get", err)
	}
	return Version(x), ok, nil
}

// GetAsOf gives the version of key that was valid at asOf. Before the history there is
// only the newest version.
func (v *Versioned) GetAsOf(key []byte, asOf int64) (Version, bool, error) {
	x, ok, err := v.v.GetAsOf(key, asOf)
	if err != nil {
		return Version{}, false, v.failed("get", err)
	}
	return Version(x), ok, nil
}

// Versions gives the versions of key that were valid at any time from <= t <= to, oldest
// first. Where from is before the history, it gives what has not been removed yet; where to is, only the newest version.
func (v *Versioned) Versions(key []byte, from, to int64) iter.Seq2[Version, error] {
	return v.entries(v.v.Versions(key, from, to, false))
}

// ReverseVersions is Versions, newest first.
func (v *Versioned) ReverseVersions(key []byte, from, to int64) iter.Seq2[Version, error] {
	return v.entries(v.v.Versions(key, from, to, true))
}

// All gives every version that is kept, in no order that can be relied on but that of the
// versions of one key, oldest first.
func (v *Versioned) All() iter.Seq2[Version, error] { return v.entries(v.v.All()) }

func (v *Versioned) entries(seq iter.Seq2[kinds.Version, error]) iter.Seq2[Version, error] {
	return entries(&v.rows, seq, func(x kinds.Version) Version { return Version(x) })
}

func (v *Versioned) failed(op string, err error) error {
	return fmt.Errorf("versioned store %q: %w", v.Name(), v.rows.checked(op, err))
}
