package processor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// TestHalfOpenRanges: of each key one entry, so that the order is that of the keys.
func TestHalfOpenRanges(t *testing.T) {
	var none time.Time
	visits := processor.Session("visits-ranges", serde.String, serde.Int64, time.Hour)
	keyValue := func(e processor.Entry[string, int64]) string { return fmt.Sprint(e.Key, e.Value) }
	stamped := func(e processor.TimestampedEntry[string, string]) string { return e.Key + e.Value }
	window := func(e processor.WindowEntry[string, int64]) string { return fmt.Sprint(e.Key, e.Value) }
	session := func(e processor.SessionEntry[string, int64]) string { return fmt.Sprint(e.Key, e.Value) }
	_, err := inStores(t, func(ctx strCtx) error {
		kv, ts, w, x := plain.In(ctx), timed.In(ctx), hits.In(ctx), visits.In(ctx)
		var err error
		for i, key := range []string{"", "a", "b", "c"} { // an empty key is one, and no open end
			n := int64(i)
			err = errors.Join(err, kv.Put(key, n), ts.Put(key, fmt.Sprint(n), milli(1)), w.Put(key, n, milli(10*n)), x.Put(key, n, milli(10*n), milli(10*n+5)))
		}
		expectLists(t, map[string]string{
			"from = b2 c3":                    list(kv.RangeFrom("b"), keyValue),
			"from the empty key = 0 a1 b2 c3": list(kv.RangeFrom(""), keyValue),
			"to = 0 a1":                       list(kv.RangeTo("b"), keyValue),
			"to the empty key = ":             list(kv.RangeTo(""), keyValue),
			"back to = a1 0":                  list(kv.ReverseRangeTo("b"), keyValue),
			"back from = c3 b2":               list(kv.ReverseRangeFrom("b"), keyValue),
			"back from behind all = ":         list(kv.ReverseRangeFrom("d"), keyValue),

			"stamped from = b2 c3":      list(ts.RangeFrom("b"), stamped),
			"stamped to = 0 a1":         list(ts.RangeTo("b"), stamped),
			"stamped back to = a1 0":    list(ts.ReverseRangeTo("b"), stamped),
			"stamped back from = c3 b2": list(ts.ReverseRangeFrom("b"), stamped),

			"windows from = b2 c3":        list(w.FetchRangeFrom("b", none, none), window),
			"windows from, till 20 = b2":  list(w.FetchRangeFrom("b", none, milli(20)), window),
			"windows to = 0 a1":           list(w.FetchRangeTo("b", none, none), window),
			"windows to, from 10 = a1":    list(w.FetchRangeTo("b", milli(10), none), window),
			"windows back from = c3 b2":   list(w.ReverseFetchRangeFrom("b", none, none), window),
			"windows back to = a1 0":      list(w.ReverseFetchRangeTo("b", none, none), window),
			"windows to the empty key = ": list(w.FetchRangeTo("", none, none), window),

			"sessions from = b2 c3":            list(x.FetchRangeFrom("b"), session),
			"sessions to = 0 a1":               list(x.FetchRangeTo("b"), session),
			"sessions back from = c3 b2":       list(x.ReverseFetchRangeFrom("b"), session),
			"sessions back to = a1 0":          list(x.ReverseFetchRangeTo("b"), session),
			"sessions found from = b2 c3":      list(x.FindRangeFrom("b", none, none), session),
			"sessions found from, early = b2":  list(x.FindRangeFrom("b", none, milli(20)), session),
			"sessions found to = 0 a1":         list(x.FindRangeTo("b", none, none), session),
			"sessions found to, late = a1":     list(x.FindRangeTo("b", milli(10), none), session),
			"sessions found back from = c3 b2": list(x.ReverseFindRangeFrom("b", none, none), session),
			"sessions found back to = a1 0":    list(x.ReverseFindRangeTo("b", none, none), session),
		})
		return err
	}, plain, timed, hits, visits)
	if err != nil {
		t.Error(err)
	}
}
