package streams_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// gated is a client whose consumers read a changelog partition only by tokens: one poll each.
type gated struct {
	kafka.Client
	tp     kafka.TopicPartition
	tokens chan struct{}
	all    chan struct{} // closed: no token is needed any more
}

func (g *gated) NewConsumer(s kafka.Settings, cfg kafka.ConsumerConfig) (kafka.Consumer, error) {
	c, err := g.Client.NewConsumer(s, cfg)
	return &gatedConsumer{Consumer: c, g: g}, err
}

type gatedConsumer struct {
	kafka.Consumer
	g    *gated
	held bool // the partition is assigned
}

func (c *gatedConsumer) Assign(ctx context.Context, from map[kafka.TopicPartition]int64) error {
	_, here := from[c.g.tp]
	c.held = c.held || here
	return c.Consumer.Assign(ctx, from)
}

func (c *gatedConsumer) Unassign(tps ...kafka.TopicPartition) error {
	for _, tp := range tps {
		c.held = c.held && tp != c.g.tp
	}
	return c.Consumer.Unassign(tps...)
}

func (c *gatedConsumer) Poll(ctx context.Context, into *kafka.Poll) error {
	token := false
	if c.held {
		select {
		case <-c.g.all:
		case <-c.g.tokens:
			token = true
		case <-ctx.Done():
			into.Reset()
			return nil
		}
	}
	err := c.Consumer.Poll(ctx, into)
	if token && len(into.Partitions) == 0 { // it brought nothing
		select {
		case c.g.tokens <- struct{}{}:
		default:
		}
	}
	return err
}

// open lets all polls through.
func (g *gated) open() { close(g.all) }

// restores collects what a listener is told.
type restores struct {
	mu   sync.Mutex
	seen []string
	from map[string]int64 // where the restore of a task began last
	next map[string]int64
}

func (r *restores) listen(id processor.TaskID, e task.RestoreEvent, s task.RestoreStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, id.String()+" "+e.String())
	if r.from == nil {
		r.from, r.next = map[string]int64{}, map[string]int64{}
	}
	if e == task.RestoreStarted {
		r.from[id.String()] = s.From
	}
	r.next[id.String()] = s.Next
}

func (r *restores) events() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.seen, ", ")
}

// perKey counts keys, each partition its own: two tasks.
func (e *env) perKey() *streams.Topology {
	e.t.Helper()
	b := streams.NewBuilder()
	rows := streams.Stream(b, e.in, streams.With(serde.String, serde.String))
	rows.GroupByKey().Count(streams.Materialized{Name: "counts"}).ToStream().To(e.out)
	topology, err := b.Build()
	if err != nil {
		e.t.Fatal(err)
	}
	return topology
}

// largeAndSmall fills both partitions, keys records into the first, and loses the first task's disk, or both.
func (e *env) largeAndSmall(keys, small int, lost ...string) {
	e.t.Helper()
	e.produceKeys(0, keys)
	e.produceKeys(1, small)
	app := e.start(e.perKey(), e.config())
	app.catchUp()
	app.close()
	for _, task := range lost {
		if err := os.RemoveAll(filepath.Join(e.dir, e.app, task)); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e *env) produceKeys(partition int32, n int) {
	e.t.Helper()
	var records []kafka.Record
	for i := range n {
		records = append(records, kafka.Record{Topic: e.in, Partition: partition, Timestamp: int64(1000 + i), Key: fmt.Appendf(nil, "p%d-%d%s", partition, i, e.padding), Value: []byte("x")})
	}
	e.produceRecords(records...)
}

// restoring is an app whose first task restores 30,000 records, through a gate.
func (e *env) restoring() (*gated, streams.Config, *restores) {
	e.t.Helper()
	keys := 30_000
	if testing.Short() {
		keys = 15_000 // the race detector makes much work of them
	}
	e.largeAndSmall(keys, 10, "0_0")
	g := &gated{e.client, kafka.TopicPartition{Topic: e.app + "-counts-changelog"}, make(chan struct{}, 1), make(chan struct{})}
	seen := &restores{}
	cfg := e.config()
	cfg.Client, cfg.Limits.ShortRestore, cfg.RestoreListener = g, 100, seen.listen
	return g, cfg, seen
}

// count reads the last count of a key of the second partition, as it is told now.
func (e *env) count(key string) int64 {
	last, _ := e.counts(e.out)
	return last[key]
}

// While one task restores, the other processes and commits; and the first, once restored, goes on
// where it was.
func TestOthersRunDuringARestore(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		for _, g := range guaranteesFor(t, e.client) {
			t.Run(g.String(), func(t *testing.T) {
				e := newEnv(t, e.b, e.client)
				gate, cfg, seen := e.restoring()
				cfg.Guarantee = g
				app := e.start(e.perKey(), cfg)
				e.produceKeys(0, 10)
				e.produceKeys(1, 10)
				kafkatest.Eventually(t, 90*time.Second, "the other task's counts", func() bool { return e.count("p1-9") == 2 })
				if s := app.State(); s != streams.Restoring {
					t.Errorf("state %v while a task restores", s)
				}
				if n := e.count("p0-9"); n != 1 {
					t.Errorf("the task that restores has counted: %d", n)
				}
				gate.open()
				app.catchUp()
				if last, _ := e.counts(e.out); last["p0-9"] != 2 || last["p0-10"] != 1 || last["p1-9"] != 2 {
					t.Errorf("counts %d, %d, %d", last["p0-9"], last["p0-10"], last["p1-9"])
				}
				app.close()
				if got := seen.events(); !strings.HasPrefix(got, "0_0 started") || !strings.HasSuffix(got, "0_0 ended") {
					t.Errorf("events %s", got)
				}
			})
		}
	})
}

// A restore that is stopped in its middle goes on from there.
func TestRestoreGoesOn(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		gate, cfg, seen := e.restoring()
		app := e.start(e.perKey(), cfg)
		gate.tokens <- struct{}{}
		kafkatest.Eventually(t, 90*time.Second, "a batch", func() bool { return restored(app) > 0 })
		app.close()
		if got := seen.events(); !strings.HasSuffix(got, "0_0 suspended") {
			t.Errorf("events %s", got)
		}
		at := seen.next["0_0"]
		gate.open()
		app = e.start(e.perKey(), cfg)
		// What the group has committed is caught up with before the store is restored.
		kafkatest.Eventually(t, 90*time.Second, "the end of the restore", func() bool { return strings.HasSuffix(seen.events(), "0_0 ended") })
		app.close()
		if from := seen.from["0_0"]; from != at || from == 0 {
			t.Errorf("restored from %d; the stop was at %d; events: %s", from, at, seen.events())
		}
		e.produceKeys(0, 1)
		app = e.start(e.perKey(), e.config())
		app.catchUp()
		app.close()
		if n := e.count("p0-0"); n != 2 {
			t.Errorf("count %d", n)
		}
	})
}

// killAt runs the app in a process of its own, which kills itself at a fail point.
func (e *env) killAt(point string, g streams.Guarantee, limits ...int) {
	e.t.Helper()
	cmd := exec.CommandContext(e.ctx(), os.Args[0], "-test.run", "^TestRestoreChild$")
	cmd.Env = append(os.Environ(), childEnv+"=restore", failpoint.Env+"="+point,
		"RESTORE="+strings.Join([]string{e.b.Addrs[0], e.app, e.in, e.out, e.dir, e.client.Name(), strconv.Itoa(limits[0]), strconv.Itoa(limits[1]), g.String()}, " "))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(err.Error(), "killed") {
		e.t.Fatalf("%v\n%s", err, out)
	}
}

// TestRestoreChild is the process of killAt.
func TestRestoreChild(t *testing.T) {
	args := strings.Fields(os.Getenv("RESTORE"))
	if os.Getenv(childEnv) != "restore" || len(args) != 9 {
		t.Skip("only as a child of another test")
	}
	e := &env{t: t, b: testbroker.Broker{Addrs: args[:1]}, app: args[1], in: args[2], out: args[3], dir: args[4]}
	for _, c := range clients {
		if c.Name() == args[5] {
			e.client = c
		}
	}
	cfg := e.config()
	for _, g := range guarantees {
		if g.String() == args[8] {
			cfg.Guarantee = g
		}
	}
	for i, limit := range []*int{&cfg.Limits.ShortRestore, &cfg.Limits.LargeRestore} {
		n, err := strconv.Atoi(args[6+i])
		if err != nil {
			t.Fatal(err)
		}
		*limit = n
	}
	app := e.start(e.perKey(), cfg)
	app.catchUp()
}

// A restore that kill -9 ends goes on at the batch or the run behind which it was killed, which has its offset
// in it.
func TestRestoreGoesOnAfterAKill(t *testing.T) {
	if !testing.Short() {
		t.Parallel()
	}
	for i, c := range []struct {
		point        string
		short, large int
		keys         int
		padding      int // of each key: a run is 32 MiB
	}{{"restore-batch", 100, 1_000_000, 30_000, 0}, {"restore-batch:2", 100_000, 1_000_000, 30_000, 0}, {"restore-run", 100, 1000, 40_000, 1000}} {
		for n, client := range clients { // the guarantees by turns
			switch {
			case len(clients) == 1:
			case testing.Short() && n > 0, !testing.Short() && !testbroker.Half(i+n):
				continue
			}
			g := guarantees[n%len(guarantees)]
			t.Run(c.point+"/"+client.Name()+"/"+g.String(), func(t *testing.T) {
				if !testing.Short() { // the race detector makes much work of the records
					t.Parallel()
				}
				e := newEnv(t, testbroker.Kfake(t), client)
				e.padding = strings.Repeat(".", c.padding)
				e.largeAndSmall(c.keys, 10, "0_0")
				e.killAt(c.point, g, c.short, c.large)
				cfg := e.config()
				cfg.Guarantee = g
				seen := &restores{}
				cfg.RestoreListener = seen.listen
				app := e.start(e.perKey(), cfg)
				app.catchUp()
				e.produceKeys(0, c.keys)
				app.catchUp()
				app.close()
				if from := seen.from["0_0"]; from < 10_000 {
					t.Errorf("restored from %d: %s", from, seen.events())
				}
				last, _ := e.counts(e.out)
				for i := range c.keys {
					if key := fmt.Sprintf("p0-%d%s", i, e.padding); last[key] != 2 {
						t.Fatalf("count of key %d: %d", i, last[key])
					}
				}
			})
		}
	}
}

// restored is how many records the first task has restored.
func restored(app *running) (n int64) {
	for _, w := range app.Status().Workers {
		for _, x := range w.Tasks {
			for _, r := range x.Restore {
				n += r.Records
			}
		}
	}
	return n
}

// A member that is lost while a task restores takes its place again, and goes on with the restore. A
// failed commit of the tasks that run, which are taken over again, does not disturb it.
func TestFailedCommitDuringARestore(t *testing.T) {
	t.Parallel()
	b := testbroker.Kfake(t)
	for _, c := range []struct {
		class kafka.ErrorClass
		again bool
	}{{kafka.ClassUnknownMember, true}, {kafka.ClassAbortable, false}, {kafka.ClassFenced, false}, {kafka.ClassInDoubt, false}} {
		if testing.Short() && (c.class == kafka.ClassAbortable || c.class == kafka.ClassFenced) {
			continue
		}
		t.Run(c.class.String(), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, b, clients[0])
			gate, cfg, seen := e.restoring()
			refuse := &atomic.Int32{}
			cfg.Client = refusing{gate, c.class, refuse}
			app := e.start(e.perKey(), cfg)
			gate.tokens <- struct{}{}
			kafkatest.Eventually(t, 90*time.Second, "a batch", func() bool { return restored(app) > 0 })
			refuse.Store(1)
			e.produceKeys(1, 10)
			kafkatest.Eventually(t, 90*time.Second, "a refusal", func() bool { return refuse.Load() <= 0 })
			kafkatest.Eventually(t, 90*time.Second, "the other task's counts", func() bool { return e.count("p1-9") == 2 })
			if c.again { // its outputs may be seen before the place is given up
				kafkatest.Eventually(t, 90*time.Second, "the end of the first restore", func() bool { return strings.Contains(seen.events(), "suspended") })
			}
			gate.open()
			app.catchUp()
			e.produceKeys(0, 1)
			app.catchUp()
			app.close()
			if n := e.count("p0-0"); n != 2 {
				t.Errorf("count %d", n)
			}
			events := seen.events()
			if again := strings.Count(events, "started") > 1; again != c.again || again == (seen.from["0_0"] == 0) {
				t.Errorf("%s, last from %d", events, seen.from["0_0"])
			}
		})
	}
}

// A store that is large does not hold up a small one: of what a fetch brings each has its share.
func TestSmallRestoreIsNotStarved(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	e.padding = strings.Repeat(".", 500)
	e.largeAndSmall(40_000, 500, "0_0", "0_1")
	cfg := e.config()
	seen := &restores{}
	cfg.Limits.ShortRestore, cfg.RestoreListener = 100, seen.listen
	app := e.start(e.perKey(), cfg)
	app.catchUp()
	app.close()
	if got := seen.events(); strings.Index(got, "0_1 ended") > strings.Index(got, "0_0 ended") {
		t.Errorf("%s", got)
	}
}
