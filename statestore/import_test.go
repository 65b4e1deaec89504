package statestore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
)

func TestStampOwner(t *testing.T) {
	fs := newCrashFS()
	s := writeSome(t, "t", memOptions(fs))
	if s.Owner() != (Owner{}) {
		t.Errorf("a new task store has the owner %v", s.Owner())
	}
	at := time.UnixMilli(1_700_000_000_123)
	must(t, s.StampOwner(Owner{"first", at}))
	must(t, s.StampOwner(Owner{"second", at.Add(time.Hour)}))
	must(t, s.Sync())
	want := Owner{"second", at.Add(time.Hour)}
	if s.Owner() != want {
		t.Errorf("owner %v; want %v", s.Owner(), want)
	}
	clone := fs.CrashClone(vfs.CrashCloneCfg{})
	v := readOnly(t, "t", ReadOptions{FS: clone})
	if got := v.Metadata().Owner; got != want {
		t.Errorf("after a crash: owner %v; want %v", got, want)
	}
	m := v.Metadata()
	if m.CommitID != (CommitID{3, 7}) || m.Stores[0].Offset != At(11) {
		t.Errorf("the stamp changed the commit record: %+v", m)
	}
	must(t, v.Close())
	if got := openStore(t, "t", memOptions(clone)).Owner(); got != want {
		t.Errorf("opened again: owner %v; want %v", got, want)
	}
	must(t, s.Close())
	if err := s.StampOwner(Owner{}); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestImport(t *testing.T) {
	fs := newCrashFS()
	s := openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	must(t, s.Load("latest", []RestoreRecord{{Key: []byte("a"), Value: []byte("1"), Timestamp: 9}}))
	must(t, s.Load("latest", []RestoreRecord{{Key: []byte("b"), Value: []byte("2"), Timestamp: 9}}))
	must(t, s.Sync())
	half := readOnly(t, "t", ReadOptions{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
	if m := half.Metadata().Stores[1]; !m.Offset.IsAbsent() || m.Complete || len(rows(t, half, "latest", nil, nil)) != 2 {
		t.Errorf("half an import: %+v", m)
	}
	at := time.UnixMilli(1_700_000_000_000)
	x := Import{Store: "latest", Source: ".checkpoint", Time: at}
	must(t, s.RecordImport(x, At(12), []Position{{"in", 0, 7}}))
	y := Import{Store: "counts", Source: ".checkpoint", Time: at}
	must(t, s.RecordImport(y, Offset{}, []Position{{"in", 1, 3}}))

	clone := fs.CrashClone(vfs.CrashCloneCfg{}) // nothing was synced but by RecordImport
	s = openStore(t, "t", memOptions(clone), countsSpec, latestSpec)
	if d := cmp.Diff([]Import{x, y}, s.Imports()); d != "" {
		t.Errorf("imports (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Position{{"in", 0, 7}, {"in", 1, 3}}, s.Positions()); d != "" {
		t.Errorf("positions (-want +got):\n%s", d)
	}
	if o := s.CommittedOffsets(); o["latest"] != At(12) || !o["counts"].IsAbsent() {
		t.Errorf("offsets %v", o)
	}
	wantValue(t, handle(t, s, "latest"), "b", "2")
	must(t, s.Restore("latest", nil, 13)) // it goes on from there
	must(t, s.Clear("latest"))
	for _, z := range []Import{x, y} {
		if err := s.RecordImport(z, At(12), nil); err == nil || !strings.Contains(err.Error(), "done before") {
			t.Errorf("a second time: %v", err)
		}
	}
	must(t, s.RecordImport(Import{Store: "latest", Source: "other", Time: at}, CleanUnknown(), nil))
	if err := s.Load("latest", nil); err == nil || !strings.Contains(err.Error(), "offset of its own") {
		t.Errorf("load over an offset: %v", err)
	}
	for name, err := range map[string]error{
		"unknown store":   s.RecordImport(Import{Store: "none"}, At(1), nil),
		"negative offset": s.RecordImport(Import{Store: "counts", Source: "x"}, At(-1), nil),
		"bad position":    s.RecordImport(Import{Store: "counts", Source: "x"}, At(1), []Position{{"", 0, 1}}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	must(t, handle(t, s, "counts").Put([]byte("k"), []byte("v"), 1))
	if err := s.RecordImport(Import{Store: "counts", Source: "x"}, At(1), nil); !errors.Is(err, ErrUncommitted) {
		t.Errorf("with uncommitted writes: %v", err)
	}
}
