package streams_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// alarm forwards one record in Init and one from a wall-clock punctuation, without any input.
type alarm struct{ work }

func (alarm) Init(ctx processor.Context[string, string]) error {
	say := func(what string) error {
		return ctx.Forward(processor.Record[string, string]{Key: what, Value: what, Timestamp: ctx.Now()})
	}
	var cancel func()
	cancel = ctx.Schedule(20*time.Millisecond, processor.WallClockTime, func(time.Time) error {
		cancel()
		return say("punctuation " + ctx.TaskID().String())
	})
	return say("init " + ctx.TaskID().String())
}

// What a processor writes without a record (in Init, in a punctuation) is committed like
// everything else: soon, and in one transaction with the offsets of its task, so that it is
// fenced as they are.
func TestOutputsWithoutRecords(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		for _, g := range guaranteesFor(t, e.client) {
			t.Run(g.String(), func(t *testing.T) {
				e := newEnv(t, e.b, e.client)
				topology := processor.NewTopology()
				processor.AddSource(topology, "source", serde.String, serde.String, e.in)
				processor.AddProcessor(topology, "alarm", func() alarm { return alarm{} }, []string{"source"})
				processor.AddSink(topology, "sink", e.out, serde.String, serde.String, "alarm")
				cfg := e.config()
				cfg.Guarantee = g
				app := e.start(topology, cfg)
				want := map[string]int{"init 0_0": 1, "init 0_1": 1, "punctuation 0_0": 1, "punctuation 0_1": 1}
				var got map[string]int
				kafkatest.Eventually(t, time.Minute, "the outputs", func() bool {
					got = map[string]int{}
					for _, r := range e.read(e.out) {
						got[string(r.Key)]++
					}
					return cmp.Equal(got, want)
				})
				kafkatest.Eventually(t, time.Minute, "commits of the tasks that wrote them", func() bool {
					committed := 0
					for _, s := range app.Status().Workers[0].Tasks {
						if s.CommitID.Number > 0 {
							committed++
						}
					}
					return committed == 2
				})
				app.close()
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		}
	})
}

// Records without a key go to all partitions, in both guarantees.
func TestOutputsWithoutKeys(t *testing.T) {
	b := testbroker.Kfake(t)
	for _, g := range guarantees {
		t.Run(g.String(), func(t *testing.T) {
			e := newEnv(t, b, clients[0])
			topology := emptyTopologyOf(t, e.in, e.out)
			cfg := e.config()
			cfg.Guarantee, cfg.CommitInterval = g, time.Millisecond
			app := e.start(topology, cfg)
			for i := range 4 {
				e.produce(fmt.Sprint(i))
				app.catchUp()
			}
			app.close()
			partitions := map[int32]int{}
			for _, r := range e.read(e.out) {
				partitions[r.Partition]++
			}
			if len(partitions) != 2 {
				t.Errorf("records by partition: %v", partitions)
			}
		})
	}
}

func emptyTopologyOf(t *testing.T, in, out string) *streams.Topology {
	t.Helper()
	b := streams.NewBuilder()
	streams.Stream(b, in, streams.With(serde.String, serde.String)).To(out)
	topology, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// The bounds of an interval hold within a turn too: a few large records reach them long before
// the turn is over.
func TestBoundsWithinATurn(t *testing.T) {
	b := testbroker.Kfake(t)
	large := strings.Repeat("x", 100<<10)
	state := processor.KeyValue("state", serde.String, serde.String)
	for name, c := range map[string]struct {
		limits  task.Limits
		process work
	}{
		"held": {task.Limits{MaxHeldBytes: 1 << 20}, func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
			return ctx.Forward(processor.WithValue(r, large))
		}},
		"dirty": {task.Limits{MaxDirtyBytes: 1 << 20}, func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
			return state.In(ctx).Put(r.Value, large)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, b, clients[0])
			in, _ := lines(200)
			for i := range in {
				in[i] = fmt.Sprint(i)
			}
			e.produce(in...)
			cfg := e.config()
			cfg.Guarantee, cfg.CommitInterval, cfg.Limits = streams.ExactlyOnce, time.Hour, c.limits
			app := e.start(e.one(each(c.process), state), cfg)
			kafkatest.Eventually(t, 90*time.Second, "everything is processed", func() bool {
				s := app.Status()
				return len(s.Workers) > 0 && s.Workers[0].Processed == 200
			})
			app.close()
			// Each partition has 100 records of 100 KiB: ten intervals of 1 MiB.
			if n := app.Status().Workers[0].Commits; n < 15 {
				t.Errorf("%d commits", n)
			}
		})
	}
}

// busy takes longer for a punctuation than the time to the next one.
type busy struct{ work }

func (busy) Init(ctx processor.Context[string, string]) error {
	ctx.Schedule(time.Millisecond, processor.WallClockTime, func(time.Time) error {
		wait(3 * time.Millisecond)
		return nil
	})
	return nil
}

// Punctuations that are always overdue do not keep records from being read.
func TestBusyPunctuation(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		app := e.start(e.one(func() processor.Processor[string, string, string, string] {
			return busy{func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
				return ctx.Forward(r)
			}}
		}), e.config())
		e.produce("a", "b", "c")
		app.catchUp()
		app.close()
		if got := e.read(e.out); len(got) != 3 {
			t.Errorf("%d outputs", len(got))
		}
	})
}
