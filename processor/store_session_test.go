package processor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

var visits = processor.Session("visits", serde.String, serde.Int64, time.Hour)

func TestSessionStore(t *testing.T) {
	var none time.Time
	show := func(e processor.SessionEntry[string, int64]) string {
		return fmt.Sprintf("%s[%d,%d]%d", e.Key, e.Start.UnixMilli(), e.End.UnixMilli(), e.Value)
	}
	r, err := inStores(t, func(ctx strCtx) error {
		s := visits.In(ctx)
		err := errors.Join(s.Put("a", 1, milli(0), milli(5)), s.Put("a", 2, milli(10), milli(10)), s.Put("a", 3, milli(20), milli(40)), s.Put("b", 4, milli(7), milli(30)),
			s.Put("a", 9, milli(50), milli(60)), s.Remove("a", milli(50), milli(60)), s.Remove("c", milli(50), milli(60)))
		v, ok, err2 := s.Get("a", milli(20), milli(40))
		if v != 3 || !ok {
			t.Error(v, ok)
		}
		for _, bounds := range [][2]int64{{20, 41}, {21, 40}, {50, 60}} {
			if _, ok, err := s.Get("a", milli(bounds[0]), milli(bounds[1])); ok || err != nil {
				t.Error(bounds, ok, err)
			}
		}
		expectLists(t, map[string]string{
			"touching = a[10,10]2 a[20,40]3":                             list(s.Find("a", milli(6), milli(20)), show),
			"reverse = a[20,40]3 a[10,10]2":                              list(s.ReverseFind("a", milli(6), milli(20)), show),
			"inclusive = a[0,5]1":                                        list(s.Find("a", milli(5), milli(9)), show),
			"before = ":                                                  list(s.Find("a", none, milli(-1)), show),
			"open = a[0,5]1 a[10,10]2 a[20,40]3":                         list(s.Find("a", none, none), show),
			"range = a[20,40]3 b[7,30]4":                                 list(s.FindRange("a", "c", milli(11), none), show),
			"range of a = a[20,40]3":                                     list(s.FindRange("a", "b", milli(11), none), show),
			"reverse range = b[7,30]4 a[20,40]3":                         list(s.ReverseFindRange("a", "c", milli(11), none), show),
			"by end = a[10,10]2 b[7,30]4":                                list(s.FindByEnd(milli(6), milli(39)), show),
			"fetch = a[0,5]1 a[10,10]2 a[20,40]3":                        list(s.Fetch("a"), show),
			"reverse fetch = a[20,40]3 a[10,10]2 a[0,5]1":                list(s.ReverseFetch("a"), show),
			"fetch range = b[7,30]4":                                     list(s.FetchRange("b", "c"), show),
			"reverse fetch range = b[7,30]4 a[20,40]3 a[10,10]2 a[0,5]1": list(s.ReverseFetchRange("a", "c"), show),
			"all = a[0,5]1 a[10,10]2 a[20,40]3 b[7,30]4":                 list(s.All(), show),
		})
		if err := s.Put("a", 1, milli(5), milli(4)); err == nil || !strings.Contains(err.Error(), "store visits: the session ends at 4 ms, before it starts at 5 ms") {
			t.Error(err)
		}
		if err := s.Put("a", 1, milli(-1), milli(4)); !errors.Is(err, processor.ErrNegativeTimestamp) {
			t.Error(err)
		}
		return errors.Join(err, err2)
	}, visits)
	if err != nil {
		t.Error(err)
	}
	for _, c := range strings.Split(changes(t, r.store), ",") {
		if !strings.HasSuffix(c, " 123") || len(c) != len("a"+"12345678"+"12345678"+" 123") {
			t.Errorf("change %q", c)
		}
	}
}
