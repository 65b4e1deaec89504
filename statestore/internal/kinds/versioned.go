package kinds

import (
	"bytes"
	"iter"
	"math"
)

// Versioned is a versioned store over rows. Retention is how far its history goes back.
type Versioned struct {
	Rows Rows
	Layout
	Clock *Clock
	// Unlogged stores have no changelog.
	Unlogged bool
	// Ended is a time after which no row of a key ends that has no newest value: so such a key
	// need not be looked for in the history. What is not known must be the stream time.
	Ended int64

	key, value, moved, deleted []byte // to be used again
}

// PutResult is what became of a put.
type PutResult struct {
	// Stored is false for a version older than the history.
	Stored bool
	// Current: no version is newer; else ValidTo is when the next one begins.
	Current bool
	ValidTo int64
}

// tooOld tells whether timestamp is before the history.
func (v *Versioned) tooOld(timestamp int64) bool { return timestamp < v.Clock.Now()-v.Retention }

// Put writes the version that begins at timestamp; a nil value means that there is none from then on.
func (v *Versioned) Put(key, value []byte, timestamp int64) (PutResult, error) {
	return v.put(key, value, timestamp, !v.Unlogged)
}

// Restore is Put for a record of the changelog.
func (v *Versioned) Restore(key, value []byte, timestamp int64) error {
	_, err := v.put(key, value, timestamp, false)
	return err
}

// Delete is Put of no value, and gives what was valid at timestamp before.
func (v *Versioned) Delete(key []byte, timestamp int64) (before Version, ok bool, err error) {
	if v.tooOld(timestamp) {
		return Version{}, false, nil
	}
	before, ok, err = v.GetAsOf(key, timestamp)
	if err != nil {
		return Version{}, false, err
	}
	v.deleted = append(notNil(v.deleted), before.Value...)
	before.Value = v.deleted
	_, err = v.Put(key, nil, timestamp)
	return before, ok && err == nil, err
}

func (v *Versioned) put(key, value []byte, timestamp int64, log bool) (PutResult, error) {
	if err := checkTime("version from", timestamp); err != nil {
		return PutResult{}, err
	}
	if v.tooOld(timestamp) {
		return PutResult{}, nil
	}
	v.Clock.Advance(timestamp)
	if value == nil {
		v.Ended = max(v.Ended, timestamp)
	}
	if log {
		v.key = appendLog(v.key[:0], key, timestamp)
		if err := v.Rows.Put(v.key, value, timestamp, true); err != nil {
			return PutResult{}, err
		}
	}
	latest, ok, err := v.Get(key)
	if err != nil {
		return PutResult{}, err
	}
	if ok && timestamp >= latest.From {
		return PutResult{Stored: true, Current: true}, v.replaceLatest(latest, value, timestamp)
	}
	return v.insert(key, value, timestamp, latest, ok)
}

// replaceLatest puts a version that is not older than the newest one that has a value.
func (v *Versioned) replaceLatest(latest Version, value []byte, timestamp int64) error {
	if timestamp > latest.From { // the row that ends there also says it when value is nil
		if err := v.putHistory(history{latest.Key, latest.From, timestamp, latest.Value}); err != nil {
			return err
		}
	}
	if err := v.putLatest(latest.Key, value, timestamp); err != nil {
		return err
	}
	if value != nil || timestamp > latest.From {
		return nil
	}
	return v.markEnd(latest.Key, timestamp)
}

// insert puts a version that is older than the latest one, or a key's that has none.
func (v *Versioned) insert(key, value []byte, timestamp int64, latest Version, hasLatest bool) (PutResult, error) {
	var h history
	found, err := false, error(nil)
	if hasLatest || timestamp < v.Ended {
		if h, found, err = v.firstEnding(key, timestamp); err != nil {
			return PutResult{}, err
		}
	}
	switch {
	case found && h.from <= timestamp:
		if h.from < timestamp {
			before := history{key, h.from, timestamp, h.value}
			if err := v.putHistory(before); err != nil {
				return PutResult{}, err
			}
		}
		return PutResult{Stored: true, ValidTo: h.to}, v.putHistory(history{key, timestamp, h.to, value})
	case found:
		return PutResult{Stored: true, ValidTo: h.from}, v.putHistory(history{key, timestamp, h.from, value})
	case hasLatest:
		return PutResult{Stored: true, ValidTo: latest.From}, v.putHistory(history{key, timestamp, latest.From, value})
	case value != nil:
		return PutResult{Stored: true, Current: true}, v.putLatest(key, value, timestamp)
	}
	return PutResult{Stored: true, Current: true}, v.markEnd(key, timestamp)
}

// markEnd makes known that from timestamp on a key has no value, unless a row says it.
func (v *Versioned) markEnd(key []byte, timestamp int64) error {
	v.key = v.appendHistory(v.key[:0], key, timestamp)
	if _, _, ok, err := v.Rows.Get(v.key); ok || err != nil {
		return err
	}
	return v.putHistory(history{key, timestamp, timestamp, nil})
}

func (v *Versioned) putLatest(key, value []byte, timestamp int64) error {
	v.key = appendLatest(v.key[:0], key)
	return v.Rows.Put(v.key, value, timestamp, false)
}

func (v *Versioned) putHistory(h history) error {
	v.moved = append(v.moved[:0], noValue)
	if h.value != nil {
		v.moved[0] = hasValue
		v.moved = append(v.moved, h.value...)
	}
	v.key = v.appendHistory(v.key[:0], h.key, h.to)
	return v.Rows.Put(v.key, v.moved, h.from, false)
}

// notNil empties a buffer for a value: an empty one must not become nil, which is none.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b[:0]
}

// Get gives the newest version.
func (v *Versioned) Get(key []byte) (Version, bool, error) {
	v.key = appendLatest(v.key[:0], key)
	value, from, ok, err := v.Rows.Get(v.key)
	if !ok || err != nil {
		return Version{}, false, err
	}
	return Version{Key: key, Value: value, From: from, Current: true}, true, nil
}

// GetAsOf gives the version that was valid at a time; before the history only the newest one.
func (v *Versioned) GetAsOf(key []byte, asOf int64) (Version, bool, error) {
	latest, ok, err := v.Get(key)
	if err != nil || ok && latest.From <= asOf {
		return latest, ok, err
	}
	if v.tooOld(asOf) || !ok && asOf >= v.Ended {
		return Version{}, false, nil
	}
	h, found, err := v.firstEnding(key, asOf)
	if !found || err != nil || h.from > asOf || h.value == nil {
		return Version{}, false, err
	}
	h.key = key
	return h.version(), true, nil
}

// lastEnd is a time after which no row of the history ends. While a store is restored that was found
// with rows, and behind its stream time, that is later than the clock.
func (v *Versioned) lastEnd() int64 { return max(v.Clock.Now(), v.Ended) }

// firstEnding gives the first row of a key's history that ends after a time. Its value is
// valid until the next call of firstEnding. Segment by segment, because most often the first one has it.
func (v *Versioned) firstEnding(key []byte, after int64) (h history, found bool, err error) {
	last := v.lastEnd()
	if after >= last {
		return history{}, false, nil
	}
	low := max(after, -1) + 1
	for s := max(v.segment(low), v.Oldest(v.Clock)); s <= v.segment(last); s++ {
		for r, err := range v.Rows.Scan(keyRanges(s, s, key, appendTime(nil, low), appendTime(nil, math.MaxInt64)), false) {
			if err != nil {
				return history{}, false, err
			}
			h, err := decodeHistory(r)
			if err != nil {
				return history{}, false, damaged(err)
			}
			if h.of(key) {
				h.key = nil // the scan's
				if h.value != nil {
					v.value = append(notNil(v.value), h.value...)
					h.value = v.value
				}
				return h, true, nil
			}
		}
	}
	return history{}, false, nil
}

// Versions gives the versions of a key that were valid at any time from <= t <= to, oldest
// first. When to is before the history, there is only the newest one.
func (v *Versioned) Versions(key []byte, from, to int64, reverse bool) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		if from > to {
			return
		}
		var ranges []Range
		if from < v.Clock.Now() && !v.tooOld(to) {
			low := max(from, -1) + 1
			ranges = keyRanges(max(v.segment(low), v.Oldest(v.Clock)), v.segment(v.Clock.Time), key, appendTime(nil, low), appendTime(nil, math.MaxInt64))
		}
		ranges = append(ranges, keyRanges(latestArea, latestArea, key, nil, nil)...)
		user := bytes.Clone(key)
		v.scan(ranges, reverse, func(x *Version) bool { return x.From <= to && bytes.Equal(x.Key, user) }, yield)
	}
}

// All gives all versions: those of the history by segment, key and time, then the newest by key.
func (v *Versioned) All() iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		if !v.Clock.Known {
			return
		}
		ranges := append(segmentRange(v.Oldest(v.Clock), v.segment(v.Clock.Time)), segmentRange(latestArea, latestArea)...)
		v.scan(ranges, false, func(*Version) bool { return true }, yield)
	}
}

func (v *Versioned) scan(ranges []Range, reverse bool, shows func(*Version) bool, yield func(Version, error) bool) {
	for r, err := range v.Rows.Scan(ranges, reverse) {
		var x Version
		var ok bool
		if err == nil {
			x, ok, err = DecodeVersion(r)
			err = damaged(err)
		}
		if err != nil {
			yield(Version{}, err)
			return
		}
		if ok && shows(&x) && !yield(x, nil) {
			return
		}
	}
}
