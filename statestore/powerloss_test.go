package statestore

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// verb is something that is done to a filled task store, in steps of one batch at most: so a power
// loss leaves what was there before a step or after it, byte by byte, and nothing else. When the
// last step returns, what it made is on the disk.
type verb struct {
	name  string
	steps []func(*TaskStore) error
}

func verbs(x *Sealed) []verb {
	commit := func(s *TaskStore) error {
		offsets := map[string]Offset{"counts": At(7)}
		for _, p := range kindSpecs[:5] {
			offsets[p.Name] = At(9)
		}
		return s.Commit(x, offsets)
	}
	sync := func(s *TaskStore) error { return s.Sync() }
	forget := func(s *TaskStore) error { s.Drop(); return nil }
	each := func(do func(*TaskStore, string) error) (steps []func(*TaskStore) error) {
		for _, p := range append([]Spec{countsSpec}, kindSpecs[:5]...) {
			steps = append(steps, func(s *TaskStore) error { return do(s, p.Name) })
		}
		return steps
	}
	run := func(records []RestoreRecord, next int64) func(*TaskStore) error {
		return func(s *TaskStore) error {
			r, err := s.RestoreRuns("counts")
			if err != nil {
				return err
			}
			defer r.Close()
			return errors.Join(r.Add(records, next), r.Flush())
		}
	}
	records := []RestoreRecord{{Key: []byte("a"), Value: []byte("1"), Timestamp: 5}, {Key: []byte("b"), Value: []byte("2"), Timestamp: 6}}
	return []verb{
		{"commit and sync", []func(*TaskStore) error{commit, sync}},
		{"clear and sync", append(append([]func(*TaskStore) error{forget}, each((*TaskStore).Clear)...), sync)},
		{"adopt and sync", append(each((*TaskStore).Adopt), sync)},
		{"owner and sync", []func(*TaskStore) error{func(s *TaskStore) error { return s.StampOwner(Owner{"p", time.UnixMilli(5)}) }, sync}},
		{"restore", []func(*TaskStore) error{forget, func(s *TaskStore) error { return s.Clear("counts") },
			func(s *TaskStore) error { return s.Restore("counts", records[:1], 1) },
			func(s *TaskStore) error { return s.Restore("counts", records[1:], 2) },
			func(s *TaskStore) error { return s.Complete(Progress{ID: CommitID{1, 3}, StreamTime: 9}, nil) }, sync}},
		{"restore in runs", []func(*TaskStore) error{forget, func(s *TaskStore) error { return s.Clear("counts") },
			run(records[:1], 1), run(append(records, RestoreRecord{Key: []byte("a")}), 4),
			func(s *TaskStore) error { return s.Complete(Progress{ID: CommitID{1, 3}, StreamTime: 9}, nil) }, sync}},
		{"import", []func(*TaskStore) error{forget, func(s *TaskStore) error { return s.Clear("counts") },
			func(s *TaskStore) error { return s.Load("counts", records) },
			func(s *TaskStore) error {
				return s.RecordImport(Import{Store: "counts", Source: "elsewhere", Time: time.UnixMilli(1)}, At(2), []Position{{"in", 0, 5}})
			}}},
		{"load tables", []func(*TaskStore) error{forget, func(s *TaskStore) error { return s.Clear("counts") },
			func(s *TaskStore) error { return s.Load("counts", nil) },
			func(s *TaskStore) error {
				return s.LoadSorted("counts", func(yield func(Row, error) bool) {
					for _, r := range records {
						if !yield(Row{r.Key, r.Value}, nil) {
							return
						}
					}
				})
			}}},
		{"snapshot", []func(*TaskStore) error{forget, func(s *TaskStore) error { return s.Snapshot("copy") }}},
		{"close", []func(*TaskStore) error{func(s *TaskStore) error { return s.Close() }}},
	}
}

// allBytes is everything that the database holds.
func allBytes(s *TaskStore) (string, error) {
	it, err := s.db.NewIter("test", nil, nil)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		fmt.Fprintf(&b, "%x=%x\n", it.Key(), it.Value())
	}
	return b.String(), it.Close()
}

// powerLoss collects what power losses leave during a step, and compares it when it is known what
// the step makes.
type powerLoss struct {
	t       *testing.T
	fs      *crashFS
	rng     *rand.Rand
	allowed []string // states, from the last that is on the disk for certain

	mu      sync.Mutex
	on      bool
	left    []*crashFS
	crashes int
}

// lose lets the power fail now, with none and with some of the unsynced data left.
func (l *powerLoss) lose() {
	for _, percent := range []int{0, 1 + l.rng.IntN(100)} {
		l.left = append(l.left, l.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: l.rng}))
		l.crashes++
	}
}

// compare opens what was left in a step.
func (l *powerLoss) compare(step string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, clone := range l.left {
		state, err := readAllBytes(clone, "t")
		if err != nil || !slices.Contains(l.allowed, state) {
			l.t.Errorf("%s, crash %d: %v, or none of the %d states that there were:\n%.3000s", step, i, err, len(l.allowed), state)
		}
		if _, err := clone.Stat("copy"); !errors.Is(err, fs.ErrNotExist) { // it is whole, or it is not there
			if state, err = readAllBytes(clone, "copy"); err != nil || state != l.allowed[len(l.allowed)-1] {
				l.t.Errorf("%s, crash %d: a snapshot that is not whole: %v", step, i, err)
			}
		}
	}
	l.left = nil
}

func (l *powerLoss) losing(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = on
}

// run does the steps of a verb.
func (l *powerLoss) run(s *TaskStore, v verb) {
	l.t.Helper()
	last, err := allBytes(s)
	must(l.t, err)
	l.allowed = []string{last}
	for n, step := range v.steps {
		l.losing(true)
		err := step(s)
		l.losing(false)
		must(l.t, err)
		if !s.closed.Load() {
			last, err = allBytes(s)
			must(l.t, err)
		}
		l.allowed = append(l.allowed, last)
		l.compare(fmt.Sprint("step ", n))
	}
	l.allowed = []string{last}
	l.lose()
	l.compare("when it is done")
}

func readAllBytes(fs vfs.FS, dir string) (string, error) {
	s, err := Open(dir, memOptions(fs))
	if err != nil {
		return "", err
	}
	state, err := allBytes(s)
	return state, errors.Join(err, s.Close())
}

// TestPowerLossInEveryVerb lets the power fail before every write of each verb.
func TestPowerLossInEveryVerb(t *testing.T) {
	rng := testseed.New(t)
	for i := range verbs(nil) {
		t.Run(verbs(nil)[i].name, func(t *testing.T) {
			l := &powerLoss{t: t, fs: newCrashFS(), rng: rng}
			o := memOptions(errorfs.Wrap(l.fs, onWrite(func(int64) error {
				l.mu.Lock()
				defer l.mu.Unlock()
				if l.on {
					l.lose()
				}
				return nil
			})))
			s, x := filled(t, o)
			l.run(s, verbs(x)[i])
			if l.crashes == 0 {
				t.Error("no crash")
			}
		})
	}
}

// filled has all kinds in tables and in the log, all of it on the disk, and a sealed interval.
func filled(t testing.TB, o Options) (*TaskStore, *Sealed) {
	t.Helper()
	c := &kindsScript{}
	specs := append([]Spec{countsSpec}, kindSpecs[:5]...)
	var s *TaskStore
	for n := int64(1); n <= 3; n++ {
		if n < 3 {
			s = openStore(t, "t", o, specs...)
		}
		must(t, handle(t, s, "counts").Put(fmt.Append(nil, n), []byte("v"), n))
		c.write(t, s, n)
		if n == 3 {
			break
		}
		commit(t, s, Progress{ID: CommitID{1, n}, StreamTime: n, Positions: []Position{{"in", 0, n}}}, map[string]Offset{"counts": At(n)})
		if n == 1 {
			must(t, s.Close())
		}
	}
	must(t, s.Sync())
	x, err := s.Seal(Progress{ID: CommitID{1, 3}, StreamTime: 3})
	must(t, err)
	return s, x
}

// TestPowerLossDuringDamageMark: the mark is there or not, with the reason or without it, and the
// database stays what it was.
func TestPowerLossDuringDamageMark(t *testing.T) {
	mem := newCrashFS()
	rng := testseed.New(t)
	s, _ := filled(t, memOptions(mem))
	s.Drop()
	want, err := allBytes(s)
	must(t, err)
	must(t, s.Close())
	var left []*crashFS
	marked := errorfs.Wrap(mem, onWrite(func(int64) error {
		left = append(left, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng}))
		return nil
	}))
	must(t, writeDamaged(marked, "t", "a block is damaged"))
	for i, clone := range left {
		state, err := readAllBytes(clone, "t")
		if !errors.Is(err, ErrCorrupt) && (err != nil || state != want) {
			t.Errorf("crash %d: %v, or another state", i, err)
		}
	}
	if len(left) < 3 {
		t.Errorf("%d crashes", len(left))
	}
	clone := mem.CrashClone(vfs.CrashCloneCfg{})
	if _, err := readAllBytes(clone, "t"); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "a block is damaged") {
		t.Errorf("when it is done: %v", err)
	}
}
