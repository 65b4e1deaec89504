package statestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestVerifyFindsWhatDoesNotBelong(t *testing.T) {
	rowKey := func(id uint32, rest string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{spaceData}, id), rest...)
	}
	for _, test := range []struct {
		name  string
		key   []byte
		value string
		want  string // of the problem; "": none
	}{
		{"any user key", rowKey(1, "\x00f"), "v", ""},
		{"no user key", rowKey(1, ""), "", ""},
		{"a store that nobody knows", rowKey(9, "k"), "v", "store 9 is not in the catalog: 1 rows, the first: 6b"},
		{"value shorter than its timestamp", rowKey(2, "k"), "1234567", `store "latest": 1 rows, the first: database is corrupt: row 6b`},
		{"window key shorter than its times", rowKey(3, "123456789"), "v", `store "window": 1 rows`},
		{"session that ends before it starts", rowKey(4, "\x00\x00\x00\x00\x00\x00\x00\x00k"+"\x00\x00\x00\x00\x00\x00\x00\x01"+"\x00\x00\x00\x00\x00\x00\x00\x02"), "v", "before the start"},
		{"version without a value's mark", rowKey(5, "\x00\x00\x00\x00\x00\x00\x00\x00k\x00\x00\x00\x00\x00\x00\x00\x02"), "\x00\x00\x00\x00\x00\x00\x00\x01\x07", `store "versions"`},
		{"unknown metadata", []byte{spaceMeta, 'z'}, "", "unknown metadata key: 1 rows, the first: 007a"},
		{"schema change of no store", append([]byte{spaceMeta, 'm'}, 0, 0, 0), "", "unknown metadata key"},
		{"another space", []byte{0x21, 1}, "", "key outside of every store"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "0_0")
			specs := schemaSpecs(0, false)
			s := openStore(t, dir, Options{Logger: quiet()}, countsSpec, latestSpec, specs[2], specs[4], specs[5])
			must(t, handle(t, s, "counts").Put([]byte("a"), []byte("b"), 1))
			commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
			must(t, s.Close())
			setRaw(t, dir, test.key, append([]byte{}, test.value...))
			found, err := readOnly(t, dir, ReadOptions{}).Verify(t.Context())
			must(t, err)
			if found.Tables == 0 || found.Bytes == 0 || found.Stores[0].Rows == 0 {
				t.Errorf("%+v", found)
			}
			switch {
			case test.want == "" && len(found.Problems) > 0:
				t.Errorf("problems %q", found.Problems)
			case test.want != "" && (len(found.Problems) != 1 || !strings.Contains(found.Problems[0], test.want)):
				t.Errorf("problems %q; want %q", found.Problems, test.want)
			}
		})
	}
}

// A damaged block is found in the tables even if no row of it is ever read, and is named.
func TestVerifyReadsEveryBlock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0_0")
	damagedStore(t, dir)
	v := readOnly(t, dir, ReadOptions{})
	found, err := v.Verify(t.Context())
	must(t, err)
	if !slices.ContainsFunc(found.Problems, func(p string) bool { return strings.HasPrefix(p, "table file 0") && strings.Contains(p, ".sst") }) {
		t.Errorf("problems %q", found.Problems)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Verify(ctx); err == nil {
		t.Error("a cancelled verification ended without an error")
	}
}

func TestSizeOfAView(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0_0")
	s := openStore(t, dir, Options{Logger: quiet()}, countsSpec, latestSpec)
	const n = 50_000
	for i := range n {
		must(t, handle(t, s, "counts").Put(fmt.Appendf(nil, "key-%08d", i), []byte("0123456789"), 1))
	}
	must(t, handle(t, s, "latest").Put([]byte("a"), nil, 1))
	must(t, handle(t, s, "latest").Put([]byte("b"), []byte("v"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
	must(t, s.Close())
	v := readOnly(t, dir, ReadOptions{})
	size, err := v.Size("counts")
	must(t, err)
	if size.Rows < n/2 || size.Rows > n*2 || size.Bytes < 1000 {
		t.Errorf("%+v; want about %d rows", size, n)
	}
	size, err = v.Size("latest")
	must(t, err)
	if !size.Exact || size.Rows != 1 {
		t.Errorf("%+v; want exactly 1 row", size)
	}
	if _, err := v.Size("none"); err == nil {
		t.Error("the size of no store")
	}
}

// What is read from the disk is decoded without a panic, and what is wrong is corrupt.
func FuzzDecodeRow(f *testing.F) {
	for kind := range 8 {
		f.Add(uint8(kind), []byte("\x00\x00\x00\x00\x00\x00\x00\x01key\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x04"), []byte("\x00\x00\x00\x00\x00\x00\x00\x01\x01value"))
	}
	f.Fuzz(func(t *testing.T, kind uint8, key, value []byte) {
		_, _, err := decodeRow(Kind(kind), Row{Key: key, Value: value})
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v; want ErrCorrupt", err)
		}
	})
}

func FuzzDecodeRecordsBeside(f *testing.F) {
	owner, _ := encodeOwner(Owner{"p", millisTime(5)})
	imports, _ := encodeImports([]Import{{Store: "s", Source: "f", Time: millisTime(5)}})
	change, _ := encodeSchemaChange(schemaParts{{[]byte("a"), 2}, {nil, 1}})
	for _, b := range [][]byte{owner, imports, change, nil, {8, 9}} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, decode := range []func([]byte) error{
			func(b []byte) error { _, err := decodeOwner(b); return err },
			func(b []byte) error { _, err := decodeImports(b); return err },
			func(b []byte) error { _, err := decodeSchemaChange(b); return err },
		} {
			if err := decode(b); err != nil {
				checkDecodeError(t, err)
			}
		}
	})
}
