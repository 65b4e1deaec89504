package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// plot is a history that breaks a take-over which is done in a naive order.
type plot struct {
	steps string
	// says is what the log of a process must say, so that it is sure that the story took place.
	says map[string]string
	// proxy: it needs the proxy, and so a broker of its own.
	proxy bool
	// unhurried: no transaction may time out in it.
	unhurried bool
	// franz: it needs transaction version 2, which librdkafka does not speak.
	franz bool
}

// cast is on which broker, by which client and with which guarantee a story is told.
type cast struct{ on, client, guarantee string }

// casts are all of them with testbroker.Full, and else one for each client, on different brokers where the story lets them.
func casts(t *testing.T, p plot) (all []cast) {
	turn := testbroker.Turn(t)
	brokers, guarantee := []string{"kfake", "kafka"}, []string{"exactly-once", "at-least-once"}[turn/2%2]
	if p.proxy || !testbroker.HasReal() {
		brokers = brokers[:1]
	}
	all = []cast{{brokers[turn%len(brokers)], "franz", guarantee}, {brokers[(turn+1)%len(brokers)], "confluent", "exactly-once"}}
	if testbroker.Full() {
		all = []cast{
			{"kfake", "franz", "exactly-once"}, {"kfake", "franz", "at-least-once"}, {"kfake", "confluent", "exactly-once"},
			{"kafka", "franz", "at-least-once"}, {"kafka", "confluent", "exactly-once"},
		}
	}
	return slices.DeleteFunc(all, func(c cast) bool {
		return p.proxy && c.on == "kafka" || p.franz && c.client != "franz" || clients[c.client] == nil
	})
}

// tell goes through a story with its casts; the oracle looks at the end.
func tell(t *testing.T, p plot) {
	t.Helper()
	if testing.Short() {
		t.Skip("sessions and transactions have to time out")
	}
	t.Parallel()
	for _, c := range casts(t, p) {
		t.Run(c.on+"/"+c.client+"/"+c.guarantee, func(t *testing.T) {
			t.Parallel()
			o := options{guarantee: c.guarantee, client: c.client, rate: 300, unhurried: p.unhurried, seed: testseed.New(t).Uint64(), dir: t.TempDir()}
			if c.on == "kafka" {
				o.brokers = testbroker.Real(t).Addrs
			}
			runPlot(t, &o, p)
		})
	}
}

func runPlot(t *testing.T, o *options, p plot) {
	t.Helper()
	var err error
	if o.steps, err = parseHistory(strings.NewReader(p.steps)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := newWorld(t.Context(), o, &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.run(t.Context()), w.close()); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), logs(o.dir))
	}
	if len(w.missed) > 0 {
		t.Errorf("did not come to their points: %v", w.missed)
	}
	for name, pattern := range p.says {
		log, err := os.ReadFile(filepath.Join(o.dir, name+".log"))
		if err != nil || !regexp.MustCompile(pattern).Match(log) {
			t.Errorf("the log of %s does not say %q (%v):\n%s", name, pattern, err, log)
		}
	}
	t.Log(w.totals())
}

// The end of a transaction is answered, and its markers come to the offsets and the changelogs later than the sender, who is dead
// by then, and its successor believe: the successor waits for the offsets (require stable), and looks at them again behind the
// restore (step 4 of the order).
func TestMarkerNotYetVisible(t *testing.T) {
	tell(t, plot{proxy: true, franz: true, unhurried: true, steps: `
		start p1 10ms
		progress
		start p2 10ms
		wait 300ms
		net early EndTxn 900ms
		wait 200ms
		kill p1
		progress
		stop p2`})
}

// The owner dies inside its transaction; another process, which does not have its transactional ids, takes over: it
// waits at the offsets (require stable) until the broker has ended the transaction.
func TestOwnerDiesInsideItsTransaction(t *testing.T) {
	tell(t, plot{steps: `
		start p1 10ms offsets-sent:20
		death p1
		start p2 10ms
		progress
		kill p2
		start p2 10ms changelog-sent:10
		death p2
		start p1 10ms
		progress`})
}

// The owner is stopped inside its transaction for longer than that lasts. Another process takes over when the broker has ended it, as
// does nobody the second time. What the owner does when it goes on is refused, and dropped.
func TestOwnerOutlivesItsTransaction(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("whether a process has stopped itself is read below /proc")
	}
	tell(t, plot{says: map[string]string{"p1": "lost the place in the group"}, steps: `
		start p1 10ms offsets-sent:20:stop
		halted p1
		start p2 10ms
		expired p1
		progress
		resume p1
		wait 500ms
		progress
		stop p2
		kill p1
		start p1 10ms offsets-sent:10:stop
		halted p1
		expired p1
		resume p1
		progress`})
}

// The owner, whichever of the two it is, dies and is back before anybody has missed it.
func TestOwnerIsBackWithinItsSession(t *testing.T) {
	tell(t, plot{steps: `
		start p1 10ms
		progress
		start p2 10ms
		wait 300ms
		kill p1
		start p1 10ms
		kill p1
		start p1 10ms
		progress
		kill p2
		start p2 10ms
		progress
		stop p2`})
}

// A process is stopped for longer than its session, another one takes over, and it goes on in the middle of its
// interval, with a membership that its client refreshes at once: it was given back the same member or a new
// one, but never the tasks. What it had is dropped.
func TestZombieWithARefreshedMembership(t *testing.T) {
	tell(t, plot{says: map[string]string{"p1": "lost the place in the group", "p2": "to=running[^^]*lost the place in the group"}, steps: `
		start p1 10ms
		progress
		start p2 10ms
		wait 300ms
		pause p1
		wait 4s
		progress
		resume p1
		wait 1s
		progress
		pause p2
		wait 4s
		progress
		resume p2
		wait 1s
		progress
		stop p2`})
}

// A process is stopped for longer than its session and nobody takes over: it is dropped by the group all the same, and takes
// its place again.
func TestPausedProcessGoesOn(t *testing.T) {
	tell(t, plot{says: map[string]string{"p1": "lost the place in the group"}, steps: `
		start p1 10ms
		progress
		pause p1
		wait 5s
		resume p1
		progress`})
}

// Somebody initialises a process's transactional ids while it lives: its transaction is ended, its epoch is
// old. It reloads its tasks and goes on.
func TestTransactionalIDIsInitialisedElsewhere(t *testing.T) {
	tell(t, plot{says: map[string]string{"p1": "reload tasks"}, steps: `
		start p1 10ms
		progress
		fence p1
		wait 500ms
		progress
		fence p1
		fence p1
		fence p1
		progress`})
}

// An offset commit arrives a second time, or when its sender has long gone on and has committed more.
func TestLateCopyOfAnOffsetCommit(t *testing.T) {
	tell(t, plot{proxy: true, franz: true, steps: `
		start p1 10ms
		progress
		net late TxnOffsetCommit 700ms
		wait 1s
		progress
		net late TxnOffsetCommit 1500ms
		wait 100ms
		kill p1
		start p1 10ms
		progress
		wait 2s
		progress`})
}

// A store that was half restored when the process was killed is killed again before it is whole.
func TestHalfRestoredAndKilledAgain(t *testing.T) {
	tell(t, plot{steps: `
		start p1 10ms
		wait 1s
		progress
		kill p1
		lose p1
		start p1 10ms restore-batch:1
		death p1
		start p1 10ms restore-batch:1
		death p1
		start p1 10ms restored
		death p1
		start p1 10ms start-sent
		death p1
		start p1 10ms start-committed
		death p1
		start p1 10ms
		progress`})
}

// The broker answers nothing, and then cannot be reached at all, for longer than any timeout of a call. The application
// waits, says so, and goes on where it was.
func TestBrokerIsGoneForMinutes(t *testing.T) {
	tell(t, plot{proxy: true, says: map[string]string{"p1": "level=WARN"}, steps: `
		start p1 10ms
		progress
		net lose
		wait 65s
		net heal
		progress
		net off
		wait 65s
		net heal
		progress`})
}

// Somebody deletes the stores of a process while it works. It may go on with the files that it has open, or end with an
// error that says so; what starts next has nothing, and restores it.
func TestStateIsDeletedUnderAProcess(t *testing.T) {
	tell(t, plot{steps: `
		start p1 10ms
		progress
		vanish p1
		wait 2s
		kill p1
		start p1 10ms
		progress
		vanish p1
		kill p1
		start p1 10ms
		progress`})
}
