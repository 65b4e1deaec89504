package statestore

import (
	"iter"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

const (
	// countExactly is how many entries are counted one by one in any case, and countAtMost how many where an estimate would be
	// off by more than half.
	countExactly = 10_000
	countAtMost  = 100_000
)

// ApproximateCount gives the number of entries: exact up to 10,000, and up to 100,000 as long as half as many may have been
// written or deleted in memory, or lately, as there are in the settled tables; beyond that estimated. It reads what it
// counts, so it is not for every record. (The memory engine, and a store of the program's own, are counted whole.)
func (kv *KeyValue) ApproximateCount() (n int64, err error) {
	n, _, err = approximate(kv.All(), kv.estimate)
	return n, err
}

// approximate counts rows one by one, and gives the estimate as soon as that is good enough, or counting takes too long.
func approximate[R any](rows iter.Seq2[R, error], estimate func() (settled, loose int64, err error)) (n int64, exact bool, err error) {
	for _, err := range rows {
		if err != nil {
			return 0, false, err
		}
		if n++; n != countExactly && n != countAtMost {
			continue
		}
		settled, loose, err := estimate()
		if err != nil {
			return 0, false, err
		}
		if about, ok := estimated(n, settled, loose); ok {
			return about, false, nil
		}
	}
	return n, true, nil
}

// estimated gives how many rows there are behind the first n, unless it is better to go on counting.
func estimated(n, settled, loose int64) (rows int64, ok bool) {
	switch {
	case settled > 0 && settled/2 >= loose: // wrong by half at most
		return max(n, settled), true
	case n < countAtMost, settled == 0 && loose >= engine.UnknownRows:
		return 0, false
	case loose >= engine.UnknownRows: // a range was deleted
		return max(n, settled), true
	}
	return max(n, settled+loose), true
}

// estimate is that of the database, less certain by what is not in it.
func (kv *KeyValue) estimate() (settled, loose int64, err error) {
	settled, loose, err = kv.st.rows.EstimateRows(storeBounds(kv.st.id))
	loose = min(loose, engine.UnknownRows) + int64(kv.s.table.DirtyCount())
	if kv.s.table.DeletesRanges() {
		loose = engine.UnknownRows
	}
	if x := kv.s.sealed; x != nil {
		loose += int64(x.writes.Len())
		if len(x.writes.Ranges()) > 0 {
			loose = engine.UnknownRows
		}
	}
	return settled, loose, err
}
