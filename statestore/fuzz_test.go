package statestore

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
	"github.com/tidemark-streams/tidemark/statestore/internal/storepb"
	"google.golang.org/protobuf/proto"
)

// What is read from the disk may be anything: a decoder gives a value that encodes to
// itself again, or an error that wraps ErrCorrupt or ErrNewerFormat.

func checkDecodeError(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewerFormat) {
		t.Fatalf("%v; want ErrCorrupt or ErrNewerFormat", err)
	}
}

func FuzzDecodeCommit(f *testing.F) {
	seed, err := encodeCommit(&progress{id: CommitID{1, 2}, streamTime: 3, positions: []Position{{"in", 0, 4}},
		stores: map[uint32]storeProgress{1: {offset: At(5), complete: true}, 2: {offset: CleanUnknown()}, 3: {clock: kinds.Clock{Known: true, Time: 7, Sequence: 8}}}})
	must(f, err)
	f.Add(seed)
	f.Add([]byte{})
	f.Add([]byte{8, 99})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeCommit(b)
		if err != nil {
			checkDecodeError(t, err)
			return
		}
		again, err := encodeCommit(p)
		must(t, err)
		q, err := decodeCommit(again)
		must(t, err)
		if !reflect.DeepEqual(p, q) {
			t.Fatalf("%+v became %+v", p, q)
		}
	})
}

func FuzzDecodeCatalog(f *testing.F) {
	seed, err := encodeCatalog(&catalog{nextID: 3, specs: map[uint32]Spec{1: countsSpec, 2: latestSpec}})
	must(f, err)
	f.Add(seed)
	f.Add([]byte{8, 1, 16, 2})
	for _, p := range kindSpecs {
		seed, err := encodeCatalog(&catalog{nextID: 2, specs: map[uint32]Spec{1: p.recorded()}})
		must(f, err)
		f.Add(seed)
	}
	for _, times := range oddTimes {
		f.Add(catalogWithTimes(f, times))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCatalog(b)
		if err != nil {
			checkDecodeError(t, err)
			return
		}
		again, err := encodeCatalog(c)
		must(t, err)
		d, err := decodeCatalog(again)
		must(t, err)
		if !reflect.DeepEqual(c, d) {
			t.Fatalf("%+v became %+v", c, d)
		}
	})
}

// oddTimes are retention, window size and segment interval in ms as no program records them.
var oddTimes = [][3]int64{
	{math.MaxInt64, 1, 60_000}, {math.MaxInt64 / 1_000_000 * 3, 1, math.MaxInt64}, {1, math.MaxInt64/1_000_000 + 1, 60_000},
	{-1, 0, 60_000}, {math.MinInt64, 0, 60_000}, {1, -1, 60_000}, {1, 1, 0}, {1, 1, -60_000}, {100_000, 1, 1},
}

func catalogWithTimes(t testing.TB, times [3]int64) []byte {
	t.Helper()
	b, err := proto.Marshal(&storepb.Catalog{Version: catalogVersion, NextId: 2, Stores: []*storepb.Store{
		{Id: 1, Name: "w", Kind: uint32(KindWindow), RetentionMs: times[0], WindowSizeMs: times[1], SegmentMs: times[2]}}})
	must(t, err)
	return b
}

// TestCatalogWithOddTimes: they are damage, and nothing overflows.
func TestCatalogWithOddTimes(t *testing.T) {
	for _, times := range oddTimes {
		if _, err := decodeCatalog(catalogWithTimes(t, times)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), `store "w"`) {
			t.Errorf("%v: %v; want ErrCorrupt with the store's name", times, err)
		}
	}
	if _, err := decodeCatalog(catalogWithTimes(t, [3]int64{math.MaxInt64 / 1_000_000, 0, math.MaxInt64 / 2_000_000})); err != nil {
		t.Errorf("the longest retention: %v", err)
	}
}

func FuzzDecodeFormat(f *testing.F) {
	seed, err := encodeFormat(make([]byte, 16), 1)
	must(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := decodeFormat(b); err != nil {
			checkDecodeError(t, err)
		}
	})
}

// A database value of a timestamped store may be damaged too.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("12345678value"), true)
	f.Add([]byte("short"), true)
	f.Fuzz(func(t *testing.T, b []byte, timestamped bool) {
		st := &store{spec: countsSpec}
		if timestamped {
			st.spec = latestSpec
		}
		v, _, err := st.split(b)
		if err != nil {
			checkDecodeError(t, err)
			return
		}
		if v == nil {
			t.Fatal("a value that is there is nil")
		}
	})
}

func TestNewerVersionIsRefused(t *testing.T) {
	for name, x := range map[string]struct {
		newest byte
		decode func([]byte) error
	}{
		"format":  {formatVersion, func(b []byte) error { _, err := decodeFormat(b); return err }},
		"catalog": {catalogVersion, func(b []byte) error { _, err := decodeCatalog(b); return err }},
		"commit":  {commitVersion, func(b []byte) error { _, err := decodeCommit(b); return err }},
		"owner":   {ownerVersion, func(b []byte) error { _, err := decodeOwner(b); return err }},
		"imports": {importsVersion, func(b []byte) error { _, err := decodeImports(b); return err }},
	} {
		decode := x.decode
		if err := decode([]byte{8, x.newest + 1}); !errors.Is(err, ErrNewerFormat) {
			t.Errorf("%s of version %d: %v; want ErrNewerFormat", name, x.newest+1, err)
		}
		if err := decode(nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("empty %s: %v; want ErrCorrupt", name, err)
		}
	}
}
