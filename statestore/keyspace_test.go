package statestore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// rawKeys reads all keys of the database.
func rawKeys(t testing.TB, s *TaskStore) (keys [][]byte) {
	t.Helper()
	it, err := s.db.NewIter("test", nil, nil)
	must(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, bytes.Clone(it.Key()))
	}
	must(t, it.Close())
	return keys
}

// hostile are keys that look like metadata, prefixes and ends of ranges.
func hostile() [][]byte {
	keys := [][]byte{nil, {}, {0}, {0, 0}, {0xff}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, keyFormat, keyCatalog, keyCommit, {spaceData}, {spaceData - 1}}
	for id := range uint32(4) {
		p := storePrefix(id)
		keys = append(keys, p[:], append(bytes.Clone(p[:]), "x"...))
	}
	return keys
}

func TestMetadataIsOutOfReach(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	counts, latest := handle(t, s, "counts"), handle(t, s, "latest")
	must(t, latest.Put([]byte("bystander"), []byte("v"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"counts": At(5), "latest": At(6)})

	write := func(value []byte) {
		t.Helper()
		for _, k := range hostile() {
			must(t, counts.Put(k, value, 1))
		}
		if n := len(collect(t, latest.All())); n != 1 {
			t.Errorf("the other store has %d entries", n)
		}
	}
	inspect := func(where string) {
		t.Helper()
		for _, scan := range []func(func(Entry, error) bool){
			counts.All(), counts.ReverseAll(), counts.Range([]byte{}, nil), counts.Range([]byte{0}, []byte{0xff, 0xff}), counts.PrefixScan(nil),
			counts.PrefixScan([]byte{0xff}), counts.PrefixScan([]byte{0}), counts.Range(nil, keyCommit), counts.ReverseRange([]byte{0xff}, nil),
		} {
			for _, e := range collect(t, scan) {
				if !bytes.Equal(e.Value, []byte("mine")) {
					t.Errorf("%s: a scan shows %q = %q", where, e.Key, e.Value)
				}
			}
		}
	}
	write([]byte("mine"))
	inspect("overlay")
	commit(t, s, Progress{ID: CommitID{1, 2}}, nil)
	inspect("database")
	write(nil)
	inspect("deleted in the overlay")
	commit(t, s, Progress{ID: CommitID{1, 3}}, nil)
	write([]byte("mine"))
	commit(t, s, Progress{ID: CommitID{1, 4}}, nil)
	must(t, s.Clear("counts"))
	if n := len(collect(t, counts.All())); n != 0 {
		t.Errorf("%d entries after a clear", n)
	}
	must(t, s.Close())

	s = openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	if s.CommitID() != (CommitID{1, 4}) || s.CommittedOffsets()["latest"] != At(6) {
		t.Errorf("metadata: commit %v, offsets %v", s.CommitID(), s.CommittedOffsets())
	}
	if es := collect(t, handle(t, s, "latest").All()); len(es) != 1 || string(es[0].Key) != "bystander" {
		t.Errorf("the other store holds %v", es)
	}
	for _, k := range rawKeys(t, s) {
		if k[0] != spaceMeta && (k[0] != spaceData || binary.BigEndian.Uint32(k[1:]) != 2) {
			t.Errorf("database key %x is of neither space", k)
		}
	}
}

// TestBoundsStayInTheStore: whatever a user gives, the range read lies in the store's own.
func TestBoundsStayInTheStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Uint32Range(1, maxStoreID).Draw(t, "id")
		st := &store{id: id, prefix: storePrefix(id)}
		lo, hi := storeBounds(id)
		from := rapid.SliceOf(rapid.Byte()).Draw(t, "from")
		to := rapid.SliceOf(rapid.Byte()).Draw(t, "to")
		bounds := [][2][]byte{}
		for _, end := range [][]byte{to, nil, prefixEnd(from)} {
			l, u := st.bounds(from, end)
			bounds = append(bounds, [2][]byte{l, u})
		}
		for _, b := range bounds {
			if bytes.Compare(b[0], lo) < 0 || bytes.Compare(b[1], hi) > 0 || bytes.Compare(b[0], hi) >= 0 || bytes.Compare(b[1], lo) < 0 {
				t.Fatalf("store %d: bounds %x, %x leave %x, %x", id, b[0], b[1], lo, hi)
			}
		}
		if bytes.Compare(lo, []byte{spaceMeta, 0xff, 0xff}) <= 0 || hi[0] != spaceData {
			t.Fatalf("store %d: range %x, %x", id, lo, hi)
		}
	})
}

func TestPrefixScan(t *testing.T) { onEngines(t, testPrefixScan) }

func testPrefixScan(t *testing.T, o Options) {
	s := openStore(t, "t", o, countsSpec)
	kv := handle(t, s, "counts")
	for i, k := range []string{"a", "ab", "abc", "ac", "b", "\xff", "\xff\xff", "\xff\xffz"} {
		must(t, kv.Put([]byte(k), []byte("v"), 1))
		if i == 3 {
			commit(t, s, Progress{}, nil)
		}
	}
	for prefix, want := range map[string]string{
		"": `["a" "ab" "abc" "ac" "b" "\xff" "\xff\xff" "\xff\xffz"]`, "a": `["a" "ab" "abc" "ac"]`, "ab": `["ab" "abc"]`,
		"\xff": `["\xff" "\xff\xff" "\xff\xffz"]`, "\xff\xff": `["\xff\xff" "\xff\xffz"]`, "abcd": `[]`,
	} {
		keys := []string{}
		for _, e := range collect(t, kv.PrefixScan([]byte(prefix))) {
			keys = append(keys, string(e.Key))
		}
		if got := fmt.Sprintf("%q", keys); got != want {
			t.Errorf("prefix %q: %s; want %s", prefix, got, want)
		}
	}
}
