package statestore

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// The metamorphic test does the same to a task store and to a model of it (simState), and
// compares what both show: stores of all kinds, wherever their rows lie; every verb; restarts,
// power losses at any write, failing disks, a task that moves between two directories, and a program
// that comes back with another retention or schema version.
// What the stores lose, a changelog gives back, as it does for a task.
//
// A history is a list of operations, each with a seed of its own: leaving some out leaves
// the others as they are. So one that fails is made smaller, and shown with what it did.

var metamorphicTime = flag.Duration("metamorphic", 0, "how long each metamorphic test runs; 0: 15 s, or 2 s with -short")

// simOp is one operation; all that is random in it comes from its seed.
type simOp struct {
	name string
	seed uint64
}

// simConfig is what a history runs on.
type simConfig struct {
	seed    uint64
	faults  bool
	without map[string]bool // stores left out
}

// simVerbs are the operations with how often each comes.
var simVerbs = []struct {
	name   string
	weight int
	do     func(*sim)
}{
	{"write", 60, (*sim).write}, {"read", 40, (*sim).read}, {"scan", 8, (*sim).scanWriting}, {"delete range", 3, (*sim).deleteRange},
	{"prefetch", 3, (*sim).prefetch}, {"warm", 4, (*sim).warm}, {"budget", 2, (*sim).budget}, {"compare", 3, (*sim).compareNow},
	{"seal", 8, (*sim).seal}, {"commit", 8, (*sim).commit}, {"release", 3, (*sim).release}, {"drop", 2, (*sim).drop}, {"sync", 3, (*sim).sync},
	{"lost commit", 1, (*sim).lostCommit}, {"clear", 1, (*sim).clear}, {"rebuild", 1, (*sim).rebuild}, {"load", 1, (*sim).load},
	{"adopt", 1, (*sim).adopt}, {"stamp", 1, (*sim).stamp}, {"snapshot", 1, (*sim).snapshot}, {"reopen", 2, (*sim).reopen}, {"move", 1, (*sim).move}, {"change", 2, (*sim).change},
	{"crash", 1, (*sim).powerLoss}, {"crash later", 2, (*sim).powerLossLater}, {"disk fails later", 1, (*sim).failLater},
}

// simHistory draws a history. In some there is one crash after another, with little written in between: what one
// has left unfinished, the next must not lose.
func simHistory(rng *rand.Rand) []simOp {
	total, crashing := 0, rng.IntN(4) == 0
	weight := func(name string, weight int) int {
		if crashing && (name == "crash" || name == "crash later" || name == "adopt") {
			return 40
		}
		return weight
	}
	for _, v := range simVerbs {
		total += weight(v.name, v.weight)
	}
	ops := make([]simOp, 20+rng.IntN(180))
	for i := range ops {
		n := rng.IntN(total)
		for _, v := range simVerbs {
			if n -= weight(v.name, v.weight); n < 0 {
				ops[i] = simOp{v.name, rng.Uint64()}
				break
			}
		}
	}
	return ops
}

// simCounts tells whether the histories of the process do what they are for.
var simCounts struct{ crashes, behind int }

// simFailure is the panic that ends a history; simCrash the one that ends an operation.
type simFailure string

type simCrash struct{}

// playHistory gives what was done, and what went wrong.
func playHistory(c simConfig, ops []simOp) (trace []string, operations int, err error) {
	h := newSim(c)
	defer func() {
		trace, operations = h.trace, h.operations
		if p := recover(); p != nil {
			if f, ok := p.(simFailure); ok {
				err = fmt.Errorf("%s", string(f))
			} else {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}
		h.end()
	}()
	h.guard(h.open)
	for _, op := range ops {
		h.play(op)
	}
	h.guard(h.compareNow)
	return
}

// simTries is how often a smaller history is tried: what goes on in the background, or while
// something is committed, is not the same each time.
const simTries = 3

// shrink leaves out operations and stores for as long as the history still fails, and gives
// what the smallest one did.
func (c simConfig) shrink(ops []simOp, until time.Time) (few []simOp, trace []string, err error) {
	fails := func(c simConfig, ops []simOp) bool {
		for try := 0; try < simTries && time.Now().Before(until); try++ {
			if t, _, e := playHistory(c, ops); e != nil {
				trace, err = t, e
				return true
			}
		}
		return false
	}
	for _, p := range simSpecs {
		fewer := c
		fewer.without = map[string]bool{p.Name: true}
		maps.Copy(fewer.without, c.without)
		if fails(fewer, ops) {
			c = fewer
		}
	}
	for n := (len(ops) + 1) / 2; n > 0; n /= 2 {
		for at := 0; at+n <= len(ops); {
			if fewer := slices.Delete(slices.Clone(ops), at, at+n); fails(c, fewer) {
				ops = fewer
			} else {
				at += n
			}
		}
	}
	return ops, trace, err
}

// runMetamorphic plays histories for some time, and gives the first that fails as text.
func runMetamorphic(rng *rand.Rand, faults bool, d time.Duration) (report, failed string) {
	histories, operations := 0, 0
	for end := time.Now().Add(d); histories == 0 || time.Now().Before(end); {
		c := simConfig{seed: rng.Uint64(), faults: faults}
		ops := simHistory(rng)
		trace, n, err := playHistory(c, ops)
		histories++
		operations += n
		if err != nil {
			few, smaller, again := c.shrink(ops, time.Now().Add(20*time.Second))
			if again != nil {
				trace = smaller
			}
			return "", fmt.Sprintf("history %d, of %d operations, made to %d:\n%s\n%v\nat first: %v", histories, len(ops), len(few), strings.Join(trace, "\n"), again, err)
		}
	}
	return fmt.Sprintf("%d histories, %d operations, %d crashes, %d of them behind the last batch", histories, operations, simCounts.crashes, simCounts.behind), ""
}

func metamorphicFor() time.Duration {
	switch {
	case *metamorphicTime > 0:
		return *metamorphicTime
	case testing.Short():
		return 2 * time.Second
	}
	return 15 * time.Second
}

func TestMetamorphic(t *testing.T) {
	t.Parallel()
	report, failed := runMetamorphic(testseed.New(t), false, metamorphicFor())
	if failed != "" {
		t.Fatal(failed)
	}
	t.Log(report)
}

// TestMetamorphicWithFaults runs in processes of its own, because databases that cannot be
// closed any more are left behind.
func TestMetamorphicWithFaults(t *testing.T) {
	t.Parallel()
	rng := testseed.New(t)
	const each = 15 * time.Second
	for left := metamorphicFor(); left > 0; left -= each {
		out, err := child(t, "metamorphic", fmt.Sprintf("TIDEMARK_METAMORPHIC=%d %d", rng.Uint64(), min(left, each)))
		if err != nil || !strings.Contains(out, "histories") {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Log(strings.TrimSpace(out))
	}
}

func init() {
	children["metamorphic"] = func() {
		var seed uint64
		var d time.Duration
		if _, err := fmt.Sscan(os.Getenv("TIDEMARK_METAMORPHIC"), &seed, (*int64)(&d)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		report, failed := runMetamorphic(rand.New(rand.NewPCG(seed, 0)), true, d)
		if failed != "" {
			fmt.Println(failed)
			os.Exit(1)
		}
		fmt.Printf("%s; %d databases left behind, %d goroutines\n", report, Abandoned(), runtime.NumGoroutine())
	}
}

// simSpecs are all stores that a history may have.
var simSpecs = func() []Spec {
	var all []Spec
	add := func(where string, change func(*Spec)) {
		for _, p := range []Spec{
			{Name: "plain", Kind: KindKeyValue}, {Name: "stamped", Kind: KindTimestampedKeyValue},
			{Name: "windows", Kind: KindWindow, Retention: 100 * time.Second, WindowSize: time.Second},
			{Name: "stamped-windows", Kind: KindTimestampedWindow, Retention: 200 * time.Second},
			{Name: "duplicates", Kind: KindWindow, Retention: 100 * time.Second, RetainDuplicates: true},
			{Name: "sessions", Kind: KindSession, Retention: 100 * time.Second},
			{Name: "versions", Kind: KindVersioned, Retention: 5 * time.Second},
		} {
			p.Name += where
			p.Changelog = "app-" + p.Name + "-changelog"
			change(&p)
			all = append(all, p)
		}
	}
	add("", func(*Spec) {})
	add("-unlogged", func(p *Spec) { p.Changelog = "" })
	add("-memory", func(p *Spec) { p.InMemory = true })
	add("-own", func(*Spec) {})
	add("-wrapped", func(*Spec) {})
	return all
}()

// simPlace is a directory of the task.
type simPlace struct {
	fs        *crashFS
	committed *simState
	// since are the states that a crash may leave, from the one that is on the disk for certain
	// to the one of the last batch that was begun.
	since []*simState
}
