package statestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func init() {
	children["full"] = fullChild
}

// childTB is a testing.TB for the child process: what fails ends it.
type childTB struct {
	testing.TB
	cleanups []func()
}

func (t *childTB) Helper()                        {}
func (t *childTB) Context() context.Context       { return context.Background() }
func (t *childTB) Cleanup(f func())               { t.cleanups = append(t.cleanups, f) }
func (t *childTB) Fatal(a ...any)                 { fmt.Println(a...); os.Exit(1) }
func (t *childTB) Fatalf(format string, a ...any) { t.Fatal(fmt.Sprintf(format, a...)) }
func (t *childTB) Error(a ...any)                 { t.Fatal(a...) }
func (t *childTB) Errorf(format string, a ...any) { t.Fatal(fmt.Sprintf(format, a...)) }

func (t *childTB) cleanup() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

// fullDisk is something that is done while the disk becomes full.
type fullDisk struct {
	name string
	// run fills mem, calls full, and does what is to fail. It leaves nothing open.
	run func(t testing.TB, o Options, full func()) error
	// check looks at what is there when there is space again.
	check func(t testing.TB, o Options)
}

func fullDisks() (all []fullDisk) {
	for i, v := range verbs(nil) {
		all = append(all, fullDisk{v.name, func(t testing.TB, o Options, full func()) error {
			s, x := filled(t, o)
			full()
			for _, step := range verbs(x)[i].steps {
				if err := step(s); err != nil {
					return errors.Join(err, s.Close())
				}
			}
			return s.Close()
		}, func(t testing.TB, o Options) { checkSpecs(t, o, append([]Spec{countsSpec}, kindSpecs[:5]...)) }})
	}
	return append(all, fullDisk{"migration of values", func(t testing.TB, o Options, full func()) error {
		s := openStore(t, "t", o, schemaSpecs(1, false)...)
		for n := int64(1); n < 5; n++ {
			writeSchema(t, s, fmt.Sprint("key-", n), n)
		}
		must(t, s.Close())
		full()
		return openAndClose(o, schemaSpecs(2, true)...)
	}, func(t testing.TB, o Options) {
		checkSpecs(t, o, schemaSpecs(2, true))
		wantSchema(t, o.FS, 2, "v 1>2", 4)
	}}, fullDisk{"upgrade", func(t testing.TB, o Options, full func()) error {
		copyInto(t, o.FS, "testdata/format-1")
		full()
		return openAndClose(o, countsSpec, latestSpec)
	}, func(t testing.TB, o Options) {
		s := openStore(t, "t", o, countsSpec, latestSpec)
		wantUpgraded(t, s)
		must(t, s.Close())
	}}, fullDisk{"checkpoint of an own store", runCheckpoint, checkCheckpointed},
		fullDisk{"migration of an own store", func(t testing.TB, o Options, full func()) error {
			fillOwnSchema(t, o, 3)
			full()
			files, err := ownSchemaSpecsOn(o.FS, 2, true)
			if err != nil {
				return fmt.Errorf("%w; free some space there and restart", err) // the user's own error
			}
			return openAndClose(o, files...)
		}, func(t testing.TB, o Options) {
			files, err := ownSchemaSpecsOn(o.FS, 2, true)
			must(t, err)
			checkSpecs(t, o, files)
		}})
}

func openAndClose(o Options, specs ...Spec) error {
	s, err := Open("t", o)
	if err != nil {
		return err
	}
	return errors.Join(s.Register(specs...), s.Close())
}

// checkSpecs wants a task store that opens, and in which metadata and data agree.
func checkSpecs(t testing.TB, o Options, specs []Spec) {
	t.Helper()
	must(t, openAndClose(o, specs...))
	v, err := OpenReadOnly("t", ReadOptions{FS: o.FS, Logger: quiet()})
	must(t, err)
	found, err := v.Verify(t.Context())
	must(t, errors.Join(err, v.Close()))
	if len(found.Problems) > 0 {
		t.Fatalf("problems %q", found.Problems)
	}
}

// runCheckpoint commits to a store whose rows are on another disk: what is full is the task's directory.
func runCheckpoint(t testing.TB, o Options, full func()) error {
	spec := wrappedSpec
	f, err := openFileStore(vfs.NewMem(), "own/wrapped", false)
	must(t, err)
	spec.Store = f
	s := openStore(t, "t", o, spec)
	full()
	for n := int64(1); n < 5; n++ {
		if err := handle(t, s, spec.Name).Put([]byte("k"), fmt.Append(nil, n), 1); err != nil {
			return errors.Join(err, s.Close())
		}
		x, err := s.Seal(Progress{ID: CommitID{1, n}})
		if err == nil {
			err = s.Commit(x, map[string]Offset{spec.Name: At(n)})
		}
		if err != nil {
			return errors.Join(err, s.Close())
		}
		s.Release(x)
	}
	return s.Close()
}

// checkCheckpointed wants the store to be found where it was, or not at all.
func checkCheckpointed(t testing.TB, o Options) {
	spec := wrappedSpec
	f, err := openFileStore(vfs.NewMem(), "own/wrapped", false)
	must(t, err)
	spec.Store = f
	s := openStore(t, "t", o, spec)
	states, err := s.Stores()
	must(t, err)
	if next, ok := states[0].Offset.Next(); ok && (next < 1 || next > 4) {
		t.Fatalf("offset %d", next)
	}
	must(t, s.Close())
}

// TestFullDiskInEveryVerb makes every write of everything that writes fail in turn, and all that follow. It runs in a
// child process, because databases that Pebble cannot close are left behind.
func TestFullDiskInEveryVerb(t *testing.T) {
	t.Parallel()
	out, err := child(t, "full")
	if err != nil || !strings.Contains(out, "survived") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(out)
}

func fullChild() {
	for _, d := range fullDisks() {
		n := int64(1)
		for step := int64(1); ; n += step * every {
			if n > 8 { // the first ones all, of many some
				step = 1 + n/4
			}
			if !fillAt(d, n) {
				break
			}
		}
		fmt.Printf("%s survived a full disk at some of %d writes\n", d.name, n-1)
		if n < 3 {
			fmt.Println("it writes too little")
			os.Exit(1)
		}
	}
}

// fillAt lets the disk be full from write number at on; it tells whether it came so far.
func fillAt(d fullDisk, at int64) (reached bool) {
	mem := newCrashFS()
	var n atomic.Int64
	var counts, hit atomic.Bool
	o := memOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || !counts.Load() || op.Kind == errorfs.OpRemove || op.Kind == errorfs.OpRemoveAll || n.Add(1) < at {
			return nil
		}
		hit.Store(true)
		return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
	})))
	o.closeTimeout, o.migrateBatchBytes = 5*time.Millisecond, 40
	t := &childTB{}
	done := make(chan error, 1)
	go func() { done <- d.run(t, o, func() { counts.Store(true) }) }()
	select {
	case err := <-done:
		if (err != nil) != hit.Load() && err != nil {
			t.Fatalf("%s at write %d: %v, though nothing was injected", d.name, at, err)
		}
		if err != nil {
			for _, want := range []string{"no space left on device", "free some space there and restart"} {
				if !strings.Contains(err.Error(), want) {
					t.Fatalf("%s at write %d: %v; want %q", d.name, at, err, want)
				}
			}
		}
	case <-time.After(60 * time.Second):
		t.Fatalf("%s at write %d hangs", d.name, at)
	}
	clone := memOptions(mem.CrashClone(vfs.CrashCloneCfg{}))
	d.check(t, clone)
	t.cleanup()
	return hit.Load()
}
