package crash

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

// kills is how many kills a random test makes: what the flag says, or else as many as given.
func kills(ordinary, short int) int {
	switch {
	case *killsFlag > 0:
		return *killsFlag
	case testing.Short():
		return short
	}
	return ordinary
}

// inputLines are the lines of an input that is to be counted several times over.
const inputLines = 2000

func TestKillAtRandomMoments(t *testing.T) {
	for i, client := range clients {
		for j, guarantee := range guarantees {
			if testing.Short() && (i+j)%2 == 1 {
				continue
			}
			ordinary, onKafka, short := 20, 6, 2
			if !testbroker.Full() {
				ordinary, onKafka = 6, 3
			}
			if client != "franz" {
				ordinary, onKafka, short = 3, 2, 1
			}
			t.Run("kfake/"+client+"/"+guarantee, func(t *testing.T) {
				t.Parallel()
				r := random(t)
				w := newWorld(t, newInput(t, r, inputLines), guarantee)
				w.client = client
				killAtRandom(w, r, kills(ordinary, short))
			})
			t.Run("kafka/"+client+"/"+guarantee, func(t *testing.T) {
				t.Parallel()
				r := random(t)
				w := newWorld(t, newInput(t, r, inputLines), guarantee)
				w.client = client
				w.onKafka()
				killAtRandom(w, r, kills(onKafka, short))
			})
		}
	}
}

// killAtRandom kills runs and starts them again, each with more to do, and finishes. Of four
// kills one hits a run that has just begun to process, one the producing, one a run that has
// committed, one any moment of the start.
func killAtRandom(w *world, r *rand.Rand, kills int) {
	w.t.Helper()
	processing, producing, committed, finished := 0, 0, 0, 0
	for done := 0; done < kills; {
		w.flags = []string{"--commit-interval", []string{"5ms", "30ms", "100ms"}[r.IntN(3)]}
		w.repeat += 3
		if done%4 == 1 {
			w.repeat += 9
		}
		p := w.start()
		most := 400 // milliseconds
		switch done % 4 {
		case 0:
			p.await(isProcessing)
		case 1:
			p.await(func(line string) bool { return strings.HasPrefix(line, "input:") })
			most = 60
		case 2:
			p.await(hasCommitted())
		}
		p.endedWithin(time.Duration(r.IntN(most)) * time.Millisecond)
		if !p.kill() {
			if code := p.wait(); code != 0 {
				w.t.Fatalf("exit code %d:\n%s", code, p.text())
			}
			finished++
			w.check(p)
			continue
		}
		done++
		last, _ := p.last()
		if p.any(isProcessing) {
			processing++
		}
		if p.any(hasCommitted()) {
			committed++
		}
		if last.produced < last.of {
			producing++
		}
		w.t.Logf("kill %d: %+v", done, last)
	}
	if processing < kills/2 || kills >= 3 && committed == 0 {
		w.t.Errorf("of %d kills only %d hit a run that was processing, and %d one that had committed", kills, processing, committed)
	}
	p := w.finish()
	w.t.Logf("%d kills, %d of them while processing, %d while producing, %d after commits; %d runs ended before; %d repetitions; last run:\n%s", kills, processing, producing, committed, finished, w.repeat, p.text())
}
