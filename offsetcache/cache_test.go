package offsetcache

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at(store string, next int64) Offset {
	return Offset{store, kafka.TopicPartition{Topic: "app-" + store + "-changelog", Partition: 3}, statestore.At(next)}
}

func none(store string) Offset {
	o := at(store, 0)
	o.Offset = statestore.Offset{}
	return o
}

// say gives a task in one line.
func say(t Task, ok bool) string {
	if !ok {
		return "nothing"
	}
	s := ""
	if t.Latest {
		s = "latest"
	}
	for _, o := range t.Offsets {
		s += fmt.Sprintf(" %s %v", o.Store, o.Offset)
	}
	return s
}

func TestFacts(t *testing.T) {
	c := New()
	for i, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"before the scan", func() {}, "nothing"},
		{"the scan", func() { c.Found("0_3", []Offset{at("a", 10), none("b")}) }, " a at 10 b absent"},
		{"a restore batch", func() { c.Restored("0_3", at("b", 5)) }, " a at 10 b at 5"},
		{"restored", func() { c.Running("0_3") }, "latest a at 10 b at 5"},
		{"a commit of one store", func() { c.Committed("0_3", []Offset{at("a", 20)}) }, "latest a at 20 b at 5"},
		{"a dirty close", func() { c.ClosedDirty("0_3") }, " a at 10 b absent"},
		{"restored again", func() { c.Running("0_3") }, "latest a at 10 b absent"},
		{"a commit", func() { c.Committed("0_3", []Offset{at("a", 30), at("b", 7)}) }, "latest a at 30 b at 7"},
		{"a sync", func() { c.Durable("0_3", []Offset{at("a", 30), at("b", 7)}) }, "latest a at 30 b at 7"},
		{"a restore after a reload", func() { c.Restored("0_3", at("b", 8)) }, " a at 30 b at 8"},
		{"restored once more", func() { c.Running("0_3") }, "latest a at 30 b at 8"},
		{"another commit", func() { c.Committed("0_3", []Offset{at("a", 31)}) }, "latest a at 31 b at 8"},
		{"a dirty close after the sync", func() { c.ClosedDirty("0_3") }, " a at 30 b at 7"},
		{"cleared", func() { c.Cleared("0_3", at("b", 99)) }, " a at 30 b absent"},
		{"a dirty close of a cleared store", func() { c.ClosedDirty("0_3") }, " a at 30 b absent"},
		{"a clean close", func() { c.Closed("0_3", []Offset{at("a", 40)}) }, " a at 40"},
		{"wiped", func() { c.Wiped("0_3") }, "nothing"},
		{"wiped twice", func() { c.Wiped("0_3") }, "nothing"},
		{"a dirty close of nothing", func() { c.ClosedDirty("0_3") }, ""},
		{"from nothing", func() { c.Restored("0_3", at("a", 1)) }, " a at 1"},
	} {
		step.do()
		if got := say(c.Lookup("0_3")); got != step.want {
			t.Errorf("%d, %s: %q, want %q", i, step.what, got, step.want)
		}
	}
	if _, ok := c.Lookup("0_4"); ok {
		t.Error("another task appeared")
	}
}

// What was given out does not change.
func TestTasksAreValues(t *testing.T) {
	c := New()
	given := []Offset{at("a", 1)}
	c.Found("0_3", given)
	given[0].Offset = statestore.At(77)
	before, _ := c.Lookup("0_3")
	c.Committed("0_3", []Offset{at("a", 2)})
	c.Durable("0_3", []Offset{at("a", 2)})
	if got := say(before, true); got != " a at 1" {
		t.Errorf("the task that was given out is now %q", got)
	}
}

func TestLag(t *testing.T) {
	for _, test := range []struct {
		offset     statestore.Offset
		start, end int64
		want       int64
		whole      bool
	}{
		{statestore.At(100), 0, 100, 0, false},
		{statestore.At(98), 0, 100, 2, false},
		{statestore.At(0), 0, 0, 0, false},
		{statestore.Offset{}, 0, 100, 100, true},
		{statestore.Offset{}, 40, 100, 60, true},
		{statestore.CleanUnknown(), 0, 100, 100, true},
		{statestore.At(101), 0, 100, 100, true},
		{statestore.At(1000), 0, 10, 10, true}, // created again
		{statestore.At(51), 95, 1000, 905, true},
		{statestore.At(95), 95, 1000, 905, false}, // nothing is missing
		{statestore.At(math.MaxInt64), 0, math.MaxInt64, 0, false},
		{statestore.At(0), 0, math.MaxInt64, math.MaxInt64, false},
		{statestore.Offset{}, math.MinInt64, math.MaxInt64, math.MaxInt64, true},
		{statestore.At(5), 10, 3, 0, true}, // bounds that contradict each other
		{statestore.At(0), 0, -1, 0, false},
	} {
		got, whole, reason := Bounds{test.start, test.end}.Lag(test.offset)
		if got != test.want || whole != test.whole || whole != (reason != "") {
			t.Errorf("%v in [%d, %d]: %d %v %q", test.offset, test.start, test.end, got, whole, reason)
		}
	}
}

// One store that is ahead, or unknown, hides nothing of the others.
func TestLagsAreNotAddedUp(t *testing.T) {
	task := Task{ID: "0_3", Offsets: []Offset{at("ahead", 5000), at("behind", 10), none("new"), at("unknown", 4)}}
	bounds := func(tp kafka.TopicPartition) (Bounds, bool) {
		return Bounds{0, 1000}, tp.Topic != "app-unknown-changelog"
	}
	got := task.Lags(bounds)
	for i := range got {
		got[i].Reason, got[i].Changelog = "", kafka.TopicPartition{}
	}
	want := []Lag{{Store: "ahead", Records: 1000, Whole: true}, {Store: "behind", Records: 990}, {Store: "new", Records: 1000, Whole: true}, {Store: "unknown", Unknown: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	task.Latest = true
	for _, l := range task.Lags(bounds) {
		if l.Records != 0 || l.Whole || l.Unknown {
			t.Errorf("latest: %+v", l)
		}
	}
}

func TestWatch(t *testing.T) {
	c := New()
	changed, stop := c.Watch()
	other, stopOther := c.Watch()
	stopOther()
	select {
	case <-changed:
		t.Fatal("told of nothing")
	default:
	}
	for i := range 10 {
		c.Found(fmt.Sprintf("0_%d", i), nil)
	}
	<-changed
	if n := len(c.Snapshot()); n != 10 {
		t.Errorf("%d tasks after the change", n)
	}
	select {
	case <-changed:
		t.Error("ten changes that nobody took were more than one")
	case <-other:
		t.Error("told after stop")
	default:
	}
	c.Wiped("0_4")
	<-changed
	stop()
	c.Wiped("0_5")
	select {
	case <-changed:
		t.Error("told after stop")
	default:
	}
}

// Readers see each task as of one moment: here both stores always have the same offset, and
// it never goes back.
func TestHammer(t *testing.T) {
	rnd := testseed.New(t)
	seed := rnd.Uint64()
	c := New()
	const tasks, rounds = 50, 400
	name := func(i int) string { return fmt.Sprintf("0_%d", i) }
	var wg, readers sync.WaitGroup
	var stopped atomic.Bool
	for r := range 8 {
		readers.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(r)))
			last := map[string]int64{}
			for !stopped.Load() {
				task := name(rnd.IntN(tasks))
				got, ok := c.Lookup(task)
				if ok {
					checkTask(t, got, last)
				}
				if rnd.IntN(100) == 0 {
					for _, x := range c.Snapshot() {
						checkTask(t, x, last)
					}
				}
			}
		})
	}
	changed, stop := c.Watch()
	defer stop()
	for w := range 4 {
		wg.Go(func() {
			for n := range int64(rounds) {
				for i := w; i < tasks; i += 4 {
					c.Committed(name(i), []Offset{at("a", n), at("b", n)})
				}
			}
		})
	}
	wg.Go(func() { // another task comes and goes beside them
		for range rounds {
			c.Found("9_9", nil)
			c.Wiped("9_9")
		}
	})
	wg.Wait()
	stopped.Store(true)
	readers.Wait()
	<-changed
	if c.Len() != tasks {
		t.Errorf("%d tasks", c.Len())
	}
	for i := range tasks {
		if got := say(c.Lookup(name(i))); got != fmt.Sprintf(" a at %d b at %d", rounds-1, rounds-1) {
			t.Errorf("%s: %s", name(i), got)
		}
	}
}

func checkTask(t *testing.T, x Task, last map[string]int64) {
	if len(x.Offsets) == 0 {
		return
	}
	a, _ := x.Offsets[0].Offset.Next()
	if len(x.Offsets) != 2 || x.Offsets[0].Offset != x.Offsets[1].Offset {
		t.Errorf("torn: %+v", x)
	}
	if a < last[x.ID] {
		t.Errorf("task %s went back from %d to %d", x.ID, last[x.ID], a)
	}
	last[x.ID] = a
}

func TestLookupAllocatesNothing(t *testing.T) {
	c := New()
	c.Found("0_3", []Offset{at("a", 1)})
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := c.Lookup("0_3"); !ok {
			t.Error("not there")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// The bound is 100 ns, with 8 readers while there are writers too.
func BenchmarkLookup(b *testing.B) {
	c := New()
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("%d_%d", i%7, i)
		c.Found(names[i], []Offset{at("a", 1), at("b", 2)})
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	writers.Go(func() {
		t := time.NewTicker(100 * time.Microsecond)
		defer t.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-t.C:
				c.Committed(names[i%len(names)], []Offset{at("a", int64(i))})
			}
		}
	})
	b.ReportAllocs()
	b.SetParallelism(max(1, 8))
	b.RunParallel(func(pb *testing.PB) {
		i := 0
		for pb.Next() {
			if i++; i == len(names) {
				i = 0
			}
			if t, ok := c.Lookup(names[i]); !ok || len(t.Offsets) != 2 {
				b.Error(t, ok)
			}
		}
	})
	close(stop)
	writers.Wait()
}
