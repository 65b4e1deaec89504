package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// row is one row of the crash matrix: the step at which the process dies, and what becomes of its disk
// before the next one starts.
type row struct{ point, disk string }

// The steps of a take-over, of a commit, and of a stop, in order.
var crashPoints = slices.Concat(
	[]string{"set-aside", "opened", "offsets-read", "restore-batch", "restored", "start-sent", "start-committed", "store-completed"},
	[]string{"processed", "sealed", "outputs-delivered", "transaction-begun", "held-sent", "changelog-sent", "offsets-sent", "transaction-committed", "task-applied", "applied", "synced"},
	[]string{"last-commit", "store-closed"})

var crashDisks = []string{"kept", "lose", "old"}

// steps are those of a row: some work, a death at the point, the disk, and a run that must get on. They
// begin and end with p1 at work.
func (r row) steps(w *writer) {
	w.add("kill p1")
	if r.disk == "old" {
		w.add("keep p1")
		w.add("start p1 10ms")
		w.add("wait 250ms")
		w.add("kill p1")
	}
	switch r.point {
	case "set-aside":
		w.add("damage p1")
		w.add("start p1 10ms set-aside")
	case "restore-batch":
		w.add("lose p1")
		w.add("start p1 10ms restore-batch:2")
	case "store-completed":
		w.add("lose p1")
		w.add("start p1 10ms store-completed")
	case "last-commit", "store-closed":
		w.add("start p1 10ms %s", r.point)
		w.add("progress")
		w.add("term p1")
	case "opened", "offsets-read", "restored", "start-sent", "start-committed", "synced":
		w.add("start p1 10ms %s", r.point)
	default:
		w.add("start p1 10ms %s:3", r.point)
	}
	w.add("death p1")
	if r.disk != "kept" {
		w.add("%s p1", r.disk)
	}
	w.add("start p1 20ms")
	w.add("progress")
}

// sees compares what the run behind a row's death found with the middle column of the table. A kill takes what the database had
// not given to its log yet, up to 32 KB of each task: the store of a task that has little may be gone altogether.
func (r row) sees(s sight) error {
	lost := r.disk == "lose" || r.disk == "kept" && r.point == "set-aside"
	restoring := r.point == "restore-batch" || r.point == "store-completed" // it began without a disk
	switch {
	case lost && (s.existing > 0 || s.restored == 0):
		return errors.New("want everything restored")
	case lost || s.whole < 10_000:
		return nil
	case r.point == "transaction-committed" && s.restored == 0:
		return errors.New("want the tail restored that was committed and not applied")
	case r.disk == "kept" && !restoring && s.restored > s.whole/2:
		return errors.New("want no more restored than the last commits")
	}
	return nil
}

// runRows goes through rows in one world, compares what each run found, and everything at the end.
func runRows(t *testing.T, o options, rows []row) {
	t.Helper()
	w := &writer{}
	w.add("start p1 20ms")
	w.add("wait 300ms")
	w.add("progress")          // there is something to restore
	behind := map[string]row{} // the run that goes on behind a row's death
	for _, r := range rows {
		r.steps(w)
		starts := 0
		for _, s := range w.steps {
			if s[0] == "start" {
				starts++
			}
		}
		behind[fmt.Sprint("p1-", starts)] = r
	}
	o.rate, o.seed, o.dir, o.steps = 500, testseed.New(t).Uint64(), t.TempDir(), w.steps
	var out bytes.Buffer
	world, err := newWorld(t.Context(), &o, &out)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(world.run(t.Context()), world.close())
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), logs(o.dir))
	}
	if len(world.missed) > 0 {
		t.Errorf("did not come to their points: %v", world.missed)
	}
	log, err := os.ReadFile(filepath.Join(o.dir, "p1.log"))
	if err != nil {
		t.Fatal(err)
	}
	saw, blind := sights(log), 0
	for run, r := range behind {
		s, ok := saw[run]
		if !ok {
			blind++ // it was killed before it was done with everything
		} else if err := r.sees(s); err != nil {
			t.Errorf("run %s, behind a death at %s with the disk %s, saw %v: %v", run, r.point, r.disk, s, err)
		}
	}
	if blind > len(rows)/2 {
		t.Errorf("%d of %d runs did not say what they saw", blind, len(rows))
	}
	t.Log(world.totals())
}

// The crash tables of docs/ARCHITECTURE.md, row by row, with one store and with five of different kinds, and with the
// disk kept, lost or of an older moment. TestStepsOnCombinations has all of these in fewer rows.
func TestEveryStepWithEveryDisk(t *testing.T) {
	if testing.Short() || testbroker.HasReal() && !testbroker.Full() { // without a real broker the other test lacks most of its rows
		t.Skip("four minutes: TIDEMARK_TEST_FULL is empty")
	}
	t.Parallel()
	var all []row
	for _, point := range crashPoints {
		for _, disk := range crashDisks {
			all = append(all, row{point, disk})
		}
	}
	for _, guarantee := range []string{"at-least-once", "exactly-once"} {
		for _, stores := range []string{"one store", "five stores"} {
			t.Run(guarantee+"/"+stores, func(t *testing.T) {
				t.Parallel()
				runRows(t, options{guarantee: guarantee, client: "franz", single: stores == "one store"}, all)
			})
		}
	}
}

// factors of the rows of TestStepsOnCombinations.
var factors = [][]string{
	crashPoints,
	crashDisks,
	{"kfake/franz", "kfake/confluent", "kafka/franz", "kafka/confluent"},
	{"at-least-once", "exactly-once"},
	{"one store", "five stores"},
}

// pair is a value of one factor together with a value of a later one.
type pair struct{ f, a, g, b int }

// pairs gives those of a row.
func pairs(row []int) (all []pair) {
	for f, a := range row {
		for g := f + 1; g < len(row); g++ {
			all = append(all, pair{f, a, g, row[g]})
		}
	}
	return all
}

// pairwise gives few rows in which any two values of different factors come together once at least. It
// takes one after the other the row that brings most pairs that were not there.
func pairwise(factors [][]string) (rows [][]int) {
	every := [][]int{nil}
	for _, values := range factors {
		var longer [][]int
		for _, row := range every {
			for v := range values {
				longer = append(longer, append(slices.Clone(row), v))
			}
		}
		every = longer
	}
	missing := map[pair]bool{}
	for _, row := range every {
		for _, p := range pairs(row) {
			missing[p] = true
		}
	}
	used := map[[2]int]int{} // factor, value
	for len(missing) > 0 {
		var best []int
		most, least := 0, 0
		for _, row := range every {
			n := 0
			for _, p := range pairs(row) {
				if missing[p] {
					n++
				}
			}
			dealt := 0 // of several that bring as much, the one whose values came least
			for f, v := range row {
				dealt += used[[2]int{f, v}] * len(factors[f])
			}
			if n > most || n == most && dealt < least {
				best, most, least = row, n, dealt
			}
		}
		for _, p := range pairs(best) {
			delete(missing, p)
		}
		for f, v := range best {
			used[[2]int{f, v}]++
		}
		rows = append(rows, best)
	}
	return rows
}

func TestPairwise(t *testing.T) {
	rows := pairwise(factors)
	there := map[pair]bool{}
	for _, row := range rows {
		for _, p := range pairs(row) {
			there[p] = true
		}
	}
	want := 0
	for f := range factors {
		for g := f + 1; g < len(factors); g++ {
			want += len(factors[f]) * len(factors[g])
		}
	}
	least := len(crashPoints) * len(factors[2]) // the two that have most values
	worlds := map[[3]int]int{}
	for _, row := range rows {
		worlds[[3]int(row[2:])]++
	}
	t.Log(len(rows), worlds)
	if len(there) != want || len(rows) < least || len(rows) > least+least/4 {
		t.Errorf("%d rows hold %d pairs, want %d in about %d rows", len(rows), len(there), want, least)
	}
}

// All combinations of broker and client, with rows in which any two of combination, guarantee, number of stores, disk and step
// come together.
func TestStepsOnCombinations(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	t.Parallel()
	worlds := map[string][]row{}
	for _, r := range pairwise(factors) {
		name := strings.Join([]string{factors[2][r[2]], factors[3][r[3]], factors[4][r[4]]}, "/")
		worlds[name] = append(worlds[name], row{crashPoints[r[0]], crashDisks[r[1]]})
	}
	for _, name := range slices.Sorted(maps.Keys(worlds)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := strings.Split(name, "/")
			o := options{client: f[1], guarantee: f[2], single: f[3] == "one store"}
			if clients[o.client] == nil {
				t.Skipf("this build does not have %s", o.client)
			}
			if f[0] == "kafka" {
				o.brokers = testbroker.Real(t).Addrs
			}
			runRows(t, o, worlds[name])
		})
	}
}
