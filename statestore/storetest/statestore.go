package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-streams/tidemark/statestore"
)

// RunStateStore checks what a [statestore.StateStore] promises by itself. open gives what opens
// a new, empty one.
func RunStateStore(t *testing.T, open func(t *testing.T) Opener) {
	for _, check := range []struct {
		name string
		run  func(o *own)
	}{
		{"rows", ownRows}, {"ranges", ownRanges}, {"a range sees its beginning", ownBeginning}, {"batches", ownBatches}, {"point", ownPoint},
	} {
		t.Run(check.name, func(t *testing.T) {
			o := &own{t: t, opener: open(t)}
			o.open()
			t.Cleanup(o.close)
			check.run(o)
		})
	}
}

type own struct {
	t      *testing.T
	opener Opener
	s      statestore.StateStore
}

func (o *own) open() {
	o.t.Helper()
	s, err := o.opener("store")
	o.must(err)
	o.s = s
}

func (o *own) close() {
	o.t.Helper()
	if o.s != nil {
		o.must(o.s.Close())
	}
	o.s = nil
}

func (o *own) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *own) apply(at statestore.StorePoint, writes ...statestore.Row) {
	o.t.Helper()
	o.must(o.s.Apply(writes, at))
	for _, w := range writes { // they are not the store's to keep
		clobber(w.Key)
		clobber(w.Value)
	}
}

func clobber(b []byte) {
	for i := range b {
		b[i] = '?'
	}
}

func row(key, value string) statestore.Row {
	return statestore.Row{Key: []byte(key), Value: []byte(value)}
}

func deletion(key string) statestore.Row { return statestore.Row{Key: []byte(key)} }

func (o *own) want(key, value string, there bool) {
	o.t.Helper()
	v, ok, err := o.s.Get([]byte(key))
	o.must(err)
	if ok != there || ok && string(v) != value {
		o.t.Fatalf("get %q = %q, %v; want %q, %v", key, v, ok, value, there)
	}
}

func rowText(r statestore.Row) string { return fmt.Sprintf("%q=%q", r.Key, r.Value) }

func (o *own) ranged(from, to []byte, reverse bool, want []string) {
	o.t.Helper()
	got := list(o.t, o.s.Range(from, to, reverse), rowText)
	if !slices.Equal(got, want) && len(got)+len(want) > 0 {
		o.t.Fatalf("range from %q to %q, reverse %v:\n got %v\nwant %v", from, to, reverse, got, want)
	}
}

func ownRows(o *own) {
	o.want("a", "", false)
	at := statestore.StorePoint{Offset: statestore.At(3), ID: statestore.CommitID{Epoch: 1, Number: 1}}
	for _, key := range awkward {
		o.apply(at, row(key, key+"!"))
	}
	o.apply(at, row("empty", ""))
	for range 2 {
		for _, key := range awkward {
			o.want(key, key+"!", true)
		}
		o.want("empty", "", true)
		o.must(o.s.Sync())
		o.close()
		o.open()
	}
	o.apply(at, deletion("a"), deletion("absent"))
	o.want("a", "", false)
	o.want("a\x00", "a\x00!", true)
}

func ownRanges(o *own) {
	var writes []statestore.Row
	sorted := slices.Clone(awkward)
	slices.Sort(sorted)
	for _, key := range awkward {
		writes = append(writes, row(key, ""))
	}
	o.apply(statestore.StorePoint{Offset: statestore.At(1)}, writes...)
	bounds := [][]byte{nil}
	for _, key := range awkward {
		bounds = append(bounds, []byte(key))
	}
	for _, from := range bounds {
		for _, to := range bounds {
			var want []string
			for _, key := range sorted {
				if bytes.Compare([]byte(key), from) >= 0 && (to == nil || bytes.Compare([]byte(key), to) < 0) {
					want = append(want, rowText(row(key, "")))
				}
			}
			o.ranged(from, to, false, want)
			slices.Reverse(want)
			o.ranged(from, to, true, want)
		}
	}
	for range o.s.Range(nil, nil, false) { //nolint:errcheck // it is left at once
		break // gives everything back
	}
}

func ownBeginning(o *own) {
	at := statestore.StorePoint{Offset: statestore.At(1)}
	o.apply(at, row("a", "1"), row("c", "1"), row("e", "1"))
	var got []string
	applied := make(chan error, 1)
	for r, err := range o.s.Range(nil, nil, false) {
		o.must(err)
		if len(got) == 0 { // as a task does: one goroutine reads, another applies
			go func() { applied <- o.s.Apply([]statestore.Row{row("b", "2"), row("c", "2"), deletion("e")}, at) }()
			o.must(<-applied)
		}
		got = append(got, rowText(r))
	}
	if want := []string{`"a"="1"`, `"c"="1"`, `"e"="1"`}; !slices.Equal(got, want) {
		o.t.Fatalf("a range while writes are applied gives %v; want %v", got, want)
	}
	o.ranged(nil, nil, false, []string{`"a"="1"`, `"b"="2"`, `"c"="2"`})
}

// ownBatches: writes count in their order.
func ownBatches(o *own) {
	at := statestore.StorePoint{Offset: statestore.At(1)}
	o.apply(at, row("a", "1"), row("a", "2"), deletion("b"), row("b", "3"), row("c", "4"), deletion("c"))
	o.ranged(nil, nil, false, []string{`"a"="2"`, `"b"="3"`})
	o.apply(at)
	o.ranged(nil, nil, false, []string{`"a"="2"`, `"b"="3"`})
}

// ownPoint: a store that manages offsets gives back the last one, with the rows of it.
func ownPoint(o *own) {
	if !o.s.ManagesOffsets() {
		return
	}
	point := func(want statestore.StorePoint) {
		o.t.Helper()
		got, err := o.s.Point()
		o.must(err)
		if got != want {
			o.t.Fatalf("point %+v; want %+v", got, want)
		}
	}
	point(statestore.StorePoint{})
	for _, at := range []statestore.StorePoint{
		{Offset: statestore.At(0)}, {Offset: statestore.At(1 << 40), ID: statestore.CommitID{Epoch: 7, Number: 1 << 40}},
		{Offset: statestore.CleanUnknown(), ID: statestore.CommitID{Epoch: 8}}, {},
	} {
		o.apply(at, row("a", fmt.Sprint(at)))
		point(at)
		o.must(o.s.Sync())
		o.close()
		o.open()
		point(at)
		o.want("a", fmt.Sprint(at), true)
	}
}
