package statestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-streams/tidemark/internal/testseed"
)

func restoreRuns(t *testing.T, s *TaskStore, name string, limit int) *RunRestore {
	t.Helper()
	x, err := s.RestoreRuns(name)
	must(t, err)
	x.limit = limit
	return x
}

// Whatever the records, their pieces and the size of the runs: a restore in runs ends as one in batches does, and
// a crash on the way leaves what batches would up to the offset that is recorded.
func TestRunsAreAsBatches(t *testing.T) {
	rng := testseed.New(t)
	for _, spec := range []Spec{countsSpec, latestSpec} {
		t.Run(spec.Name, func(t *testing.T) {
			fs := newCrashFS()
			runs := openStore(t, "runs", memOptions(fs), countsSpec, latestSpec)
			other := "latest"
			if spec.Name == other {
				other = "counts"
			}
			x := restoreRuns(t, runs, spec.Name, 2000)
			var all []RestoreRecord
			for len(all) < 2000 {
				piece := randomRecords(rng, 1+rng.IntN(60))
				all = append(all, piece...)
				must(t, x.Add(piece, int64(len(all))))
				if rng.IntN(8) == 0 { // another store of the task goes on in batches
					must(t, runs.Restore(other, piece, int64(len(all))))
				}
				if x.Written() > 0 && rng.IntN(10) == 0 {
					must(t, x.await())
					half := readOnly(t, "runs", ReadOptions{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
					at := stateOf(t, half, spec.Name).Offset
					next, _ := at.Next()
					if next != x.Written() {
						t.Fatalf("after a crash at %v; written is %d", at, x.Written())
					}
					sameRows(t, rows(t, half, spec.Name, nil, nil), batches(t, spec, all[:next]))
				}
			}
			must(t, x.Flush())
			x.Close()
			must(t, runs.Complete(Progress{ID: CommitID{1, 0}}, nil))
			v := readOnly(t, "runs", ReadOptions{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
			sameRows(t, rows(t, v, spec.Name, nil, nil), batches(t, spec, all))
			if m := stateOf(t, v, spec.Name); m.Offset != At(int64(len(all))) {
				t.Errorf("offset %v", m.Offset)
			}
		})
	}
}

func randomRecords(rng *rand.Rand, n int) (records []RestoreRecord) {
	for range n {
		r := RestoreRecord{Key: fmt.Appendf(nil, "key %d", rng.IntN(300)), Timestamp: rng.Int64N(1000)}
		if rng.IntN(3) > 0 {
			r.Value = fmt.Appendf(nil, "%0*d", rng.IntN(40), rng.IntN(1000))
		}
		records = append(records, r)
	}
	return records
}

// batches gives the rows that an ordinary restore leaves.
func batches(t *testing.T, spec Spec, records []RestoreRecord) []Row {
	t.Helper()
	fs := newCrashFS()
	s := openStore(t, "batches", memOptions(fs), countsSpec, latestSpec)
	must(t, s.Restore(spec.Name, records, int64(len(records))))
	must(t, s.Sync())
	return rows(t, readOnly(t, "batches", ReadOptions{FS: fs.CrashClone(vfs.CrashCloneCfg{})}), spec.Name, nil, nil)
}

func sameRows(t *testing.T, got, want []Row) {
	t.Helper()
	if a, b := fmt.Sprintf("%q", got), fmt.Sprintf("%q", want); a != b {
		t.Fatalf("%d rows, want %d:\n%.2000s\n%.2000s", len(got), len(want), a, b)
	}
}

func stateOf(t *testing.T, v *View, name string) StoreMetadata {
	t.Helper()
	for _, s := range v.Metadata().Stores {
		if s.Spec.Name == name {
			return s
		}
	}
	t.Fatalf("no store %s", name)
	return StoreMetadata{}
}

// What is deleted later than the run in which it was written is not there afterwards, in a run that holds nothing else.
func TestRunOfDeletions(t *testing.T) {
	fs := newCrashFS()
	s := openStore(t, "t", memOptions(fs), countsSpec)
	x := restoreRuns(t, s, "counts", 1)
	must(t, x.Add([]RestoreRecord{{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("b"), Value: []byte{}}}, 2))
	must(t, x.Add([]RestoreRecord{{Key: []byte("a")}}, 3))
	must(t, x.Add(nil, 9)) // markers
	must(t, x.Flush())
	x.Close()
	x.Close()
	kv, err := s.KeyValue("counts")
	must(t, err)
	if _, _, ok, err := kv.Get([]byte("a")); ok || err != nil {
		t.Errorf("a: %v, %v", ok, err)
	}
	if v, _, ok, err := kv.Get([]byte("b")); !ok || len(v) != 0 || err != nil {
		t.Errorf("b: %q, %v, %v", v, ok, err)
	}
	if o := s.CommittedOffsets()["counts"]; o != At(9) {
		t.Errorf("offset %v", o)
	}
}

// A restore that is at its end makes place for another while its last run is written; and what is asked for
// afterwards is what became of that run.
func TestRunsEnd(t *testing.T) {
	fs := newCrashFS()
	s := openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	s.write.Lock() // nothing is written
	var ending []*RunRestore
	var over []<-chan struct{}
	for i, name := range []string{"counts", "latest"} {
		x := restoreRuns(t, s, name, 1)
		must(t, x.Add([]RestoreRecord{{Key: []byte("a"), Value: []byte("1")}}, 2)) // a run, which is waited for
		must(t, x.Add(nil, int64(3+i)))
		done, err := x.End()
		must(t, err)
		ending, over = append(ending, x), append(over, done)
		if err := x.Add(nil, 9); err == nil {
			t.Error("records behind the last")
		}
		if _, err := x.End(); err == nil {
			t.Error("it ended twice")
		}
	}
	busy := restoreRuns(t, s, "counts", 1)
	restoreRuns(t, s, "latest", 1).Close()
	select {
	case <-over[0]:
		t.Error("it is over while nothing can be written")
	default:
	}
	s.write.Unlock()
	for i, x := range ending {
		<-over[i]
		must(t, x.Flush())
		if x.Written() != int64(3+i) {
			t.Errorf("written up to %d", x.Written())
		}
		x.Close()
	}
	if o := s.CommittedOffsets(); o["counts"] != At(3) || o["latest"] != At(4) {
		t.Errorf("offsets %v", o)
	}
	must(t, busy.Add(nil, 2)) // before the store's offset
	if done, err := busy.End(); err == nil {
		<-done
	}
	if err := busy.Flush(); err == nil {
		t.Error("a run before the store's offset")
	}
	busy.Close()
	if _, err := busy.End(); err == nil {
		t.Error("it ended after it was closed")
	}
	if r := &s.resources.runs; r.taken.Load() != 0 || r.ending.Load() != 0 {
		t.Errorf("%d and %d slots are held", r.taken.Load(), r.ending.Load())
	}
}

// Runs are for stores in the database that are plain maps; and for as many at a time as there is memory for.
func TestRunsAreRefused(t *testing.T) {
	windows := windowSpec(time.Hour)
	s := openStore(t, "t", memOptions(newCrashFS()), countsSpec, latestSpec, windows, memorySpec)
	for _, name := range []string{windows.Name, memorySpec.Name} {
		if _, err := s.RestoreRuns(name); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var open []*RunRestore
	for range defaultLargeRestores {
		open = append(open, restoreRuns(t, s, "counts", 1))
	}
	if _, err := s.RestoreRuns("latest"); !errors.Is(err, ErrRestoresBusy) {
		t.Errorf("%v", err)
	}
	open[0].Close()
	restoreRuns(t, s, "latest", 1).Close()
	must(t, s.Restore("counts", nil, 7))
	must(t, open[1].Add(nil, 6))
	if err := open[1].Flush(); err == nil {
		t.Error("a run before the store's offset")
	}
	if err := open[1].Add(nil, 9); err == nil {
		t.Error("went on behind a run that was not written")
	}
	open[1].Close()
	must(t, s.Close())
	if _, err := s.RestoreRuns("counts"); err == nil {
		t.Error("a closed store")
	}
}

// TestLargeRestoresOfASmallContainer: one at a time, in smaller runs.
func TestLargeRestoresOfASmallContainer(t *testing.T) {
	r, err := NewResources(SmallContainer())
	must(t, err)
	o := memOptions(vfs.NewMem())
	o.Resources = r
	s := openStore(t, "t", o, countsSpec, latestSpec)
	x, err := s.RestoreRuns("counts")
	must(t, err)
	if x.limit >= defaultRunBytes {
		t.Errorf("runs of %d bytes; want less than %d", x.limit, defaultRunBytes)
	}
	if _, err := s.RestoreRuns("latest"); !errors.Is(err, ErrRestoresBusy) {
		t.Errorf("a second restore: %v; want ErrRestoresBusy", err)
	}
	x.Close()
	must(t, s.Close())
	must(t, r.Close())
	if err := (ResourceOptions{LargeRestores: -1}).Validate(); err == nil {
		t.Error("a negative number of restores is taken")
	}
}
