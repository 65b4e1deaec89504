package streams_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// fussy refuses one value.
type fussy struct{ serde.Serde[string] }

func (s fussy) Decode(b []byte) (string, error) {
	if string(b) == "undecodable" {
		return "", errors.New("no such text")
	}
	return s.Serde.Decode(b)
}

// fragile counts values, and fails at some.
func (e *env) fragile(fails bool) *streams.Topology {
	e.t.Helper()
	count := processor.KeyValue("count", serde.String, serde.Int64)
	big := processor.KeyValue("big", serde.String, serde.String)
	p := func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
		if fails {
			switch r.Value {
			case "panics":
				panic("of the user")
			case "errs":
				return errors.New("of the user")
			case "big state":
				return big.In(ctx).Put("key", strings.Repeat("x", 3<<20))
			case "big output":
				return ctx.Forward(processor.Record[string, string]{Key: "big", Value: strings.Repeat("x", 3<<20), Timestamp: r.Timestamp})
			}
		}
		n, _, err := count.In(ctx).Get(r.Value)
		if err == nil {
			err = count.In(ctx).Put(r.Value, n+1)
		}
		if err != nil {
			return err
		}
		return ctx.Forward(processor.Record[string, string]{Key: r.Value, Value: fmt.Sprint(n + 1), Timestamp: r.Timestamp})
	}
	var in serde.Serde[string] = serde.String
	if fails {
		in = fussy{serde.String}
	}
	t := processor.NewTopology()
	processor.AddSource(t, "source", serde.String, in, e.in)
	processor.AddProcessor(t, "work", each(p), []string{"source"}, count, big)
	processor.AddSink(t, "sink", e.out, serde.String, serde.String, "work")
	must(e.t, t.Build())
	return t
}

// feed produces n records to each of the partitions, with the partition's name as value.
func (e *env) feed(n int, partitions ...int32) {
	e.t.Helper()
	var records []kafka.Record
	for range n {
		for _, p := range partitions {
			records = append(records, kafka.Record{Topic: e.in, Partition: p, Timestamp: 1000, Value: fmt.Append(nil, "p", p)})
		}
	}
	e.produceRecords(records...)
}

// numbers are the counts in the output of a value; repeated ones, which at-least-once may have, once.
func (e *env) numbers(g streams.Guarantee, value string) (got []string) {
	e.t.Helper()
	seen := map[string]bool{}
	for _, r := range e.read(e.out) {
		if string(r.Key) == value && (g == streams.ExactlyOnce || !seen[string(r.Value)]) {
			got = append(got, string(r.Value))
			seen[string(r.Value)] = true
		}
	}
	return got
}

func upTo(n int) (want []string) {
	for i := range n {
		want = append(want, fmt.Sprint(i+1))
	}
	return want
}

// One task fails, in each way that there is; the others, of its worker and of another, go on as if nothing had been, and a
// program that does not fail takes up its records where it stood.
func TestOneTaskFailsAlone(t *testing.T) {
	t.Parallel()
	for i, client := range clients {
		for j, g := range guaranteesFor(t, client) {
			for k, kind := range []struct{ value, words string }{
				{"panics", "panic: of the user"}, {"errs", "of the user"}, {"undecodable", "no such text"},
				{"big state", "-big-changelog"}, {"big output", "arge"},
			} {
				if !testing.Short() && !testbroker.Half(i+j+k) { // any two of client, guarantee and kind come together
					continue
				}
				t.Run(client.Name()+"/"+g.String()+"/"+kind.value, func(t *testing.T) {
					t.Parallel()
					e := newEnv(t, testbroker.Kfake(t), client)
					e.oneFails(g, kind.value, kind.words)
				})
			}
		}
	}
}

func (e *env) oneFails(g streams.Guarantee, value, words string) {
	t := e.t
	t.Helper()
	e.in += "-4"
	e.create(e.in, 4)
	type failure struct {
		id  processor.TaskID
		err error
	}
	failures := make(chan failure, 10)
	cfg := e.config()
	cfg.Guarantee, cfg.Workers, cfg.OnTaskFailure, cfg.CommitInterval = g, 2, streams.KeepOthers, 20*time.Millisecond
	cfg.TaskFailureListener = func(id processor.TaskID, err error) { failures <- failure{id, err} }
	app := e.start(e.fragile(true), cfg)
	e.feed(50, 0, 1, 2, 3)
	app.catchUp()
	e.feed(20, 0, 1, 2, 3)
	e.produceRecords(kafka.Record{Topic: e.in, Timestamp: 1000, Value: []byte(value)})
	e.feed(20, 0, 1, 2, 3)
	var f failure
	select {
	case f = <-failures:
	case err := <-app.res:
		t.Fatalf("the application ended: %v", err)
	case <-e.ctx().Done():
		t.Fatal("no task failed")
	}
	if f.id != (processor.TaskID{}) {
		t.Errorf("task %v failed", f.id)
	}
	contains(t, f.err, "task 0_0", words)
	e.feed(10, 1, 2, 3)
	app.catchUp()
	if failed := failedTasks(app); failed != 1 || app.State() != streams.Running {
		t.Errorf("%d tasks failed, state %v", failed, app.State())
	}
	contains(t, app.Close(e.ctx()), "task 0_0", words)
	for p := 1; p < 4; p++ {
		if got := e.numbers(g, fmt.Sprint("p", p)); !slices.Equal(got, upTo(100)) {
			t.Errorf("counts of partition %d: %v", p, got)
		}
	}
	most := 70 // at-least-once shows outputs before the commit fails
	if g == streams.AtLeastOnce && strings.HasPrefix(value, "big") {
		most = 90
	}
	if got := e.numbers(g, "p0"); len(got) < 50 || len(got) > most {
		t.Errorf("%d counts of the partition whose task failed", len(got))
	}
	app = e.start(e.fragile(false), cfg)
	app.catchUp()
	app.close()
	if got := e.numbers(g, "p0"); !slices.Equal(got, upTo(90)) {
		t.Errorf("counts after the repair: %v", got)
	}
	if len(failures) > 0 {
		t.Errorf("another failure: %v", <-failures)
	}
}

// When the last task has failed the application ends, with the failures of all.
func TestAllTasksFail(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	cfg := e.config()
	cfg.OnTaskFailure, cfg.Workers = streams.KeepOthers, 2
	app := e.start(e.fragile(true), cfg)
	e.produce("a", "errs")
	kafkatest.Eventually(t, 90*time.Second, "one failure", func() bool { return failedTasks(app) == 1 })
	e.produce("panics", "b")
	contains(t, app.failure(), "task 0_0", "panic: of the user", "task 0_1", "of the user")
}

func failedTasks(app *running) (n int) {
	for _, w := range app.Status().Workers {
		for _, s := range w.Tasks {
			if s.Failed != nil {
				n++
			}
		}
	}
	return n
}

// recommitting is a client that counts the commits of a partition's offset.
type recommitting struct {
	kafka.Client
	tp   kafka.TopicPartition
	seen chan int64
}

func (c recommitting) NewTransactional(s kafka.Settings, cfg kafka.TransactionalConfig) (kafka.Transactional, error) {
	txn, err := c.Client.NewTransactional(s, cfg)
	return recommittingTxn{txn, c}, err
}

type recommittingTxn struct {
	kafka.Transactional
	c recommitting
}

func (x recommittingTxn) SendOffsets(ctx context.Context, m kafka.Member, offsets []kafka.CommittedOffset) error {
	err := x.Transactional.SendOffsets(ctx, m, offsets)
	for _, o := range offsets {
		if o.TopicPartition == x.c.tp && err == nil {
			select {
			case x.c.seen <- o.Offset:
			default:
			}
		}
	}
	return err
}

// The offsets of a task that has failed are committed again and again as they are, so that the broker does not
// expire them while the application lives.
func TestOffsetsOfAFailedTaskAreKept(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	tp := kafka.TopicPartition{Topic: e.in, Partition: 0}
	client := recommitting{e.client, tp, make(chan int64, 1)}
	cfg := e.config()
	cfg.Client, cfg.OnTaskFailure, cfg.Limits.IdleCommitInterval = client, streams.KeepOthers, 20*time.Millisecond
	app := e.start(e.fragile(true), cfg)
	e.feed(7, 0, 1)
	app.catchUp()
	before, err := e.admin.CommittedOffsets(e.ctx(), e.app, tp)
	must(t, err)
	e.produce("errs")
	kafkatest.Eventually(t, 90*time.Second, "the failure", func() bool { return failedTasks(app) == 1 })
	select {
	case <-client.seen: // of before the failure
	default:
	}
	for range 4 {
		select {
		case got := <-client.seen:
			if got != 7 {
				t.Errorf("offset %d was committed", got)
			}
		case <-e.ctx().Done():
			t.Fatal("the offset is not committed again")
		}
	}
	contains(t, app.Close(e.ctx()), "of the user")
	after, err := e.admin.CommittedOffsets(e.ctx(), e.app, tp)
	must(t, err)
	was, err := task.DecodeMetadata(before[tp].Metadata)
	must(t, err)
	is, err := task.DecodeMetadata(after[tp].Metadata)
	must(t, err)
	if before[tp].Offset != after[tp].Offset || was.ID.Compare(is.ID) > 0 {
		t.Errorf("offset %+v was %+v before the failure", after[tp], before[tp])
	}
}

// A store that is found damaged while its task runs is set aside and restored; the application goes on, whatever is
// to happen when a task fails.
func TestDamageWhileRunning(t *testing.T) {
	for _, g := range guarantees {
		for _, choice := range []streams.OnTaskFailure{streams.StopApp, streams.KeepOthers} {
			t.Run(g.String()+"/"+choice.String(), func(t *testing.T) {
				t.Parallel()
				e := newEnv(t, testbroker.Kfake(t), clients[0])
				rows := processor.KeyValue("rows", serde.String, serde.String)
				topology := e.one(each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
					old, _, err := rows.In(ctx).Get(r.Value)
					if err != nil {
						return err
					}
					return rows.In(ctx).Put(r.Value, old+"+"+rand.Text()+rand.Text()+rand.Text()+rand.Text())
				}), rows)
				cfg := e.config()
				var found atomic.Bool
				cfg.Logger = slog.New(noticing{discard.Handler(), "the store of a task was found damaged", &found})
				cfg.Guarantee, cfg.OnTaskFailure = g, choice
				var values []string
				for i := range 3000 {
					values = append(values, fmt.Sprintf("key %05d", i))
				}
				app := e.start(topology, cfg)
				e.produce(values...)
				app.catchUp()
				app.close()
				damageMiddle(t, filepath.Join(e.dir, e.app, "0_1", "*.sst"))
				app = e.start(topology, cfg)
				e.produce(values...)
				app.catchUp()
				asides, err := filepath.Glob(filepath.Join(e.dir, e.app, "0_1.corrupt-*"))
				must(t, err)
				if len(asides) != 1 || failedTasks(app) != 0 || !found.Load() {
					t.Errorf("set aside: %q; %d tasks failed; found while running: %v", asides, failedTasks(app), found.Load())
				}
				app.close()
				for p := range 2 {
					n := 0
					s, err := statestore.Open(filepath.Join(e.dir, e.app, fmt.Sprint("0_", p)), statestore.Options{Logger: discard})
					must(t, err)
					states, err := s.Stores()
					must(t, err)
					must(t, s.Register(states[0].Recorded))
					kv, err := s.KeyValue("rows")
					must(t, err)
					for x, err := range kv.All() {
						must(t, err)
						if len(x.Value) != 2*(1+4*26) { // written twice, not once and not three times
							t.Fatalf("row %q has %d bytes", x.Key, len(x.Value))
						}
						n++
					}
					must(t, s.Close())
					if n != 1500 {
						t.Errorf("task 0_%d has %d rows", p, n)
					}
				}
			})
		}
	}
}

// noticing is a log that notices a message.
type noticing struct {
	slog.Handler
	message string
	seen    *atomic.Bool
}

func (n noticing) Enabled(context.Context, slog.Level) bool { return true }

func (n noticing) WithAttrs([]slog.Attr) slog.Handler { return n }

func (n noticing) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, n.message) {
		n.seen.Store(true)
	}
	return nil
}

// damageMiddle overwrites a part of the largest file that is only read when its rows are.
func damageMiddle(t *testing.T, pattern string) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	must(t, err)
	var largest []byte
	var path string
	for _, name := range names {
		b, err := os.ReadFile(name)
		must(t, err)
		if len(b) > len(largest) {
			largest, path = b, name
		}
	}
	if len(largest) < 100_000 {
		t.Fatalf("files %s: %q, the largest has %d bytes", pattern, names, len(largest))
	}
	for i := len(largest) / 2; i < len(largest)/2+200; i++ {
		largest[i] ^= 0x55
	}
	must(t, os.WriteFile(path, largest, 0o600))
}
