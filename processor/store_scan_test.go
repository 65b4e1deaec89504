package processor_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// list shows what an iteration gives.
func list[E any](entries iter.Seq2[E, error], show func(E) string) string {
	var all []string
	for e, err := range entries {
		if err != nil {
			all = append(all, "error: "+err.Error())
			continue
		}
		all = append(all, show(e))
	}
	return strings.Join(all, " ")
}

func expectLists(t *testing.T, lists map[string]string) {
	t.Helper()
	for what, got := range lists {
		what, want, _ := strings.Cut(what, " = ")
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
}

func TestKeyValueScans(t *testing.T) {
	show := func(e processor.Entry[string, int64]) string { return fmt.Sprint(e.Key, e.Value) }
	_, err := inStores(t, func(ctx strCtx) error {
		s := plain.In(ctx)
		type entry = processor.Entry[string, int64]
		if err := s.PutAll(entry{"b1", 2}, entry{"a", 1}, entry{"b2", 3}, entry{"c", 9}, entry{"c", 4}); err != nil {
			return err
		}
		expectLists(t, map[string]string{
			"all = a1 b12 b23 c4":     list(s.All(), show),
			"reverse = c4 b23 b12 a1": list(s.ReverseAll(), show),
			"range = b12 b23":         list(s.Range("b", "c"), show),
			"reverse range = b23 b12": list(s.ReverseRange("b", "c"), show),
			"from = b23 c4":           list(s.RangeFrom("b2"), show),
			"to = b12 a1":             list(s.ReverseRangeTo("b2"), show),
			"backwards = ":            list(s.Range("c", "b"), show),
			"prefix = b12 b23":        list(s.PrefixScan([]byte("b")), show),
			"typed prefix = b12 b23":  list(processor.PrefixScan(s, "b", serde.String), show),
			"whole as prefix = b12":   list(processor.PrefixScan(s, []byte("b1"), serde.Bytes), show),
			"prefix of nothing = ":    list(s.PrefixScan([]byte("d")), show),
			"bad prefix = error: key, serde \"failing\": no such format": list(processor.PrefixScan(s, "b", serde.Serde[string](failing{})), show),
		})
		n, err := s.ApproximateCount()
		if n != 4 {
			t.Errorf("%d entries", n)
		}
		for e, err2 := range s.All() { // writes in the loop are not seen by it
			err = errors.Join(err, err2, s.Put("new "+e.Key, 7))
		}
		if n, _ := s.ApproximateCount(); n != 8 {
			t.Errorf("%d entries", n)
		}
		return err
	}, plain)
	if err != nil {
		t.Error(err)
	}
}

func TestTimestampedScans(t *testing.T) {
	show := func(e processor.TimestampedEntry[string, string]) string {
		return fmt.Sprint(e.Key, e.Value, e.Timestamp.UnixMilli())
	}
	_, err := inStores(t, func(ctx strCtx) error {
		s := timed.In(ctx)
		type entry = processor.TimestampedEntry[string, string]
		err := s.PutAll(entry{"b", "x", time.UnixMilli(2)}, entry{"a", "y", time.UnixMilli(1)})
		had, at, ok, err2 := s.PutIfAbsent("b", "z", time.UnixMilli(9))
		if had != "x" || at.UnixMilli() != 2 || !ok {
			t.Error(had, at, ok)
		}
		if _, _, ok, err3 := s.PutIfAbsent("c", "z", time.UnixMilli(3)); ok || err3 != nil {
			t.Error(ok, err3)
		}
		expectLists(t, map[string]string{
			"all = ay1 bx2 cz3":       list(s.All(), show),
			"reverse = cz3 bx2 ay1":   list(s.ReverseAll(), show),
			"range = bx2":             list(s.Range("b", "c"), show),
			"reverse range = bx2 ay1": list(s.ReverseRange("a", "c"), show),
			"from = bx2 cz3":          list(s.RangeFrom("b"), show),
			"to = bx2 ay1":            list(s.ReverseRangeTo("c"), show),
			"prefix = bx2":            list(s.PrefixScan([]byte("b")), show),
			"typed prefix = ay1":      list(processor.PrefixScan(s, "a", serde.String), show),
		})
		n, err3 := s.ApproximateCount()
		if n != 3 {
			t.Errorf("%d entries", n)
		}
		return errors.Join(err, err2, err3)
	}, timed)
	if err != nil {
		t.Error(err)
	}
}

// An end of a range whose type has nil may be nil: it is open.
func TestOpenRanges(t *testing.T) {
	bytes := processor.KeyValue("bytes", serde.Bytes, serde.Int64)
	show := func(e processor.Entry[[]byte, int64]) string { return string(e.Key) }
	_, err := inStores(t, func(ctx strCtx) error {
		s := bytes.In(ctx)
		err := errors.Join(s.Put([]byte{}, 0), s.Put([]byte("a"), 1), s.Put([]byte("b"), 2))
		expectLists(t, map[string]string{
			"from = a b":        list(s.Range([]byte("a"), nil), show),
			"to = a ":           list(s.ReverseRange(nil, []byte("b")), show),
			"both =  a b":       list(s.Range(nil, nil), show),
			"empty, not nil = ": list(s.Range([]byte{}, []byte{}), show),
		})
		return err
	}, bytes)
	if err != nil {
		t.Error(err)
	}
}

// Every call on a store that is not connected says so, and so does every iteration, once.
func TestStoresNotConnected(t *testing.T) {
	var none time.Time
	_, err := inStores(t, func(ctx strCtx) error {
		kv, ts, w, tw, x, v := plain.In(ctx), timed.In(ctx), hits.In(ctx), hitsTimed.In(ctx), visits.In(ctx), prices.In(ctx)
		errs := []error{
			kv.PutAll(processor.Entry[string, int64]{}), ts.PutAll(processor.TimestampedEntry[string, string]{}), ts.Delete("", none),
			w.Put("", 1, none), w.Delete("", none), tw.Put("", "", none, none), tw.Delete("", none, none), x.Put("", 1, none, none), x.Remove("", none, none),
			of(kv.ApproximateCount()), of3(w.Get("", none)), of4(tw.Get("", none)), of3(x.Get("", none, none)), of(v.Put("", "", none)), of3(v.Get("")), of3(v.GetAsOf("", none)), of3(v.Delete("", none)),
		}
		errs = append(errs, of4(ts.Get("")))
		errs = append(errs, turns(kv.Range("", "")), turns(kv.ReverseAll()), turns(kv.PrefixScan(nil)), turns(ts.RangeFrom("")), turns(ts.All()),
			turns(w.Fetch("", none, none)), turns(w.FetchRange("", "", none, none)), turns(w.FetchAll(none, none)), turns(w.All()), turns(tw.ReverseAll()),
			turns(x.Find("", none, none)), turns(x.FindRange("", "", none, none)), turns(x.FindByEnd(none, none)), turns(x.Fetch("")), turns(x.All()),
			turns(v.Versions("", none, none)), turns(v.All()))
		for i, err := range errs {
			if !errors.Is(err, processor.ErrNotConnected) {
				t.Errorf("%d: %v", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func of[A any](_ A, err error) error                  { return err }
func of3[A, B any](_ A, _ B, err error) error         { return err }
func of4[A, B, C any](_ A, _ B, _ C, err error) error { return err }

// turns gives the error of an iteration that has one turn.
func turns[E any](entries iter.Seq2[E, error]) (err error) {
	n := 0
	for _, err = range entries {
		n++
	}
	if n != 1 {
		return fmt.Errorf("%d turns", n)
	}
	return err
}
