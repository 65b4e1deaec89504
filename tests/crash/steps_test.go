package crash

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

// The steps of a commit, in order, at which the program kills itself, and what the next run
// finds (the first of task's tables says why each is right).
var commitSteps = []string{"sealed", "outputs-delivered", "transaction-begun", "held-sent", "changelog-sent", "offsets-sent", "transaction-committed", "task-applied", "applied"}

// Of a take-over: the first start commits its positions, a later one restores.
var startSteps = []string{"restored", "start-committed"}

func TestKillAtEveryStepOfACommit(t *testing.T) {
	for i, guarantee := range guarantees {
		for j, step := range commitSteps {
			if testing.Short() && (i+j)%2 == 1 {
				continue
			}
			t.Run(step+"/"+guarantee, func(t *testing.T) {
				t.Parallel()
				turns := []int{1, 3} // a step comes for the first time, and later
				switch {
				case testing.Short():
					turns = turns[1:]
				case !testbroker.Full():
					turns = turns[(i+j)%2:][:1]
				}
				killAtStep(newWorld(t, newInput(t, random(t), 1000), guarantee), step, turns)
			})
		}
	}
}

// On the real broker the steps between the first record of a transaction and its end: what is
// left open there is the broker's to end.
func TestKillInsideATransactionOnKafka(t *testing.T) {
	for i, client := range clients {
		for j, guarantee := range guarantees {
			for k, step := range []string{"changelog-sent", "offsets-sent", "transaction-committed"} {
				if !testbroker.Half(i+j+k) || testing.Short() && j == 0 {
					continue // any two of client, guarantee and step come together
				}
				t.Run(step+"/"+client+"/"+guarantee, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, newInput(t, random(t), 1000), guarantee)
					w.client = client
					w.onKafka()
					killAtStep(w, step, []int{2})
				})
			}
		}
	}
}

// killAtStep kills a run each at the n-th time that it comes to a step, and finishes.
func killAtStep(w *world, step string, turns []int) {
	w.t.Helper()
	w.flags = []string{"--commit-interval", "10ms"}
	w.repeat = 3
	for _, n := range turns {
		w.dieAt(fmt.Sprintf("%s:%d", step, n))
		w.repeat += 3 // so that there is something left to commit
	}
	w.finish()
}

func TestKillAtEveryStepOfTheFirstStart(t *testing.T) {
	for _, guarantee := range guaranteesOf(t) {
		for _, step := range startSteps {
			t.Run(step+"/"+guarantee, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, newInput(t, random(t), 300), guarantee)
				w.dieAt(step)
				w.finish()
			})
		}
	}
}

// The first start is killed as soon as it has said each of its lines, from the first one on.
func TestKillTheFirstStartAtEveryPhase(t *testing.T) {
	phases := []string{"wordcount: pid", "data:", "broker:", "to=starting", "input:", "to=restoring", "to=running", "found:"}
	if testing.Short() {
		phases = phases[3:6]
	}
	for _, guarantee := range guaranteesOf(t) {
		t.Run(guarantee, func(t *testing.T) {
			t.Parallel()
			r := random(t)
			in := newInput(t, r, 300)
			for _, phase := range phases {
				w := newWorld(t, in, guarantee)
				w.flags = []string{"--verbose"} // the log says which state it comes to
				p := w.start()
				if !p.await(func(line string) bool { return strings.Contains(line, phase) }) {
					t.Fatalf("the run did not say %q:\n%s", phase, p.text())
				}
				if !p.kill() {
					t.Fatalf("the run ended before it was killed at %q:\n%s", phase, p.text())
				}
				w.finish()
			}
		})
	}
}
