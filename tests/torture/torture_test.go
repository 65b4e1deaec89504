package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

var roundsFlag = flag.Int("torture.rounds", 0, "rounds of each run; 0: a few")

func TestMain(m *testing.M) {
	embeddedbroker.Main()
	appMain()
	flag.Parse()
	// Most of the time these tests wait for a timeout of a broker.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))) // it is a number
	}
	os.Exit(m.Run())
}

// A few rounds for each guarantee and client. The program itself goes on for as long as one likes.
func TestTorture(t *testing.T) {
	t.Parallel()
	rounds := 3
	switch {
	case *roundsFlag > 0:
		rounds = *roundsFlag
	case testing.Short():
		rounds = 2
	case testbroker.Full():
		rounds = 6
	}
	for client := range clients {
		for _, guarantee := range []string{"at-least-once", "exactly-once"} {
			t.Run(client+"/"+guarantee, func(t *testing.T) {
				t.Parallel()
				o := options{guarantee: guarantee, client: client, rounds: rounds, rate: 500, seed: testseed.New(t).Uint64(), dir: t.TempDir()}
				var out bytes.Buffer
				if err := o.run(t.Context(), &out); err != nil {
					t.Fatalf("%v\n%s%s", err, out.String(), logs(o.dir))
				}
				t.Log(out.String()[strings.LastIndex(out.String(), "#"):])
			})
		}
	}
}

// logs gives the ends of the processes' logs, since the folder goes with the test.
func logs(dir string) string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(dir, "*.log")) // the pattern is good
	for _, f := range files {
		text, err := os.ReadFile(f)
		fmt.Fprintf(&b, "\n== %s (%v)\n%s", f, err, text[max(0, len(text)-8000):])
	}
	return b.String()
}

// A history depends on the seed alone, and what is printed of it is what is read.
func TestHistoryRepeats(t *testing.T) {
	seed := testseed.New(t).Uint64()
	write := func() (steps []step) {
		h := newWriter(seed, true, true, 2000)
		h.fenced, h.timeouts = true, true
		for range 50 {
			steps = append(steps, h.round()...)
		}
		return steps
	}
	one, two := write(), write()
	var text strings.Builder
	for _, s := range one {
		fmt.Fprintln(&text, s)
	}
	read, err := parseHistory(strings.NewReader("# a comment\n\n" + text.String()))
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b step) bool { return slices.Equal(a, b) }
	if !slices.EqualFunc(one, two, same) || !slices.EqualFunc(one, read, same) {
		t.Error("the history differs")
	}
	for _, bad := range []string{"jump p1", "start p1", "wait"} {
		if _, err := parseHistory(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was understood", bad)
		}
	}
}

// story is an input partition and outputs that are right for it.
func story() (*truth, []output) {
	var in []record
	for n := range int64(20) {
		in = append(in, record{offset: n, key: fmt.Sprint("k", n%3), value: fmt.Sprint(n), null: n%7 == 6, ms: n})
	}
	t := recompute(0, in)
	var got []output
	for _, offset := range t.order {
		key, rest, _ := strings.Cut(t.lines[offset], " ")
		got = append(got, output{at: offset, key: key, life: "1.1.5", begin: 5, source: offset, rest: rest})
	}
	return t, got
}

// What the oracle must find, and what it must let pass.
func TestJudge(t *testing.T) {
	// as if a life that began later had written o again
	again := func(o output) output {
		o.life, o.begin = "2.1.50", 50
		return o
	}
	for name, c := range map[string]struct {
		spoil        func(got []output) []output
		least, exact string // kinds of problems; empty: none
	}{
		"right":             {func(got []output) []output { return got }, "", ""},
		"missing":           {func(got []output) []output { return slices.Delete(got, 7, 8) }, "output missing", "output missing"},
		"last missing":      {func(got []output) []output { return got[:19] }, "output missing", "output missing"},
		"wrong count":       {func(got []output) []output { got[7].rest = "0 7 99 x 7"; return got }, "wrong output", "wrong output"},
		"wrong key":         {func(got []output) []output { got[7].key = "k9"; return got }, "wrong output", "wrong output"},
		"out of nothing":    {func(got []output) []output { got[19].source = 99; return got }, "wrong output", "wrong output"},
		"swapped":           {func(got []output) []output { got[7], got[8] = got[8], got[7]; return got }, "life out of order", "output out of order"},
		"twice in a life":   {func(got []output) []output { return append(got, got[19]) }, "life out of order", "output twice"},
		"repeated":          {func(got []output) []output { return append(got, again(got[18]), again(got[19])) }, "", "output twice"},
		"repeated too much": {func(got []output) []output { return append(got, again(got[10])) }, "repeated though committed", "output twice"},
	} {
		t.Run(name, func(t *testing.T) {
			for exactly, want := range map[bool]string{false: c.least, true: c.exact} {
				truth, got := story()
				var p problems
				// Offsets below 15 were committed at time 40.
				judge(&p, "x", exactly, truth.order, truth.lines, c.spoil(got), func(at int64) int64 {
					if at > 40 {
						return 15
					}
					return 0
				})
				if err := p.err(); want == "" && err != nil || want != "" && (err == nil || p.n[want] == 0) {
					t.Errorf("exactly-once %v: %v, want %q", exactly, err, want)
				}
			}
		})
	}
}

// Offsets that go back are found, and how much was committed before a time.
func TestWatch(t *testing.T) {
	w := &watch{last: map[kafkaPartition]committed{}, changed: make(chan struct{})}
	at := func(offset, number, when int64) {
		t.Helper()
		w.seen(offsets(t, offset, number), when)
	}
	at(10, 1, 100)
	at(20, 2, 200)
	if got := []int64{w.least(watched, 100), w.least(watched, 101), w.least(watched, 1000)}; !slices.Equal(got, []int64{0, 10, 20}) {
		t.Errorf("committed %v", got)
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
	at(20, 1, 300)
	if w.err == nil {
		t.Error("an older commit id was overlooked")
	}
	w.err = nil
	at(19, 3, 400)
	if w.err == nil {
		t.Error("an offset that went back was overlooked")
	}
}

// The proxy does what it is told to.
func TestProxy(t *testing.T) {
	p, err := newProxy()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}()
	b := newFakeBroker(t)
	p.forward(b.addr())
	endTxn := requestKeys["EndTxn"]

	if code, err := ask(t, p, time.Second); err != nil || code != 0 || b.seen() != 1 {
		t.Fatalf("code %d, %v, %d requests", code, err, b.seen())
	}
	p.add(fault{key: endTxn, code: 51, left: 1})
	if code, err := ask(t, p, time.Second); err != nil || code != 51 || b.seen() != 1 {
		t.Errorf("refused: code %d, %v, %d requests", code, err, b.seen())
	}
	p.loseAnswers()
	if _, err := ask(t, p, 50*time.Millisecond); err == nil || b.seen() != 2 {
		t.Errorf("lost: %v, %d requests", err, b.seen())
	}
	p.heal()
	p.add(fault{key: endTxn, late: 100 * time.Millisecond, left: 1})
	if _, err := ask(t, p, 10*time.Second); err == nil || b.seen() != 2 {
		t.Errorf("late: %v, %d requests", err, b.seen())
	}
	eventually(t, func() bool { return b.seen() == 3 })
	p.delayAnswers(100 * time.Millisecond)
	start := time.Now()
	if _, err := ask(t, p, 10*time.Second); err != nil || time.Since(start) < 100*time.Millisecond {
		t.Errorf("delayed: %v after %v", err, time.Since(start))
	}
}
