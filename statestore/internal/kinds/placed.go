package kinds

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
)

// What is wrong with where a row lies: see [Layout.Placed].
var (
	ErrSegment  = errors.New("in the segment of another time")
	ErrDropped  = errors.New("in a segment that has expired")
	ErrTooLate  = errors.New("later than the stream time")
	ErrLogged   = errors.New("of the changelog only")
	ErrSequence = errors.New("sequence in a store that does not retain duplicates")
)

// Placed tells whether a row with that time, which decodes, may lie in that segment of a store
// with that clock.
func (l Layout) Placed(segment uint64, t int64, c *Clock) error {
	switch {
	case t >= 0 && segment != l.segment(t):
		return fmt.Errorf("%w: time %d in segment %d, not %d", ErrSegment, t, segment, l.segment(t))
	case segment < l.Oldest(c):
		return fmt.Errorf("%w: segment %d (time %d); the oldest that is kept is %d, at stream time %d", ErrDropped, segment, t, l.Oldest(c), c.Now())
	case t > c.Now():
		return fmt.Errorf("%w: time %d, stream time %d", ErrTooLate, t, c.Now())
	}
	return nil
}

// PlacedVersion is Placed for a row of a versioned store.
func (l Layout) PlacedVersion(r Row, c *Clock) error {
	area, _, err := SplitSegment(r.Key)
	if err != nil {
		return err
	}
	switch area {
	case logArea:
		return ErrLogged
	case latestArea:
		if r.Timestamp > c.Now() {
			return fmt.Errorf("%w: time %d, stream time %d", ErrTooLate, r.Timestamp, c.Now())
		}
		return nil
	}
	h, err := decodeHistory(r)
	if err != nil {
		return err
	}
	return l.Placed(area, h.to, c)
}

// Overlap finds versions of one key that overlap, in a walk over all rows of a store in their
// order. It takes little memory however many keys there are: what it remembers of them only
// says where to look.
type Overlap struct {
	Layout
	Clock *Clock
	// Scan gives the rows of a range.
	Scan func(Range) iter.Seq2[Row, error]

	ends []int64 // by a hash of the key: the last end of a row, or that of another key
}

// overlapSlots is how many ends are remembered: 8 MiB.
const overlapSlots = 1 << 20

// Check takes the next row, which decodes and lies where it may. It gives a row of the same key that this one overlaps.
func (o *Overlap) Check(r Row) (with Version, overlaps bool, err error) {
	if o.ends == nil {
		o.ends = make([]int64, overlapSlots)
		for i := range o.ends {
			o.ends[i] = -1
		}
	}
	v, _, err := DecodeVersion(r)
	if err != nil {
		return with, false, err
	}
	end := &o.ends[hash(v.Key)%overlapSlots]
	if *end > v.From {
		with, overlaps, err = o.look(v)
	}
	if !v.Current {
		*end = max(*end, v.To)
	}
	return with, overlaps, err
}

// look looks for a row that ends in the time of v.
func (o *Overlap) look(v Version) (with Version, overlaps bool, err error) {
	last := v.To
	if v.Current {
		last = o.Clock.Now()
	}
	low := v.From + 1
	for s := max(o.segment(low), o.Oldest(o.Clock)); s <= o.segment(max(last, 0)); s++ {
		for r, err := range o.Scan(keyRanges(s, s, v.Key, appendTime(nil, low), appendTime(nil, math.MaxInt64))[0]) {
			if err != nil {
				return with, false, err
			}
			h, err := decodeHistory(r)
			if err != nil {
				return with, false, damaged(err)
			}
			if !bytes.Equal(h.key, v.Key) || h.to > last || !v.Current && h.to == v.To {
				continue
			}
			return h.version(), true, nil
		}
	}
	return with, false, nil
}

// hash is FNV-1a.
func hash(key []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range key {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}
