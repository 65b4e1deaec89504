package processor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

var prices = processor.Versioned("prices", serde.String, serde.String, time.Hour)

func showVersion(v processor.Version[string, string]) string {
	if v.Current != v.To.IsZero() {
		return fmt.Sprintf("bad %+v", v)
	}
	if v.Current {
		return fmt.Sprintf("%s%s@%d", v.Key, v.Value, v.From.UnixMilli())
	}
	return fmt.Sprintf("%s%s@%d-%d", v.Key, v.Value, v.From.UnixMilli(), v.To.UnixMilli())
}

func TestVersionedStore(t *testing.T) {
	var none time.Time
	one := func(v processor.Version[string, string], ok bool, err error) string {
		switch {
		case err != nil:
			return err.Error()
		case !ok:
			return "none"
		}
		return showVersion(v)
	}
	_, err := inStores(t, func(ctx strCtx) error {
		s := prices.In(ctx)
		put := func(value string, ms int64) string {
			r, err := s.Put("k", value, milli(ms))
			return fmt.Sprint(r.Stored, r.Current, r.ValidTo.IsZero() || r.ValidTo.UnixMilli() == 20, err)
		}
		expectLists(t, map[string]string{
			"first = true true true <nil>":    put("a", 10),
			"second = true true true <nil>":   put("c", 20),
			"between = true false true <nil>": put("b", 15),
		})
		expectLists(t, map[string]string{
			"get = kc@20":                        one(s.Get("k")),
			"as of 19 = kb@15-20":                one(s.GetAsOf("k", milli(19))),
			"as of 10 = ka@10-15":                one(s.GetAsOf("k", milli(10))),
			"as of 9 = none":                     one(s.GetAsOf("k", milli(9))),
			"other = none":                       one(s.Get("none")),
			"versions = ka@10-15 kb@15-20 kc@20": list(s.Versions("k", none, none), showVersion),
			"reverse = kc@20 kb@15-20 ka@10-15":  list(s.ReverseVersions("k", none, none), showVersion),
			"some = ka@10-15 kb@15-20":           list(s.Versions("k", milli(12), milli(16)), showVersion),
			"all = ka@10-15 kb@15-20 kc@20":      list(s.All(), showVersion),
		})
		expectLists(t, map[string]string{
			"delete = kc@20":     one(s.Delete("k", milli(30))),
			"gone = none":        one(s.Get("k")),
			"before = kc@20-30":  one(s.GetAsOf("k", milli(29))),
			"delete none = none": one(s.Delete("none", milli(30))),
		})
		_, err := s.Put("k", "x", none)
		if !errors.Is(err, processor.ErrNegativeTimestamp) {
			t.Error(err)
		}
		return nil
	}, prices)
	if err != nil {
		t.Error(err)
	}
}

// A null value ends the one before.
func TestVersionedNull(t *testing.T) {
	bytes := processor.Versioned("bytes", serde.String, serde.Bytes, time.Hour)
	_, err := inStores(t, func(ctx strCtx) error {
		s := bytes.In(ctx)
		_, err := s.Put("k", []byte{}, milli(10))
		r, err2 := s.Put("k", nil, milli(20))
		if !r.Stored || !r.Current {
			t.Errorf("%+v", r)
		}
		if _, ok, err := s.Get("k"); ok || err != nil {
			t.Error(ok, err)
		}
		v, ok, err3 := s.GetAsOf("k", milli(10))
		if !ok || v.Value == nil || len(v.Value) != 0 || v.To != milli(20) {
			t.Errorf("%+v, %v", v, ok)
		}
		r, err4 := s.PutNull("k", milli(15)) // late
		if !r.Stored || r.Current || r.ValidTo != milli(20) {
			t.Errorf("%+v", r)
		}
		_, ok, err5 := s.GetAsOf("k", milli(15))
		if ok {
			t.Error("a deleted version is there")
		}
		return errors.Join(err, err2, err3, err4, err5)
	}, bytes)
	if err != nil {
		t.Error(err)
	}
}
