package kinds

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// segmentLen is the length of the segment that begins a row key.
const segmentLen = 8

// maxTime is the largest time: one more can still be written as the end of a range.
const maxTime = math.MaxInt64 - 1

// Segments that are areas of versioned stores, behind those of any time.
const (
	// logArea holds the versions as they are logged. Its rows never come into the database.
	logArea uint64 = math.MaxUint64 - 1
	// latestArea holds the newest version of each key.
	latestArea uint64 = math.MaxUint64
)

// Layout is how a store is divided into segments, and how long it keeps entries. Both are in
// milliseconds; the interval is at least 1.
type Layout struct {
	Retention, Interval int64
}

// WindowInterval gives the segment interval of a window or session store, as in Kafka Streams.
func WindowInterval(retention int64) int64 { return max(retention/2, 60_000) }

// HistoryInterval gives the segment interval of a versioned store, as in Kafka Streams.
func HistoryInterval(history int64) int64 {
	const minute = 60_000
	switch {
	case history <= minute:
		return max(history/3, 2_000)
	case history <= 5*minute:
		return max(history/5, 20_000)
	case history <= 60*minute:
		return max(history/12, minute)
	}
	return max(history/24, 5*minute)
}

// segment gives the segment of a time that is not negative.
func (l Layout) segment(t int64) uint64 { return uint64(t / l.Interval) }

// Oldest is the oldest segment that is kept. All times in those before it are at or before
// now - retention.
func (l Layout) Oldest(c *Clock) uint64 {
	if c.Now() <= l.Retention {
		return 0
	}
	return l.segment(c.Time - l.Retention)
}

// shownFrom is the smallest time that reads show.
func (l Layout) shownFrom(c *Clock) int64 {
	if c.Now() < l.Retention {
		return 0
	}
	return c.Time - l.Retention + 1
}

// Expired gives the end of the range of rows that have expired: all keys before it. It is nil
// when there are none.
func (l Layout) Expired(c *Clock) []byte {
	s := l.Oldest(c)
	if s == 0 {
		return nil
	}
	return binary.BigEndian.AppendUint64(nil, s)
}

func appendTime(b []byte, t int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(t)) }

func timeAt(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

// Logged gives the changelog's key of a row of a window or session store.
func Logged(row []byte) []byte { return row[segmentLen:] }

// SplitSegment gives the segment of a row key, and the rest of it.
func SplitSegment(row []byte) (segment uint64, rest []byte, err error) {
	if len(row) < segmentLen {
		return 0, nil, fmt.Errorf("row key of %d bytes, shorter than its segment", len(row))
	}
	return binary.BigEndian.Uint64(row), row[segmentLen:], nil
}

// damaged marks the error of a row; nil stays nil.
func damaged(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrRow, err)
}

var errTimeRange = errors.New("negative, or too large")

func checkTime(what string, t int64) error {
	if t < 0 || t > maxTime {
		return fmt.Errorf("%s %d: %w", what, t, errTimeRange)
	}
	return nil
}
