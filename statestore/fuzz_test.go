package statestore

import (
	"errors"
	"reflect"
	"testing"
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
		stores: map[uint32]storeProgress{1: {At(5), true}, 2: {CleanUnknown(), false}, 3: {}}})
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
	for name, decode := range map[string]func([]byte) error{
		"format":  func(b []byte) error { _, err := decodeFormat(b); return err },
		"catalog": func(b []byte) error { _, err := decodeCatalog(b); return err },
		"commit":  func(b []byte) error { _, err := decodeCommit(b); return err },
	} {
		if err := decode([]byte{8, 2}); !errors.Is(err, ErrNewerFormat) {
			t.Errorf("%s of version 2: %v; want ErrNewerFormat", name, err)
		}
		if err := decode(nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("empty %s: %v; want ErrCorrupt", name, err)
		}
	}
}
