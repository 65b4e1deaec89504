package task

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// A model of how one task is handed over, by a log that every process reads at its own pace. It is the rule that
// placement by plans must keep: a plan that is superseded before it was carried out leaves two processes
// behind that may have the task, and a third that must wait for both.

// logEntry is a line of the log: a plan that grants the task, a release, or a departure from the group.
type logEntry struct {
	plan, released, departed bool
	process                  int
	epoch                    int // of the plan; of the newest plan that the one who releases has read
}

func (e logEntry) String() string {
	switch {
	case e.plan:
		return fmt.Sprintf("plan %d to %d", e.epoch, e.process)
	case e.released:
		return fmt.Sprintf("%d released at %d", e.process, e.epoch)
	}
	return fmt.Sprintf("%d departed", e.process)
}

// handOver says, by what a process has read of the log, which others it must wait for and which it
// must fence before it begins.
type handOver func(read []logEntry, me int) (wait, fence []int)

// byHolders is the rule. The holders of a task are all processes that were granted it and whose release, at
// an epoch not below that of the grant, or departure is not in the log. One that has departed without a
// release is fenced.
func byHolders(read []logEntry, me int) (wait, fence []int) {
	granted, departed := map[int]int{}, map[int]bool{}
	for _, e := range read {
		switch {
		case e.plan:
			granted[e.process] = e.epoch
		case e.released && e.epoch >= granted[e.process]:
			delete(granted, e.process)
		case e.departed:
			departed[e.process] = true
		}
	}
	for p := range granted {
		switch {
		case p == me:
		case departed[p]:
			fence = append(fence, p)
		default:
			wait = append(wait, p)
		}
	}
	return wait, fence
}

// Rules that look right, and are not.
var naiveHandOvers = map[string]handOver{
	// The holder is who the plan before granted it to.
	"last plan": func(read []logEntry, me int) (wait, fence []int) {
		last := map[int]bool{}
		for i := len(read) - 1; i >= 0; i-- {
			if e := read[i]; e.plan && e.process != me {
				last[e.process] = true
				break
			}
		}
		wait, fence = byHolders(read, me)
		other := func(p int) bool { return !last[p] }
		return slices.DeleteFunc(wait, other), slices.DeleteFunc(fence, other)
	},
	// A release counts whatever was granted after it.
	"any release": func(read []logEntry, me int) (wait, fence []int) {
		read = slices.Clone(read)
		for i := range read {
			if read[i].released {
				read[i].epoch = 1 << 30
			}
		}
		released := func(p int) bool {
			return slices.ContainsFunc(read, func(e logEntry) bool { return e.released && e.process == p })
		}
		wait, fence = byHolders(read, me)
		return slices.DeleteFunc(wait, released), slices.DeleteFunc(fence, released)
	},
	// Who has departed is gone.
	"no fence": func(read []logEntry, me int) (wait, fence []int) {
		wait, _ = byHolders(read, me)
		return wait, nil
	},
}

// holder is one run of a process. Who comes back to the group is a new one.
type holder struct {
	read    int // entries of the log
	epoch   int // of the newest plan read
	mine    bool
	running bool // it commits, unless it was fenced
	fenced  bool
	member  bool
}

type handOverModel struct {
	rule      handOver
	log       []logEntry
	processes []*holder
	epoch     int
	history   []string
}

func (m *handOverModel) note(format string, args ...any) {
	m.history = append(m.history, fmt.Sprintf(format, args...))
}

// step does one thing that can happen, and gives the processes that can commit then. choose gives a number
// below n.
func (m *handOverModel) step(choose func(n int) int) (committing []int) {
	if len(m.processes) < 3 {
		m.processes = append(m.processes, &holder{member: true})
	}
	p := choose(len(m.processes))
	x := m.processes[p]
	switch choose(8) {
	case 0: // the leader makes a plan for one that is a member as far as it knows
		if x.member {
			m.epoch++
			m.append(logEntry{plan: true, process: p, epoch: m.epoch})
		}
	case 1: // the group drops a member, which does not know it: it may be stopped, or cut off
		if x.member && choose(2) == 0 && len(m.processes) < 6 {
			x.member = false
			m.append(logEntry{departed: true, process: p})
			m.processes = append(m.processes, &holder{member: true})
		}
	case 2, 3, 4:
		m.readOne(p)
	default:
		m.begin(p)
	}
	for p, x := range m.processes {
		if x.running && !x.fenced {
			committing = append(committing, p)
		}
	}
	return committing
}

func (m *handOverModel) append(e logEntry) {
	m.log = append(m.log, e)
	m.note("%v", e)
}

// readOne reads the next entry. Who loses the task closes it before it says so, also one that had not begun.
func (m *handOverModel) readOne(p int) {
	x := m.processes[p]
	if x.read == len(m.log) {
		return
	}
	e := m.log[x.read]
	x.read++
	m.note("%d reads %v", p, e)
	if !e.plan {
		return
	}
	x.epoch = e.epoch
	lost := x.mine && e.process != p
	x.mine = e.process == p
	if lost {
		x.running = false
		if x.member {
			m.append(logEntry{released: true, process: p, epoch: x.epoch})
		}
	}
}

// begin takes the task over if the plan says so and the rule allows it.
func (m *handOverModel) begin(p int) {
	x := m.processes[p]
	if !x.mine || x.running {
		return
	}
	wait, fence := m.rule(m.log[:x.read], p)
	for _, other := range fence {
		m.note("%d fences %d", p, other)
		m.processes[other].fenced = true
	}
	if len(wait) == 0 {
		m.note("%d begins", p)
		x.running = true
	}
}

// play goes through a history and gives it, if at some point two processes could commit.
func play(rule handOver, steps int, choose func(n int) int) (broken []string, begun bool) {
	m := &handOverModel{rule: rule}
	for range steps {
		committing := m.step(choose)
		begun = begun || len(committing) > 0
		if len(committing) > 1 {
			return append(m.history, fmt.Sprint(committing, " can commit")), true
		}
	}
	return nil, begun
}

func TestSupersededPlanWithTwoHolders(t *testing.T) {
	begun := false
	rapid.Check(t, func(t *rapid.T) {
		broken, b := play(byHolders, 120, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		begun = begun || b
		if broken != nil {
			t.Fatal(strings.Join(broken, "\n"))
		}
	})
	if !begun {
		t.Error("nobody ever had the task")
	}
}

// The model finds what is wrong with rules that are simpler.
func TestNaiveHandOversBreak(t *testing.T) {
	random := testseed.New(t)
	for name, rule := range naiveHandOvers {
		t.Run(name, func(t *testing.T) {
			shortest := []string(nil)
			for range 3000 {
				r := rand.New(rand.NewPCG(random.Uint64(), 0))
				if broken, _ := play(rule, 120, r.IntN); broken != nil && (shortest == nil || len(broken) < len(shortest)) {
					shortest = broken
				}
			}
			if shortest == nil {
				t.Fatal("no history breaks it: the model misses something")
			}
			t.Log(strings.Join(shortest, "\n"))
		})
	}
}

// The history of the name: the plan that gave the task to 1 was superseded before 0 had read it.
func TestTakerWaitsForBothHolders(t *testing.T) {
	log := []logEntry{{plan: true, process: 0, epoch: 1}, {plan: true, process: 1, epoch: 2}, {plan: true, process: 2, epoch: 3}}
	expect := func(want string) {
		t.Helper()
		wait, fence := byHolders(log, 2)
		slices.Sort(wait)
		if got := fmt.Sprint("wait ", wait, " fence ", fence); got != want {
			t.Errorf("%v: %s, want %s", log, got, want)
		}
	}
	expect("wait [0 1] fence []")
	log = append(log, logEntry{released: true, process: 1, epoch: 3})
	expect("wait [0] fence []")
	log = append(log, logEntry{departed: true, process: 0})
	expect("wait [] fence [0]")
	log = append(log, logEntry{plan: true, process: 1, epoch: 4}, logEntry{released: true, process: 1, epoch: 3}, logEntry{plan: true, process: 2, epoch: 5})
	expect("wait [1] fence [0]")
}
