package statestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// sim plays one history.
type sim struct {
	c          simConfig
	o          Options
	specs      []Spec
	rng        *rand.Rand // of the operation
	trace      []string
	operations int

	places [2]*simPlace
	p      *simPlace // where the task is
	s      *TaskStore
	faults simFaults

	now, sealed *simState
	x           *Sealed
	committed   bool // x is, and waits for its release
	lenient     bool // errors of a failing disk may be others than that of a failed task store
	settling    bool // nothing is written while something is committed
	clean       bool // the directory to be opened was closed

	log    map[string][]RestoreRecord
	logged map[string]*simStore // what the changelogs give
	// declared are the stores as the directory to be opened has recorded them.
	declared map[string]Spec
	// shortest is the shortest retention of each store whose retention has changed since its changelog begins.
	shortest map[string]int64
	last     *simState // the progress of the last commit in the changelogs
	number   int64
	topics   int
	drift    int64 // record times grow
}

func newSim(c simConfig) *sim {
	rng := rand.New(rand.NewPCG(c.seed, 1))
	h := &sim{c: c, rng: rng, log: map[string][]RestoreRecord{}, logged: map[string]*simStore{}, shortest: map[string]int64{}}
	h.o = memOptions(nil)
	h.o.Engine = []Engine{Pebble, Pebble, Memory}[rng.IntN(3)]
	h.o.CacheBytes = []int{-1, 16 << 10, 0}[rng.IntN(3)]
	h.o.SyncEveryCommit = rng.IntN(5) == 0
	if rng.IntN(3) == 0 {
		h.o.SyncInterval = time.Millisecond
	}
	h.o.closeTimeout = 20 * time.Millisecond
	h.o.migrateBatchBytes = []int{0, 100, 1000}[rng.IntN(3)]
	if rng.IntN(2) == 0 {
		r, err := NewResources(ResourceOptions{CacheBytes: 64 << 10, BlockCacheBytes: 1 << 20, OpenFiles: 50, MemTableBytes: 1 << 20})
		h.must(err)
		h.o.Resources = r
	}
	for _, i := range rng.Perm(len(simSpecs))[:3+rng.IntN(4)] {
		if p := simSpecs[i]; !c.without[p.Name] {
			h.specs = append(h.specs, p)
			h.logged[p.Name] = newSimStore(p)
		}
	}
	h.last = newSimState(nil)
	for i := range h.places {
		empty := newSimState(h.specs)
		h.places[i] = &simPlace{fs: newCrashFS(), committed: empty, since: []*simState{empty}}
	}
	h.p = h.places[0]
	h.tell("seed %d, engine %d, cache %d, sync every commit %t, stores %s", c.seed, h.o.Engine, h.o.CacheBytes, h.o.SyncEveryCommit, h.names())
	return h
}

func (h *sim) names() string {
	var b strings.Builder
	for _, p := range h.specs {
		b.WriteString(p.Name + " ")
	}
	return b.String()
}

func (h *sim) tell(format string, args ...any) {
	h.trace = append(h.trace, fmt.Sprintf(format, args...))
}

func (h *sim) fail(format string, args ...any) { panic(simFailure(fmt.Sprintf(format, args...))) }

func (h *sim) must(err error) {
	if err != nil {
		h.fail("%v", err)
	}
}

// ok is must for calls that a fault may hit. A failing disk ends the task store with an error that
// is latched; a call that does not need it yet fails by itself (lenient).
func (h *sim) ok(err error) {
	if !h.faults.struck() {
		h.must(err)
		return
	}
	if h.faults.kind == simPower {
		h.must(err) // which is to come
	}
	if err != nil && !h.lenient && (!errors.Is(err, ErrFailed) || !errors.Is(h.s.Err(), ErrFailed)) {
		h.fail("a failing disk gave %v, and then %v; want ErrFailed", err, h.s.Err())
	}
	panic(simCrash{})
}

func (h *sim) play(op simOp) {
	h.rng = rand.New(rand.NewPCG(op.seed, 2))
	h.tell("%s", op.name)
	h.operations++
	i := slices.IndexFunc(simVerbs, func(v struct {
		name   string
		weight int
		do     func(*sim)
	}) bool {
		return v.name == op.name
	})
	h.guard(func() { simVerbs[i].do(h) })
	h.guard(func() { h.ok(nil) }) // a power loss that no call noticed
}

// guard does something that a crash may interrupt, and lets the task come up again after it.
func (h *sim) guard(do func()) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(simCrash); !ok {
				panic(p)
			}
			h.crash()
		}
	}()
	do()
}

// end closes everything.
func (h *sim) end() {
	if h.s != nil {
		_ = h.s.Close()
	}
	if h.o.Resources != nil {
		_ = h.o.Resources.Close()
	}
}

// draw gives one of the history's stores; shrinking may have left none.
func (h *sim) draw() (p Spec, ok bool) {
	if len(h.specs) == 0 {
		return p, false
	}
	return h.specs[h.rng.IntN(len(h.specs))], true
}

// begin and done stand around each batch: a crash in between leaves the one or the other.
func (h *sim) begin(next *simState) {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	for _, st := range next.stores {
		st.recorded = st.offset
	}
	h.p.since = append(h.p.since, next)
}

func (h *sim) done(err error) {
	h.ok(err)
	h.p.committed = h.p.since[len(h.p.since)-1]
	if h.o.SyncEveryCommit || h.o.Engine == Memory {
		h.durable()
	}
}

// durable says that the last state is on the disk.
func (h *sim) durable() {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	h.p.since = []*simState{h.p.committed}
}

// simFaults is what is to happen to the file system.
type simFaults struct {
	mu    sync.Mutex
	kind  int
	after int // operations; 0 = nothing is to happen
	hit   bool
	clone *crashFS // what the power loss left, and
	left  []*simState
	rng   *rand.Rand
}

const (
	simPower = iota
	simOneError
	simAllErrors
	simReadError
)

func (f *simFaults) struck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}

// arm lets something happen after some operations. With 0 nothing does, and nothing has.
func (f *simFaults) arm(kind, after int, seed uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kind, f.after, f.hit, f.clone, f.left, f.rng = kind, after, false, nil, nil, rand.New(rand.NewPCG(seed, 3))
}

// files is the place's file system with the faults.
func (h *sim) files(p *simPlace) vfs.FS {
	f, fs := &h.faults, p.fs
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		write := op.Kind.ReadOrWrite() == errorfs.OpIsWrite
		if f.after == 0 || h.p != p || p.fs != fs || write == (f.kind == simReadError) {
			return nil
		}
		if f.after > 1 {
			f.after--
			return nil
		}
		if f.hit && f.kind != simAllErrors {
			return nil
		}
		f.hit = true
		if f.kind == simPower {
			f.clone = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: f.rng.IntN(101), RNG: f.rng})
			f.left = slices.Clone(p.since)
			return nil
		}
		return errInjected
	}))
}

var errInjected = errors.New("injected")
