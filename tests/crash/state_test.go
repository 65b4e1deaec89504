package crash

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// After a clean stop there is nothing to restore and nothing to replay.
func TestCleanStopThenRun(t *testing.T) {
	for _, guarantee := range guaranteesOf(t) {
		t.Run(guarantee, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newInput(t, random(t), inputLines), guarantee)
			w.repeat = 20
			p := w.start()
			if !p.await(isProcessing) {
				t.Fatalf("the run ended before it could be stopped:\n%s", p.text())
			}
			p.signal(syscall.SIGTERM)
			if code := p.wait(); code != 130 || p.stdout.Len() > 0 {
				t.Fatalf("exit code %d, %d bytes on standard output, want 130 and none:\n%s", code, p.stdout.Len(), p.text())
			}
			for range 2 { // the second run has nothing to do at all
				p = w.finish()
				if n := p.found("restored: "); n != 0 {
					t.Errorf("%d records restored after a clean stop:\n%s", n, p.text())
				}
				if n := p.found("log replayed: "); n != 0 {
					t.Errorf("%d bytes of the store's log replayed after a clean stop:\n%s", n, p.text())
				}
			}
			if last, ok := p.last(); !ok || last.records != 0 {
				t.Errorf("a run with nothing to do processed %d records:\n%s", last.records, p.text())
			}
		})
	}
}

// The state comes back from the changelog, whole: what is counted after that goes on from it.
func TestDeletedStateDirectory(t *testing.T) {
	for _, guarantee := range guaranteesOf(t) {
		t.Run(guarantee, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newInput(t, random(t), 1000), guarantee)
			w.finish()
			// With the process id gone the group waits for the member that it takes for another.
			must(t, os.RemoveAll(w.stateDir()))
			p := w.finish()
			if n, words := p.found("restored: "), int64(len(w.in.count)); n < words {
				t.Errorf("%d records restored for %d words:\n%s", n, words, p.text())
			}
			w.removeTasks()
			w.repeat++
			w.finish()
		})
	}
}

// A restore that is killed goes on where it was, or begins again, and the counts are right.
func TestKillDuringRestore(t *testing.T) {
	for _, guarantee := range guaranteesOf(t) {
		t.Run(guarantee, func(t *testing.T) {
			t.Parallel()
			r := random(t)
			w := newWorld(t, newInput(t, r, 1000), guarantee)
			w.repeat = 5
			w.finish()
			rounds := [][]string{{"restore-batch:1", "restore-batch:1"}, {"restore-batch:3"}, {"restored"}, {"start-committed", "start-committed"}}
			if testing.Short() {
				rounds = rounds[:1]
			}
			for _, points := range rounds {
				w.removeTasks()
				for _, point := range points {
					w.dieAt(point)
				}
				w.repeat++ // and what is counted next stands on it
				w.finish()
			}
			for range kills(3, 1) {
				w.removeTasks()
				p := w.start()
				p.await(func(line string) bool { return strings.HasPrefix(line, "broker:") })
				p.endedWithin(time.Duration(r.IntN(200)) * time.Millisecond)
				p.kill()
			}
			w.repeat++
			w.finish()
		})
	}
}
