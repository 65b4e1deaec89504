package statestore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/pebbledb"
)

// format1 gives a copy of a database that a program of format 1 wrote: what writeSome writes.
func format1(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "0_0")
	must(t, os.CopyFS(dir, os.DirFS("testdata/format-1")))
	return dir
}

func wantUpgraded(t testing.TB, s *TaskStore) {
	t.Helper()
	wantValue(t, handle(t, s, "latest"), "a", "new")
	if n := len(collect(t, handle(t, s, "counts").All())); n != 100 {
		t.Errorf("%d counts", n)
	}
	if s.CommitID() != (CommitID{3, 7}) || s.StreamTime() != 42 || s.CommittedOffsets()["counts"] != At(11) {
		t.Errorf("commit %v, stream time %d, offsets %v", s.CommitID(), s.StreamTime(), s.CommittedOffsets())
	}
}

func TestUpgradeFromFormat1(t *testing.T) {
	dir := format1(t)
	v := readOnly(t, dir, ReadOptions{}) // is read as it is
	m := v.Metadata()
	if m.FormatVersion != 1 || m.CommitID != (CommitID{3, 7}) || !m.Committed.IsZero() || len(rows(t, v, "counts", nil, nil)) != 100 {
		t.Errorf("read only: %+v", m)
	}
	must(t, v.Close())
	s := openStore(t, dir, Options{Logger: quiet()}, countsSpec, latestSpec)
	if from := s.OpenStats().UpgradedFrom; from != 1 {
		t.Errorf("upgraded from %d", from)
	}
	wantUpgraded(t, s)
	must(t, s.Close())
	s = openStore(t, dir, Options{Logger: quiet()}, countsSpec, latestSpec)
	if from := s.OpenStats().UpgradedFrom; from != 0 || s.OpenStats().ID != m.ID {
		t.Errorf("opened again: upgraded from %d, id %x, was %x", from, s.OpenStats().ID, m.ID)
	}
	wantUpgraded(t, s)
	must(t, s.Close())
	if f := readOnly(t, dir, ReadOptions{}).Metadata().FormatVersion; f != formatVersion {
		t.Errorf("format %d after the upgrade", f)
	}
}

// memCopy takes a directory into a file system in memory.
func memCopy(t *testing.T, dir string) *crashFS {
	t.Helper()
	mem := newCrashFS()
	copyInto(t, mem, dir)
	return mem
}

// copyInto copies a directory of the disk to "t".
func copyInto(t testing.TB, mem vfs.FS, dir string) {
	t.Helper()
	must(t, mem.MkdirAll("t", 0o700))
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		f, err := mem.Create("t/"+e.Name(), vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = f.Write(b)
		must(t, errors.Join(err, f.Sync(), f.Close()))
	}
	must(t, errors.Join(syncDir(mem, "t"), syncDir(mem, "")))
}

// A power loss at any write of an upgrade leaves a database of one format or the other,
// with all its data; the next open ends the upgrade.
func TestPowerLossDuringUpgrade(t *testing.T) {
	seen := map[uint32]bool{}
	for at := int64(1); ; at++ {
		mem := memCopy(t, "testdata/format-1")
		var n atomic.Int64
		var clone *crashFS
		o := memOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && n.Add(1) == at {
				clone = mem.CrashClone(vfs.CrashCloneCfg{})
			}
			return nil
		})))
		s, err := Open("t", o)
		must(t, err)
		ended := n.Load() < at
		must(t, s.Close())
		if ended {
			break
		}
		v := readOnly(t, "t", ReadOptions{FS: clone})
		seen[v.Metadata().FormatVersion] = true
		must(t, v.Close())
		again := openStore(t, "t", memOptions(clone), countsSpec, latestSpec)
		wantUpgraded(t, again)
		must(t, again.Close())
	}
	if len(seen) != 2 {
		t.Errorf("formats after a power loss: %v; the test did not see both", seen)
	}
}

// TestUpgradeThatFails in its step leaves the old format. (TestFullDiskInEveryVerb has every write of an upgrade.)
func TestUpgradeThatFails(t *testing.T) {
	mem := memCopy(t, "testdata/format-1")
	upgrades[1] = func(*metadata, engine.Batch) error { return syscall.ENOSPC }
	defer func() { upgrades[1] = func(*metadata, engine.Batch) error { return nil } }()
	_, err := Open("t", memOptions(mem))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "upgrade from format 1 to 2") {
		t.Errorf("%v; want the step and the cause", err)
	}
	v := readOnly(t, "t", ReadOptions{FS: mem})
	if v.Metadata().FormatVersion != 1 {
		t.Errorf("format %d after an upgrade that failed", v.Metadata().FormatVersion)
	}
}

// A newer format is refused, and not one byte changes.
func TestNewerFormatIsLeftAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0_0")
	must(t, writeSome(t, dir, Options{Logger: quiet()}).Close())
	setRaw(t, dir, keyFormat, []byte{0x08, formatVersion + 1})
	before := content(t, dir)
	for range 3 {
		_, err := Open(dir, Options{Logger: quiet()})
		if !errors.Is(err, ErrNewerFormat) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "nothing in the directory was changed") {
			t.Errorf("%v; want ErrNewerFormat, the directory and what to do", err)
		}
	}
	if d := cmp.Diff(before, content(t, dir)); d != "" {
		t.Errorf("files changed:\n%s", d)
	}
}

// So is a database of a newer version of the engine.
func TestNewerEngineIsLeftAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0_0")
	must(t, writeSome(t, dir, Options{Logger: quiet()}).Close())
	names, err := filepath.Glob(filepath.Join(dir, "marker.format-version.*"))
	must(t, err)
	must(t, os.Rename(names[0], filepath.Join(dir, "marker.format-version.999999.999")))
	before := content(t, dir)
	_, err = Open(dir, Options{Logger: quiet()})
	_, err2 := OpenReadOnly(dir, ReadOptions{Logger: quiet()})
	for _, err := range []error{err, err2} {
		if !errors.Is(err, ErrNewerFormat) || errors.Is(err, ErrCorrupt) {
			t.Errorf("%v; want ErrNewerFormat", err)
		}
	}
	if d := cmp.Diff(before, content(t, dir)); d != "" {
		t.Errorf("files changed:\n%s", d)
	}
}

// A database that was never flushed by its user has its format record in a table.
func TestNewerFormatOfANewDatabase(t *testing.T) {
	mem := newCrashFS()
	s := writeSome(t, "t", memOptions(mem))
	must(t, s.Sync())
	clone := mem.CrashClone(vfs.CrashCloneCfg{}) // with everything else in the log
	x := &TaskStore{dir: "t", o: memOptions(clone).withDefaults(), log: quiet(), resources: readingResources()}
	db, err := pebbledb.Open("t", pebbledb.Options{FS: clone, Resources: x.resources.r, Log: x.log, MemTableSize: readMemTableBytes, ReadOnly: true, NoLog: true,
		WrapFailure: x.failure, CloseTimeout: x.o.closeTimeout})
	must(t, err)
	record, ok, err := db.Get("test", keyFormat, nil)
	if err != nil || !ok {
		t.Errorf("format record: %x, %v, %v", record, ok, err)
	}
	if _, ok, err := db.Get("test", keyCommit, nil); err != nil || ok {
		t.Errorf("the log was read: %v, %v", ok, err)
	}
	must(t, db.Close())
	must(t, x.peekFormat())
	x.resources.r.Close()
}

// A directory that was just read is not looked at again before it is opened; that is forgotten with the open.
func TestFormatIsLookedAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	must(t, writeSome(t, dir, Options{Logger: quiet()}).Close())
	r, err := NewResources(ResourceOptions{})
	must(t, err)
	v, err := OpenReadOnly(dir, ReadOptions{Resources: r, Logger: quiet()})
	must(t, err)
	must(t, v.Close())
	if _, known := r.read.Load(dir); !known {
		t.Error("the look at the format is not remembered")
	}
	s, err := Open(dir, Options{Resources: r, Logger: quiet()})
	must(t, err)
	must(t, s.Close())
	if _, known := r.read.Load(dir); known {
		t.Error("it is remembered beyond the open")
	}
	must(t, r.Close())
}
