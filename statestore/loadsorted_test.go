package statestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sortedRows gives n rows with keys of 8 bytes and values of size bytes.
func sortedRows(n, size int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		value := make([]byte, size)
		for i := range n {
			copy(value, fmt.Sprint(i))
			if !yield(Row{binary.BigEndian.AppendUint64(nil, uint64(i)), value}, nil) {
				return
			}
		}
	}
}

func TestLoadSorted(t *testing.T) {
	fs := newCrashFS()
	s := openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	const n, size = 3000, 12_000 // three tables
	must(t, s.LoadSorted("counts", sortedRows(n, size)))
	counts, err := s.KeyValue("counts")
	must(t, err)
	v, _, ok, err := counts.Get(binary.BigEndian.AppendUint64(nil, 2999))
	if err != nil || !ok || !strings.HasPrefix(string(v), "2999") {
		t.Errorf("%.10q, %v, %v", v, ok, err)
	}
	half := readOnly(t, "t", ReadOptions{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
	if m := half.Metadata().Stores[0]; !m.Offset.IsAbsent() || m.Complete || len(rows(t, half, "counts", nil, nil)) != n {
		t.Errorf("after a crash: %+v", m)
	}
	must(t, s.RecordImport(Import{Store: "counts", Source: "x", Time: time.Now()}, At(7), nil))
	clone := fs.CrashClone(vfs.CrashCloneCfg{})
	whole := readOnly(t, "t", ReadOptions{FS: clone})
	if m := whole.Metadata().Stores[0]; m.Offset != At(7) || len(rows(t, whole, "counts", nil, nil)) != n {
		t.Errorf("recorded: %+v", m)
	}
	if names, err := fs.List("t"); err != nil || strings.Contains(fmt.Sprint(names), scratchName) {
		t.Errorf("left behind: %q, %v", names, err)
	}
	if err := s.LoadSorted("counts", sortedRows(1, 1)); err == nil || !strings.Contains(err.Error(), "an offset of its own") {
		t.Errorf("a store with an offset: %v", err)
	}
}

// The tables do not wait for the log, so what was written before must be on the disk first.
func TestLoadSortedComesBehindTheLog(t *testing.T) {
	fs := newCrashFS()
	s := openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	must(t, s.Restore("latest", []RestoreRecord{{Key: []byte("k"), Value: []byte("v"), Timestamp: 1}}, 5))
	must(t, s.LoadSorted("counts", sortedRows(10, 10)))
	v := readOnly(t, "t", ReadOptions{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
	if m := v.Metadata(); m.Stores[1].Offset != At(5) || len(rows(t, v, "counts", nil, nil)) != 10 {
		t.Errorf("%+v", m.Stores)
	}
}

func TestLoadSortedRefuses(t *testing.T) {
	s := openStore(t, "t", memOptions(newCrashFS()), countsSpec, latestSpec)
	given := func(list ...Row) iter.Seq2[Row, error] {
		return func(yield func(Row, error) bool) {
			for _, r := range list {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	row := func(k, v string) Row { return Row{[]byte(k), []byte(v)} }
	broken := errors.New("the source broke")
	for what, err := range map[string]error{
		"ascending order":         s.LoadSorted("counts", given(row("b", ""), row("a", ""))),
		"behind \"a\"":            s.LoadSorted("counts", given(row("a", "1"), row("a", "2"))),
		"behind \"\"":             s.LoadSorted("counts", given(row("", "1"), row("", "2"))),
		"8 bytes of timestamp":    s.LoadSorted("latest", given(row("a", "1234567"))),
		broken.Error():            s.LoadSorted("counts", func(yield func(Row, error) bool) { yield(Row{}, broken) }),
		`"other" was not registe`: s.LoadSorted("other", given()),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, s.LoadSorted("counts", given())) // nothing is fine
	must(t, s.LoadSorted("latest", given(row("", "12345678"), row("\xff", "12345678x"))))
	latest, err := s.KeyValue("latest")
	must(t, err)
	if v, ts, ok, err := latest.Get([]byte{0xff}); err != nil || !ok || string(v) != "x" || ts != 0x3132333435363738 {
		t.Errorf("%q, %x, %v, %v", v, ts, ok, err)
	}
}

func TestForeign(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenForeign(dir, ReadOptions{}); !errors.Is(err, ErrNoStore) {
		t.Errorf("an empty directory: %v", err)
	}
	s, err := Open(dir, Options{})
	must(t, err)
	if _, err := OpenForeign(dir, ReadOptions{}); !errors.Is(err, ErrLocked) {
		t.Errorf("in use: %v", err)
	}
	must(t, s.Close())
	f, err := OpenForeign(dir, ReadOptions{})
	must(t, err)
	n := 0
	for row, err := range f.Rows() {
		must(t, err)
		if n++; len(row.Key) == 0 {
			t.Errorf("%q", row.Key)
		}
	}
	if n == 0 {
		t.Error("no rows: at least the format record is one")
	}
	must(t, f.Close())
	must(t, f.Close())
}
