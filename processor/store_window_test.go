package processor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

var (
	hits      = processor.Window("hits", serde.String, serde.Int64, 10*time.Millisecond, time.Hour)
	hitsTimed = processor.TimestampedWindow("hits-timed", serde.String, serde.String, 10*time.Millisecond, time.Hour)
)

func milli(ms int64) time.Time { return time.UnixMilli(ms) }

func showWindow(e processor.WindowEntry[string, int64]) string {
	s := fmt.Sprintf("%s[%d,%d)%d", e.Key, e.Start.UnixMilli(), e.End.UnixMilli(), e.Value)
	if !e.Timestamp.IsZero() {
		s += fmt.Sprintf("@%d", e.Timestamp.UnixMilli())
	}
	return s
}

func TestWindowStore(t *testing.T) {
	var none time.Time
	r, err := inStores(t, func(ctx strCtx) error {
		s := hits.In(ctx)
		err := errors.Join(s.Put("a", 1, milli(0)), s.Put("b", 2, milli(0)), s.Put("a", 3, milli(10)), s.Put("a", 4, milli(20)), s.Put("a", 5, milli(20)),
			s.Put("c", 6, milli(20)), s.Delete("c", milli(20)), s.Delete("none", milli(20)))
		v, ok, err2 := s.Get("a", milli(20))
		if v != 5 || !ok {
			t.Error(v, ok)
		}
		if _, ok, err := s.Get("a", milli(15)); ok || err != nil {
			t.Error("a window that is not there", ok, err)
		}
		expectLists(t, map[string]string{
			"fetch = a[0,10)1 a[10,20)3 a[20,30)5":          list(s.Fetch("a", none, none), showWindow),
			"inclusive = a[0,10)1 a[10,20)3":                list(s.Fetch("a", milli(0), milli(10)), showWindow),
			"from = a[10,20)3 a[20,30)5":                    list(s.Fetch("a", milli(1), none), showWindow),
			"before time = a[0,10)1":                        list(s.Fetch("a", milli(-5), milli(9)), showWindow),
			"negative = ":                                   list(s.Fetch("a", milli(-5), milli(-1)), showWindow),
			"reverse = a[20,30)5 a[10,20)3":                 list(s.ReverseFetch("a", milli(10), milli(20)), showWindow),
			"other key = ":                                  list(s.Fetch("", none, none), showWindow),
			"range = a[0,10)1 a[10,20)3":                    list(s.FetchRange("a", "b", none, milli(10)), showWindow),
			"range to c = a[0,10)1 b[0,10)2":                list(s.FetchRange("a", "c", none, milli(9)), showWindow),
			"reverse range = b[0,10)2 a[10,20)3 a[0,10)1":   list(s.ReverseFetchRange("a", "c", none, milli(10)), showWindow),
			"fetch all = a[0,10)1 b[0,10)2":                 list(s.FetchAll(none, milli(9)), showWindow),
			"reverse fetch all = b[0,10)2 a[0,10)1":         list(s.ReverseFetchAll(none, milli(9)), showWindow),
			"all = a[0,10)1 a[10,20)3 a[20,30)5 b[0,10)2":   list(s.All(), showWindow),
			"backw = b[0,10)2 a[20,30)5 a[10,20)3 a[0,10)1": list(s.ReverseAll(), showWindow),
		})
		return errors.Join(err, err2)
	}, hits)
	if err != nil {
		t.Error(err)
	}
	if len(r.drops) > 0 {
		t.Error(r.drops)
	}
	// The changelog has the timestamp of the record in process, and Kafka Streams' keys.
	key := func(key string, start int) string {
		return key + "\x00\x00\x00\x00\x00\x00\x00" + string(rune(start)) + "\x00\x00\x00\x00"
	}
	want := []string{key("a", 0), key("a", 10), key("a", 20), key("b", 0), key("c", 20), key("none", 20)}
	got := strings.Split(strings.ReplaceAll(changes(t, r.store), " 123", ""), ",")
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimestampedWindowStore(t *testing.T) {
	_, err := inStores(t, func(ctx strCtx) error {
		s := hitsTimed.In(ctx)
		err := errors.Join(s.Put("a", "x", milli(10), milli(17)), s.Put("a", "y", milli(20), milli(3)), s.Put("a", "z", milli(30), milli(31)), s.Delete("a", milli(30), milli(32)))
		v, at, ok, err2 := s.Get("a", milli(10))
		if v != "x" || at != milli(17) || !ok {
			t.Error(v, at, ok)
		}
		var all []string
		for e, err := range s.Fetch("a", time.Time{}, time.Time{}) {
			all = append(all, fmt.Sprint(e.Key, e.Value, e.Start.UnixMilli(), e.End.UnixMilli(), e.Timestamp.UnixMilli(), err))
		}
		if got := strings.Join(all, ","); got != "ax10 20 17 <nil>,ay20 30 3 <nil>" {
			t.Error(got)
		}
		return errors.Join(err, err2)
	}, hitsTimed)
	if err != nil {
		t.Error(err)
	}
}

func TestWindowStoreWithDuplicates(t *testing.T) {
	s := processor.Window("log", serde.String, serde.Bytes, 10*time.Millisecond, time.Hour).RetainDuplicates()
	show := func(e processor.WindowEntry[string, []byte]) string {
		return fmt.Sprintf("%s%s%d", e.Key, e.Value, e.Start.UnixMilli())
	}
	_, err := inStores(t, func(ctx strCtx) error {
		s := s.In(ctx)
		err := errors.Join(s.Put("a", []byte("x"), milli(10)), s.Put("a", []byte("y"), milli(10)), s.Put("a", []byte("x"), milli(10)), s.Put("a", nil, milli(10)), s.Delete("a", milli(10)))
		expectLists(t, map[string]string{
			"fetch = ax10 ay10 ax10": list(s.Fetch("a", milli(10), milli(10)), show),
			"all = ax10 ay10 ax10":   list(s.All(), show),
		})
		return err
	}, s)
	if err != nil {
		t.Error(err)
	}
}

// What comes too late is dropped and counted, as Kafka Streams does; it is no error.
func TestLateWrites(t *testing.T) {
	windows := processor.Window("windows", serde.String, serde.Int64, time.Minute, time.Hour)
	sessions := processor.Session("sessions", serde.String, serde.Int64, time.Hour)
	versions := processor.Versioned("versions", serde.String, serde.Int64, time.Hour)
	now, old := time.UnixMilli(0).Add(1000*time.Hour), time.UnixMilli(0).Add(990*time.Hour)
	r, err := inStores(t, func(ctx strCtx) error {
		w, x, v := windows.In(ctx), sessions.In(ctx), versions.In(ctx)
		_, err := v.Put("k", 1, now)
		late, err2 := v.Put("k", 2, old)
		if late != (processor.PutResult{}) {
			t.Errorf("%+v", late)
		}
		if _, ok, err := v.Delete("k", old); ok || err != nil {
			t.Error(ok, err)
		}
		return errors.Join(err, err2, w.Put("k", 1, now), w.Put("k", 2, old), w.Delete("k", old), x.Put("k", 1, now, now), x.Put("k", 2, old, old), x.Remove("k", old, old),
			func() error { _, ok, err := w.Get("k", old); t.Log(ok); return err }())
	}, windows, sessions, versions)
	if err != nil {
		t.Error(err)
	}
	slices.Sort(r.drops)
	count := map[string]int{}
	for _, d := range r.drops {
		count[d]++
	}
	if count["p: expired window"] == 0 || count["p: expired session"] == 0 || count["p: expired version"] != 2 || len(count) != 3 {
		t.Error(count)
	}
}
