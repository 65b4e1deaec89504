package offsetcache

import (
	"fmt"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Bounds are the first offset that a changelog partition still has, and that of the next
// record to be written.
type Bounds struct{ Start, End int64 }

// Lag is what one store has to restore.
type Lag struct {
	Store     string
	Changelog kafka.TopicPartition
	// Records is how many offsets lie before the store: an upper bound of the records, as
	// compaction and transactions leave holes.
	Records int64
	// Whole: everything has to be restored, because of Reason. Records is then the whole log.
	Whole  bool
	Reason string
	// Unknown: the bounds are not known, so nothing is known of this lag.
	Unknown bool
}

// Lags gives the lag of each store of the task, in the order of its offsets. bounds gives
// false for a partition whose bounds are not known: that store's lag is unknown, and the
// others' are not affected. There is no sum: whoever wants one number decides what a store
// that is unknown, or that has to begin anew, counts.
func (t Task) Lags(bounds func(kafka.TopicPartition) (Bounds, bool)) []Lag {
	lags := make([]Lag, len(t.Offsets))
	for i, o := range t.Offsets {
		lags[i] = Lag{Store: o.Store, Changelog: o.Changelog}
		b, ok := bounds(o.Changelog)
		switch {
		case t.Latest:
		case !ok:
			lags[i].Unknown = true
		default:
			lags[i].Records, lags[i].Whole, lags[i].Reason = b.Lag(o.Offset)
		}
	}
	return lags
}

// Lag is what a store at offset o has to restore of the log. An offset that is absent or
// unknown, or outside the log (a topic that was truncated or created again), means all of it.
func (b Bounds) Lag(o statestore.Offset) (records int64, whole bool, reason string) {
	start, end := max(b.Start, 0), max(b.End, 0)
	all := max(end-start, 0) // neither is negative: no overflow
	next, ok := o.Next()
	switch {
	case !ok:
		return all, true, fmt.Sprintf("the offset is %v", o)
	case next > end:
		return all, true, fmt.Sprintf("offset %d is beyond the end of the log, %d", next, end)
	case next < start:
		return all, true, fmt.Sprintf("offset %d is before the start of the log, %d", next, start)
	}
	return end - next, false, ""
}
