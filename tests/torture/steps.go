package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
)

// step is one line of a history: a verb and its arguments.
type step []string

func (s step) String() string { return strings.Join(s, " ") }

// verbs and how many arguments each needs at least.
//
//	start P INTERVAL [POINT]  start process P with a commit interval, to die at a point of internal/failpoint
//	kill P                    SIGKILL
//	stop P                    SIGTERM, and wait for the clean end
//	term P                    SIGTERM
//	death P                   wait until P, which was started with a point, is dead
//	pause P, resume P         SIGSTOP, SIGCONT
//	halted P                  wait until P, which was started with a point that stops it (POINT:N:stop), is there, with a transaction open
//	expired P                 wait until the broker has ended the transactions of P, which is stopped
//	lose P                    delete the stores of P, which is dead
//	vanish P                  delete the stores of P, which lives, under it
//	damage P                  write over the databases' manifests of P, which is dead
//	keep P, old P             copy the stores of P, which is dead; put the copy back
//	disk P slow T             the disk of P: each write and sync takes so long
//	disk P full|broken N      after N more writes each fails for want of space, or as a broken disk's does
//	disk P heal
//	fails P                   wait until P has ended with an error that says so
//	wait T
//	net break                 close all connections
//	fence P                   initialise the transactional ids of P, in its place
//	net lose, net off, net heal  lose all answers from now on; close and refuse all connections; let them pass again
//	net delay T               delay each answer, until healed
//	net fail REQUEST CODE N   answer the next N of these requests with an error, and forward none
//	net late REQUEST T        break the connection of the next such request, and deliver it after T
//	net early REQUEST T       answer the next such request (EndTxn) at once, and deliver it T after somebody has read the group's offsets
//	broker stop|kill|start
//	progress                  all input that is there is processed and committed within the patience
var verbs = map[string]int{"start": 2, "kill": 1, "stop": 1, "death": 1, "pause": 1, "resume": 1, "lose": 1, "keep": 1, "old": 1,
	"disk": 2, "fails": 1, "term": 1, "damage": 1, "fence": 1, "vanish": 1, "halted": 1, "expired": 1,
	"wait": 1, "net": 1, "broker": 1, "progress": 0}

// parseHistory reads steps, one a line; # begins a comment.
func parseHistory(r io.Reader) ([]step, error) {
	var steps []step
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		s := step(strings.Fields(text))
		if len(s) == 0 {
			continue
		}
		if least, ok := verbs[s[0]]; !ok || len(s) <= least {
			return nil, fmt.Errorf("history line %d: cannot understand %q", n, s)
		}
		steps = append(steps, s)
	}
	return steps, lines.Err()
}

// writer makes the steps of a history. It knows which processes live.
type writer struct {
	r     *rand.Rand
	steps []step
	runs  map[string]bool
	net   bool
	// breakable: the broker may be stopped and killed.
	breakable bool
	// fenced: each transaction has an epoch of its own (transaction version 2), so that a request
	// which arrives when its sender has gone on is refused. librdkafka 2.11 has not: there it ends
	// the next transaction, or changes its offsets, and nothing that a client does can prevent it
	// (KIP-890).
	fenced bool
	// timeouts: transactions time out soon.
	timeouts bool
	// session in milliseconds, of the group's members.
	session int
}

// newWriter makes one whose choices depend on the seed alone.
func newWriter(seed uint64, net, breakable bool, session int) *writer {
	return &writer{r: rand.New(rand.NewPCG(seed, 1)), runs: map[string]bool{}, net: net, breakable: breakable, session: session}
}

func (w *writer) add(format string, args ...any) {
	w.steps = append(w.steps, step(strings.Fields(fmt.Sprintf(format, args...))))
}

func (w *writer) wait(most int) { w.add("wait %dms", 1+w.r.IntN(most)) }

func (w *writer) start(p, point string) {
	w.add("start %s %dms %s", p, []int{5, 20, 100}[w.r.IntN(3)], point)
	w.runs[p] = true
}

func (w *writer) end(verb, p string) {
	w.add("%s %s", verb, p)
	w.runs[p] = false
}

// points are those that a killed process can come to while it works.
var points = []string{"sealed", "outputs-delivered", "transaction-begun", "held-sent", "changelog-sent", "offsets-sent", "transaction-committed", "task-applied", "applied", "restored"}

// round adds one trouble and gives its steps. Each begins and ends with p1 alone.
func (w *writer) round() []step {
	w.steps = nil
	if !w.runs["p1"] {
		w.start("p1", "")
	}
	troubles := []func(){w.killed, w.killed, w.dies, w.dies, w.disk, w.oldDisk, w.damaged, w.zombie, w.zombie, w.shortPause, w.another, w.cleanStop, w.slowDisk, w.badDisk}
	troubles = append(troubles, w.fencedBySomebody)
	if w.net {
		troubles = append(troubles, w.lostAnswers, w.slow, w.refused, w.refused)
		if w.fenced {
			troubles = append(troubles, w.late)
		}
	}
	if w.timeouts {
		troubles = append(troubles, w.outlived)
	}
	if w.breakable {
		troubles = append(troubles, w.brokerDown, w.brokerDown)
	}
	w.wait(500)
	troubles[w.r.IntN(len(troubles))]()
	w.add("progress")
	return slices.Clone(w.steps)
}

func (w *writer) killed() {
	for range 1 + w.r.IntN(3) {
		w.end("kill", "p1")
		w.start("p1", "")
		w.wait([]int{100, 600, 1500}[w.r.IntN(3)])
	}
}

func (w *writer) dies() {
	w.end("kill", "p1")
	for range 1 + w.r.IntN(2) {
		point := points[w.r.IntN(len(points))]
		if point != "restored" {
			point = fmt.Sprint(point, ":", 1+w.r.IntN(6))
		}
		w.start("p1", point)
		w.end("death", "p1")
	}
	w.start("p1", "")
}

func (w *writer) disk() {
	w.end("kill", "p1")
	w.add("lose p1")
	if w.r.IntN(2) == 0 {
		w.start("p1", fmt.Sprint("restore-batch:", 1+w.r.IntN(4)))
		w.end("death", "p1")
	}
	w.start("p1", "")
}

func (w *writer) oldDisk() {
	w.end("kill", "p1")
	w.add("keep p1")
	w.start("p1", "")
	w.wait(1500)
	w.end([]string{"kill", "stop"}[w.r.IntN(2)], "p1")
	w.add("old p1")
	w.start("p1", "")
}

func (w *writer) slowDisk() {
	w.add("disk p1 slow %dms", 1+w.r.IntN(60))
	w.wait(3000)
	if w.r.IntN(2) == 0 {
		w.end("kill", "p1")
		w.start("p1", "")
	} else {
		w.add("disk p1 heal")
	}
}

// badDisk fails while p1 works, or takes over; what runs next finds it healed.
func (w *writer) badDisk() {
	for range 1 + w.r.IntN(2) {
		switch w.r.IntN(3) {
		case 0:
			w.end("kill", "p1")
			w.start("p1", "")
		case 1:
			w.end("kill", "p1")
			w.add("lose p1")
			w.start("p1", "")
		}
		w.add("disk p1 %s %d", []string{"full", "broken"}[w.r.IntN(2)], w.r.IntN(40))
		w.end("fails", "p1")
		w.start("p1", "")
		w.wait(600)
	}
}

func (w *writer) fencedBySomebody() {
	for range 1 + w.r.IntN(3) {
		w.add("fence p1")
		w.wait(600)
	}
}

func (w *writer) damaged() {
	w.end("kill", "p1")
	w.add("damage p1")
	if w.r.IntN(2) == 0 {
		w.start("p1", "set-aside")
		w.end("death", "p1")
	}
	w.start("p1", "")
}

// zombie stops one process for longer than its session while another takes over, and lets it
// go on.
func (w *writer) zombie() {
	w.start("p2", "")
	w.wait(500)
	w.add("pause p1")
	w.add("wait %dms", w.session+w.r.IntN(w.session+2000))
	w.add("resume p1")
	w.wait(1500)
	if w.r.IntN(2) == 0 { // and back
		w.add("pause p2")
		w.add("wait %dms", w.session+w.r.IntN(w.session+1000))
		w.add("resume p2")
		w.wait(500)
	}
	w.end([]string{"kill", "stop"}[w.r.IntN(2)], "p2")
}

// outlived stops a process inside its transaction for longer than that lasts, while another one takes over, or nobody, and
// lets it go on.
func (w *writer) outlived() {
	w.end("kill", "p1")
	w.start("p1", fmt.Sprintf("offsets-sent:%d:stop", 1+w.r.IntN(8))) // at the earlier points the broker may know of no transaction yet
	w.add("halted p1")
	other := w.r.IntN(2) == 0
	if other {
		w.start("p2", "")
	}
	w.add("expired p1")
	if other {
		w.add("progress")
	}
	w.add("resume p1")
	w.wait(1500)
	if other {
		w.end([]string{"kill", "stop"}[w.r.IntN(2)], "p2")
	}
}

func (w *writer) shortPause() {
	w.add("pause p1")
	w.wait(w.session)
	w.add("resume p1")
}

func (w *writer) another() {
	w.start("p2", "")
	w.wait(1500)
	w.end([]string{"kill", "stop"}[w.r.IntN(2)], "p1")
	w.wait(w.session + 1000)
	w.start("p1", "")
	w.wait(500)
	w.end([]string{"kill", "stop"}[w.r.IntN(2)], "p2")
}

func (w *writer) cleanStop() {
	w.end("stop", "p1")
	w.wait(300)
	w.start("p1", "")
}

func (w *writer) lostAnswers() {
	for range 1 + w.r.IntN(3) {
		if w.r.IntN(2) == 0 {
			w.add("net break")
		} else {
			w.add("net lose")
			w.wait(1500)
			if w.r.IntN(3) == 0 {
				w.end("kill", "p1")
				w.start("p1", "")
			}
			w.add("net heal")
		}
		w.wait(400)
	}
}

func (w *writer) slow() {
	w.add("net delay %dms", 20+w.r.IntN(200))
	w.wait(2000)
	w.killed()
	w.add("net heal")
}

// refusals are the errors that a broker may answer a request with, at any time.
var refusals = map[string][]int{
	"EndTxn":          {14, 15, 16, 51, 47, 90, 120},
	"InitProducerID":  {14, 15, 16, 51},
	"AddOffsetsToTxn": {14, 15, 16, 51, 47},
	"TxnOffsetCommit": {14, 15, 16, 22, 25, 47},
	"Produce":         {3, 6, 7, 19, 20},
	"OffsetFetch":     {14, 15, 16},
	"Heartbeat":       {16, 25, 27},
}

func (w *writer) refused() {
	requests := []string{"EndTxn", "EndTxn", "TxnOffsetCommit", "TxnOffsetCommit", "AddOffsetsToTxn", "InitProducerID", "Produce", "Produce", "OffsetFetch", "Heartbeat"}
	for range 1 + w.r.IntN(3) {
		r := requests[w.r.IntN(len(requests))]
		if r == "InitProducerID" || r == "OffsetFetch" { // of a take-over
			w.end("kill", "p1")
			w.start("p1", "")
		}
		w.add("net fail %s %d %d", r, refusals[r][w.r.IntN(len(refusals[r]))], 1+w.r.IntN(3))
		w.wait(800)
	}
	w.add("net heal")
}

// late lets an offset commit, or the end of a transaction, arrive when its sender has gone on.
func (w *writer) late() {
	for range 1 + w.r.IntN(3) {
		w.add("net late %s %dms", []string{"TxnOffsetCommit", "EndTxn"}[w.r.IntN(2)], 1+w.r.IntN(800))
		w.wait(1000)
	}
	w.add("net heal")
}

func (w *writer) brokerDown() {
	w.add("broker %s", []string{"stop", "kill"}[w.r.IntN(2)])
	w.wait(3000)
	if w.r.IntN(3) == 0 {
		w.end("kill", "p1")
		w.start("p1", "")
	}
	w.add("broker start")
}
