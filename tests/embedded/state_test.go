package embedded

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/embedded"
)

// State and position go on together after a clean end, and after a lost disk.
func TestRestart(t *testing.T) {
	for _, g := range guarantees {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(w *world) { w.restarts(g) })
		})
	}
}

func (w *world) restarts(g embedded.Guarantee) {
	x, dir := w.watch(), w.t.TempDir()
	f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
	for round, lose := range []bool{false, false, true} {
		if lose {
			if err := os.RemoveAll(dir); err != nil {
				w.t.Fatal(err)
			}
		}
		w.produce(100)
		l := w.start(w.config(dir, g))
		w.until(l, f, "all records are counted", func() bool { return x.reached(w.seq) })
		w.close(l)
		if w.t.Failed() {
			w.t.Fatalf("in round %d", round)
		}
	}
	x.check(w.t, w.seq, g)
}

var errOnce = errors.New("once")

// An error or a panic of the function drops what it wrote, and what came before it since the last commit.
// The loop goes on with what it has in hand; the record comes again, and the others too.
func TestFunctionFails(t *testing.T) {
	for _, g := range guarantees {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				x := w.watch()
				w.produce(200)
				cfg := w.config(w.t.TempDir(), g)
				l := w.start(cfg)
				failed := map[string]bool{}
				f := func(t *embedded.Task, r record) error {
					if err := count(t, r.key, w.out); err != nil {
						return err
					}
					switch {
					case (r.value == "57" || r.value == "131") && !failed[r.value]:
						failed[r.value] = true
						return errOnce
					case r.value == "133" && !failed[r.value]:
						failed[r.value] = true
						panic("once")
					}
					return nil
				}
				w.until(l, f, "all records are counted", func() bool { return x.reached(w.seq) })
				w.close(l)
				if len(failed) != 3 || len(w.told) == 0 {
					w.t.Errorf("%d failures, told: %v", len(failed), w.told)
				}
				for _, err := range w.told {
					if text := err.Error(); !strings.Contains(text, "task 0_") || !strings.Contains(text, w.in) || !strings.Contains(text, "once") {
						w.t.Errorf("%q does not name task, topic and cause", text)
					}
				}
				x.check(w.t, w.seq, g)
			})
		})
	}
}
