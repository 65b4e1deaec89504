package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

// clients are those that this build has.
var clients = []string{"franz"}

var guarantees = []string{"at-least-once", "exactly-once"}

// guaranteesOf are those of a test: with -short one, by turns.
func guaranteesOf(t *testing.T) []string {
	if testing.Short() {
		return guarantees[testbroker.Turn(t)%2:][:1]
	}
	return guarantees
}

// world is what the runs of one test have in common.
type world struct {
	t         *testing.T
	in        *input
	data      string
	brokers   []string // empty: embedded
	client    string
	guarantee string
	app       string
	repeat    int
	flags     []string // further ones
}

// newWorld makes a world on the embedded broker.
func newWorld(t *testing.T, in *input, guarantee string) *world {
	t.Helper()
	return &world{t: t, in: in, data: t.TempDir(), client: "franz", guarantee: guarantee, app: "wordcount", repeat: 1}
}

// onKafka moves the world to the real broker, where it has names of its own. Without one the
// test is skipped.
func (w *world) onKafka() {
	w.t.Helper()
	w.brokers = testbroker.Real(w.t).Addrs
	w.app = fmt.Sprintf("crash-%d-%s", os.Getpid(), strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, w.t.Name()))
	w.t.Cleanup(w.deleteTopics)
}

func (w *world) topic(name string) string {
	if w.app == "wordcount" {
		return name
	}
	return w.app + "." + name
}

func (w *world) stateDir() string { return filepath.Join(w.data, "state") }

// start starts a run; env is added to the program's environment.
func (w *world) start(env ...string) *process {
	w.t.Helper()
	args := []string{"--data", w.data, "--client", w.client, "--guarantee", w.guarantee, "--app", w.app, "--all", "--repeat", fmt.Sprint(w.repeat), "--progress", "20ms"}
	if len(w.brokers) > 0 {
		args = append(args, "--brokers", strings.Join(w.brokers, ","))
	}
	return start(w.t, env, slices.Concat(args, w.flags, w.in.files)...)
}

// finish runs the program to its end, and checks everything that is to be seen then.
func (w *world) finish() *process {
	w.t.Helper()
	p := w.start()
	if code := p.wait(); code != 0 {
		w.t.Fatalf("exit code %d:\n%s", code, p.text())
	}
	w.check(p)
	return p
}

// check compares what a finished run printed, what lies in the stores and what is in the
// output topic with the oracle.
func (w *world) check(p *process) {
	w.t.Helper()
	want := w.in.times(w.repeat)
	if got := p.stdout.String(); got != table(want) {
		w.t.Errorf("printed counts: %s\nstandard error:\n%s", difference(parseTable(got), want), p.text())
	}
	if got := w.readStores(); difference(got, want) != "" {
		w.t.Errorf("counts in the stores: %s", difference(got, want))
	}
	w.checkOutputs(want)
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// dieAt runs the program until it kills itself at a point, "name" or "name:n" for the n-th
// time that it comes there. A machine that is busy with other things makes fewer commits of the same
// input: a run that ends before it has come there has been right, and gets a larger input.
func (w *world) dieAt(point string) {
	w.t.Helper()
	for try := 0; ; try++ {
		p := w.start("TIDEMARK_FAILPOINT=" + point)
		if p.killed() {
			return
		}
		if p.err != nil || try == 3 {
			w.t.Fatalf("the run did not come to the point %s: %v\n%s", point, p.err, p.text())
		}
		w.check(p)
		w.t.Logf("the run ended before the point %s: again with a larger input", point)
		w.repeat += 10
	}
}

func parseTable(s string) map[string]int64 {
	m := map[string]int64{}
	for line := range strings.Lines(s) {
		count, word, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		m[word] = number(count)
	}
	return m
}

// difference says how counts differ from those wanted; empty: not at all.
func difference(got, want map[string]int64) string {
	var wrong int
	var first string
	var sumGot, sumWant int64
	look := func(w string) {
		if got[w] != want[w] {
			wrong++
			if first == "" || w < first {
				first = w
			}
		}
	}
	for w, n := range want {
		sumWant += n
		look(w)
	}
	for w, n := range got {
		sumGot += n
		if _, ok := want[w]; !ok {
			look(w)
		}
	}
	if wrong == 0 && len(got) == len(want) {
		return ""
	}
	return fmt.Sprintf("%d of %d words differ, first %q: %d, want %d; all together %d, want %d", wrong, len(want), first, got[first], want[first], sumGot, sumWant)
}
