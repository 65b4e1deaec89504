package kinds

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Version is a value of a key, valid for From <= t < To.
type Version struct {
	Key, Value []byte
	From, To   int64
	// Current: there is no end yet.
	Current bool
}

// A versioned store has three areas of rows:
//
//	latest:   latestArea, key                     timestamp: From; the newest value
//	history:  segment of To, key, To              timestamp: From; 1 and the value, or 0 for no value
//	log:      logArea, timestamp, key             the versions put, as they go into the changelog
//
// Every row of the history says from when to when there was a value, or none. A key whose newest
// version is "no value" has no latest row. Where no row ends when that version begins, a row
// without length, From = To, marks the time: an older version that comes later ends there.
//
// The log area is ordered by time, so that whoever reads the changelog in its order refuses
// none of the versions of an interval as too old.

const (
	noValue  byte = 0
	hasValue byte = 1
)

func appendLatest(b, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(b, latestArea), key...)
}

func appendLog(b, key []byte, timestamp int64) []byte {
	return append(appendTime(binary.BigEndian.AppendUint64(b, logArea), timestamp), key...)
}

// IsLog tells whether a row of a versioned store is one of the log area: it goes into the
// changelog, and not into the database. All others do the opposite.
func IsLog(row []byte) bool {
	return len(row) >= segmentLen+8 && binary.BigEndian.Uint64(row) == logArea
}

// LoggedVersion gives the changelog's key of a row of the log area.
func LoggedVersion(row []byte) []byte { return row[segmentLen+8:] }

func (v *Versioned) appendHistory(b, key []byte, to int64) []byte {
	return appendTime(append(binary.BigEndian.AppendUint64(b, v.segment(to)), key...), to)
}

// history is one row of the history.
type history struct {
	key      []byte
	from, to int64
	value    []byte // nil = there was none
}

func (h *history) version() Version {
	return Version{Key: h.key, Value: h.value, From: h.from, To: h.to}
}

// DecodeVersion takes a row apart. ok is false for one that says that there was no value.
func DecodeVersion(r Row) (v Version, ok bool, err error) {
	area, rest, err := SplitSegment(r.Key)
	if err != nil {
		return v, false, err
	}
	if area == latestArea {
		return Version{Key: rest, Value: r.Value, From: r.Timestamp, Current: true}, true, checkTime("version from", r.Timestamp)
	}
	h, err := decodeHistory(r)
	return h.version(), h.value != nil, err
}

func decodeHistory(r Row) (h history, err error) {
	n := len(r.Key) - 8
	if n < segmentLen {
		return h, fmt.Errorf("version key of %d bytes, shorter than segment and time", len(r.Key))
	}
	h = history{key: r.Key[segmentLen:n:n], from: r.Timestamp, to: timeAt(r.Key[n:])}
	if len(r.Value) == 0 || r.Value[0] > hasValue || r.Value[0] == noValue && len(r.Value) > 1 {
		return h, fmt.Errorf("version value of %d bytes does not say whether there is a value", len(r.Value))
	}
	if h.from < 0 || h.from > h.to {
		return h, fmt.Errorf("version from %d to %d", h.from, h.to)
	}
	if r.Value[0] == hasValue {
		h.value = r.Value[1:len(r.Value):len(r.Value)]
	}
	return h, nil
}

// of tells whether the row is one of key: a scan also finds rows of other keys.
func (h *history) of(key []byte) bool { return bytes.Equal(h.key, key) }
