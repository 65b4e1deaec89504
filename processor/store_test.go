package processor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

var (
	plain = processor.KeyValue("plain", serde.String, serde.Int64)
	timed = processor.TimestampedKeyValue("timed", serde.String, serde.String)
)

// inStores runs f once in a processor that is connected to stores.
func inStores(t *testing.T, f func(ctx strCtx) error, stores ...processor.StoreDef) (*rig, error) {
	t.Helper()
	top := processor.NewTopology()
	source(top, "source", "in")
	processor.AddProcessor(top, "p", func() strFunc {
		return func(ctx strCtx, r strRec) error { return f(ctx) }
	}, []string{"source"}, stores...)
	r := newRig(t, top)
	return r, r.send("in", []byte("k"), []byte("v"), 123)
}

func TestKeyValueStore(t *testing.T) {
	_, err := inStores(t, func(ctx strCtx) error {
		s := plain.In(ctx)
		if s != plain.In(ctx) {
			t.Error("the view is made anew each time")
		}
		_, ok, err := s.Get("a")
		had, hadOne, err2 := s.PutIfAbsent("a", 1)
		had2, hadTwo, err3 := s.PutIfAbsent("a", 2)
		if ok || had != 0 || hadOne || had2 != 1 || !hadTwo {
			t.Error(ok, had, hadOne, had2, hadTwo)
		}
		err = errors.Join(err, err2, err3, s.Put("b", -2), s.Put("", 3), s.Put("c", 4))
		gone, ok, err2 := s.Delete("c")
		if !ok || gone != 4 {
			t.Error(gone, ok)
		}
		_, ok, err3 = s.Delete("c")
		if ok {
			t.Error("deleted twice")
		}
		var all, some []string
		for e, err := range s.All() {
			all = append(all, fmt.Sprint(e, err))
		}
		for e, err := range s.Range("a", "b") {
			some = append(some, fmt.Sprint(e, err))
		}
		if got := fmt.Sprint(all, some); got != "[{ 3} <nil> {a 1} <nil> {b -2} <nil>] [{a 1} <nil>]" {
			t.Error(got)
		}
		return errors.Join(err, err2, err3)
	}, plain)
	if err != nil {
		t.Error(err)
	}
}

func TestTimestampedStore(t *testing.T) {
	_, err := inStores(t, func(ctx strCtx) error {
		s := timed.In(ctx)
		err := errors.Join(s.Put("a", "x", time.UnixMilli(5)), s.Put("b", "", time.UnixMilli(6)), s.Put("c", "z", time.UnixMilli(7)), s.Delete("c", time.UnixMilli(8)))
		v, at, ok, err2 := s.Get("b")
		if v != "" || at.UnixMilli() != 6 || !ok {
			t.Error(v, at, ok)
		}
		var all []string
		for e, err := range s.All() {
			all = append(all, fmt.Sprint(e.Key, e.Value, e.Timestamp.UnixMilli(), err))
		}
		for e, err := range s.Range("b", "z") {
			all = append(all, fmt.Sprint(e.Key, e.Value, e.Timestamp.UnixMilli(), err))
		}
		if got := strings.Join(all, ","); got != "ax5 <nil>,b6 <nil>,b6 <nil>" {
			t.Error(got)
		}
		return errors.Join(err, err2)
	}, timed)
	if err != nil {
		t.Error(err)
	}
}

// TestChangesCarryTheRecordsTimestamp: what goes to the changelog has the timestamp of the
// record that the writing processor has, which may differ from the one that was read.
func TestChangesCarryTheRecordsTimestamp(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	put := func(ctx strCtx, r strRec) error { return plain.In(ctx).Put(r.Value, 1) }
	processor.AddProcessor(top, "upper", func() strFunc {
		return func(ctx strCtx, r strRec) error {
			later := processor.WithValue(r, "below")
			later.Timestamp = r.Timestamp.Add(time.Hour)
			return errors.Join(ctx.Forward(later), put(ctx, processor.WithValue(r, "above")))
		}
	}, []string{"source"}, plain)
	processor.AddProcessor(top, "lower", func() strFunc { return put }, []string{"upper"}, plain)
	r := newRig(t, top)
	r.mustSend("in", "k", "v", 10)
	if got := changes(t, r.store); got != "above 10,below 3600010" {
		t.Error(got)
	}
}

// A write before 1970 is refused, as by sinks: a client would write another time into the
// changelog, and the restored state would not be what it was.
func TestStoreRefusesNegativeTimestamp(t *testing.T) {
	_, err := inStores(t, func(ctx strCtx) error {
		for what, err := range map[string]error{
			"put":    timed.In(ctx).Put("a", "x", time.Time{}),
			"delete": timed.In(ctx).Delete("a", time.UnixMilli(-1)),
			"nil":    nilable.In(ctx).Put("a", nil, time.UnixMilli(-1)),
		} {
			if !errors.Is(err, processor.ErrNegativeTimestamp) || !strings.Contains(err.Error(), "store ") {
				t.Errorf("%s: %v", what, err)
			}
		}
		return nil
	}, timed, nilable)
	if err != nil {
		t.Error(err)
	}
	top := processor.NewTopology()
	source(top, "source", "in")
	add(top, "above", func(ctx strCtx, r strRec) error { return ctx.Forward(strRec{Key: "k", Value: "v"}) }, "source")
	processor.AddProcessor(top, "below", func() strFunc {
		return func(ctx strCtx, r strRec) error { return plain.In(ctx).Put(r.Value, 1) }
	}, []string{"above"}, plain)
	if err := newRig(t, top).send("in", []byte("k"), []byte("v"), 10); !errors.Is(err, processor.ErrNegativeTimestamp) {
		t.Errorf("a record that was forwarded without a time: %v", err)
	}
}

var nilable = processor.TimestampedKeyValue("nilable", serde.String, serde.Bytes)

// changes gives the keys and timestamps that would go to the changelog.
func changes(t *testing.T, s *statestore.TaskStore) string {
	t.Helper()
	sealed, err := s.Seal(statestore.Progress{ID: statestore.CommitID{Epoch: 1, Number: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for c := range sealed.Changes() {
		got = append(got, fmt.Sprintf("%s %d", c.Key, c.Timestamp))
	}
	if err := s.Commit(sealed, map[string]statestore.Offset{}); err != nil {
		t.Error(err)
	}
	s.Release(sealed)
	return strings.Join(got, ",")
}

func TestStoresOfTypesWithNil(t *testing.T) {
	pointers := processor.KeyValue("pointers", serde.Bytes, serde.Nullable(serde.Int64))
	_, err := inStores(t, func(ctx strCtx) error {
		s := pointers.In(ctx)
		one := int64(1)
		if err := errors.Join(s.Put([]byte("k"), &one), s.Put([]byte("k"), nil)); err != nil {
			return err
		}
		if _, ok, err := s.Get([]byte("k")); ok || err != nil {
			t.Error("a nil value deletes", ok, err)
		}
		return s.Put(nil, &one)
	}, pointers)
	if err == nil || err.Error() != "store pointers: the key is null" {
		t.Error(err)
	}
}

func TestStoreNotConnected(t *testing.T) {
	_, err := inStores(t, func(ctx strCtx) error {
		s := plain.In(ctx)
		_, _, err := s.Get("a")
		for _, other := range []error{s.Put("a", 1), func() error { _, _, err := s.Delete("a"); return err }()} {
			if !errors.Is(other, processor.ErrNotConnected) {
				t.Error(other)
			}
		}
		n := 0
		for _, other := range s.All() {
			if n++; !errors.Is(other, processor.ErrNotConnected) {
				t.Error(other)
			}
		}
		if n != 1 {
			t.Errorf("%d turns", n)
		}
		return err
	}, timed)
	want := "store plain is not connected to processor p; name its handle where the processor is added, of the embedded form in Config.Stores"
	if !errors.Is(err, processor.ErrNotConnected) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestStoreUsedWithAnotherHandle(t *testing.T) {
	_, err := inStores(t, func(ctx strCtx) error {
		if _, _, err := plain.In(ctx).Get("a"); err != nil {
			return err
		}
		_, _, err := processor.KeyValue("plain", serde.String, serde.Float64).In(ctx).Get("a")
		return err
	}, plain)
	want := "store plain is declared twice: as key-value[string, int64], connected to processor p, and as key-value[string, float64], used there"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestStoreSerdeErrors(t *testing.T) {
	bad := processor.KeyValue("bad", failing{}, serde.Serde[string](failing{}))
	badValue := processor.KeyValue("bad-value", serde.String, serde.Serde[string](failing{}))
	_, err := inStores(t, func(ctx strCtx) error {
		for want, got := range map[string]error{
			`store bad: key, serde "failing": no such format`:         bad.In(ctx).Put("k", "v"),
			`store bad-value: value, serde "failing": no such format`: badValue.In(ctx).Put("k", "v"),
		} {
			if !errors.Is(got, errSerde) || got.Error() != want {
				t.Errorf("got %v, want %s", got, want)
			}
		}
		return nil
	}, bad, badValue)
	if err != nil {
		t.Error(err)
	}
}

// embedded is how a task of the embedded form gives access to its stores.
type embedded struct{ stores *processor.Stores }

func (e *embedded) Stores() *processor.Stores { return e.stores }

func TestHandlesOutsideATopology(t *testing.T) {
	s := openStore(t, []processor.Definition{plain.Definition(), timed.Definition()})
	stores, err := processor.NewStores("the embedded task", s, plain)
	if err != nil {
		t.Fatal(err)
	}
	task := &embedded{stores}
	stores.SetTimestamp(time.UnixMilli(77))
	if err := plain.In(task).Put("k", 5); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := plain.In(task).Get("k"); v != 5 || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if _, _, _, err := timed.In(task).Get("k"); !errors.Is(err, processor.ErrNotConnected) {
		t.Error(err)
	}
	if _, err := processor.NewStores("x", s, processor.KeyValue("none", serde.String, serde.String)); err == nil {
		t.Error("a store that is not registered was opened")
	}
}

// empty is a serde that breaks its contract: it appends nothing to nil and gives nil.
type empty struct{ serde.Serde[string] }

func (empty) Name() string                                { return "empty" }
func (empty) Append(dst []byte, _ string) ([]byte, error) { return dst, nil }
func (empty) Decode([]byte) (string, error)               { return "decoded", nil }

// TestSerdeThatGivesNil: what is not null must not become null, which would delete.
func TestSerdeThatGivesNil(t *testing.T) {
	top := processor.NewTopology()
	processor.AddSource(top, "source", serde.Serde[string](empty{}), serde.Serde[string](empty{}), "in")
	store := processor.KeyValue("store", serde.String, serde.Serde[string](empty{}))
	processor.AddProcessor(top, "p", func() strFunc {
		return func(ctx strCtx, r strRec) error {
			if err := store.In(ctx).Put("k", "v"); err != nil {
				return err
			}
			if v, ok, err := store.In(ctx).Get("k"); v != "decoded" || !ok || err != nil {
				t.Error(v, ok, err)
			}
			return ctx.Forward(r)
		}
	}, []string{"source"}, store)
	processor.AddSink(top, "sink", "out", serde.Serde[string](empty{}), serde.Serde[string](empty{}), "p")
	r := newRig(t, top)
	r.mustSend("in", "k", "v", 1)
	r.expect("out = @1")
}
