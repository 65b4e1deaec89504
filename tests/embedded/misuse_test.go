package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/franz"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// wants checks that an error says all of the given.
func wants(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", texts)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

var other = processor.KeyValue("other", serde.String, serde.String)

// What a function must not do is told to it, and the loop goes on.
func TestMisuseInFunction(t *testing.T) {
	each(t, func(w *world) {
		w.produce(4)
		cfg := w.config(w.t.TempDir(), embedded.AtLeastOnce)
		cfg.Debug = true
		l := w.start(cfg)
		var kept *embedded.Task
		got := 0
		f := func(t *embedded.Task, r record) error {
			got++
			kept = t
			_, _, err := other.In(t).Get("a")
			wants(w.t, err, "store other", "not connected")
			wants(w.t, t.Send("elsewhere", nil, nil), "elsewhere", "Config.Outputs")
			elsewhere := make(chan error)
			go func() {
				_, _, err := counts.In(t).Get("a")
				elsewhere <- err
			}()
			wants(w.t, <-elsewhere, "another goroutine")
			wants(w.t, l.Commit(context.Background()), "from within the function")
			_, _, err = counts.In(t).Get("a")
			return err
		}
		w.until(l, f, "all came", func() bool { return got == 4 })
		_, _, err := counts.In(kept).Get("a")
		wants(w.t, err, "Process has returned")
		wants(w.t, kept.Send(w.out, nil, nil), "Process has returned")
		kept.BeforeCommit(func(context.Context) error { w.t.Error("called, though it was given too late"); return nil })
		if len(w.told) > 0 {
			w.t.Error(w.told)
		}
		w.close(l)
	})
}

// A second host cannot use the directory; after Close nothing works; a wrong configuration is told whole.
func TestMisuseOfHost(t *testing.T) {
	each(t, func(w *world) {
		w.produce(4)
		cfg := w.config(w.t.TempDir(), embedded.AtLeastOnce)
		l := w.start(cfg)
		_, err := w.open(w.b.Addrs, w.app+"-group", []string{w.in}, cfg)
		wants(w.t, err, cfg.StateDir)
		w.until(l, func(*embedded.Task, record) error { return nil }, "all are here", func() bool { return len(l.Ready()) == 4 })
		w.close(l)
		w.close(l)
		if !errors.Is(l.Err(), embedded.ErrClosed) || !errors.Is(l.Commit(context.Background()), embedded.ErrClosed) {
			w.t.Errorf("after Close: %v, %v", l.Err(), l.Commit(context.Background()))
		}
		_, err = w.open(w.b.Addrs, w.app, []string{w.in}, embedded.Config{App: "a/b"})
		wants(w.t, err, "App", "StateDir", "Stores")
		_, err = w.open(w.b.Addrs, "", []string{w.in}, cfg)
		wants(w.t, err, "group", "missing")
		cfg.Outputs = []string{"no-such-topic"}
		_, err = w.open(w.b.Addrs, w.app, []string{w.in}, cfg)
		wants(w.t, err, "no-such-topic", "does not exist")
	})
}

// Client options that cannot go with state are refused with the reason, and those that say what holds anyway are not.
func TestFranzOptions(t *testing.T) {
	w := &world{t: t, b: testbroker.Kfake(t), app: "app"}
	cfg := w.config(t.TempDir(), embedded.AtLeastOnce)
	cfg.Outputs = nil
	open := func(more ...kgo.Opt) (*franz.Host, error) {
		return franz.Open(context.Background(), append([]kgo.Opt{kgo.SeedBrokers(w.b.Addrs...), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("in")}, more...), cfg)
	}
	for _, x := range []struct {
		opt   kgo.Opt
		wants []string
	}{
		{kgo.FetchIsolationLevel(kgo.ReadUncommitted()), []string{"client options", "kgo.FetchIsolationLevel", "aborted transactions", "leave it out"}},
		{kgo.AutoCommitMarks(), []string{"client options", "automatic commits"}},
		{kgo.GreedyAutoCommit(), []string{"client options", "automatic commits"}},
		{kgo.ConsumeStartOffset(kgo.NewOffset().At(7)), []string{"client options", "kgo.ConsumeStartOffset", "AtStart or AtEnd"}},
	} {
		_, err := open(x.opt)
		wants(t, err, x.wants...)
	}
	for _, opt := range []kgo.Opt{kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.DisableAutoCommit()} {
		h, err := open(opt)
		if err != nil {
			t.Fatal(err)
		}
		w.close(franzLoop{h})
	}
}

// A topic that Config.Topics does not name stops the host with the reason.
func TestUnexpectedTopic(t *testing.T) {
	each(t, func(w *world) {
		cfg := w.config(w.t.TempDir(), embedded.AtLeastOnce)
		cfg.Topics = []string{"another"}
		l := w.start(cfg)
		eventually(w.t, 30e9, "the host stops", func() bool {
			_ = l.poll(func(*embedded.Task, record) error { return nil })
			return l.Err() != nil
		})
		wants(w.t, l.Err(), w.in, "another", "Config.Topics")
		w.close(l)
	})
}

// What BeforeCommit was given is called before the offset is committed; when it fails, the records come again.
func TestBeforeCommit(t *testing.T) {
	each(t, func(w *world) {
		x := w.watch()
		w.produce(50)
		dir := w.t.TempDir()
		l := w.start(w.config(dir, embedded.AtLeastOnce))
		var called, failed atomic.Int32
		f := func(t *embedded.Task, r record) error {
			t.BeforeCommit(func(ctx context.Context) error {
				if r.value == "13" && failed.Add(1) <= 2 {
					return fmt.Errorf("the sink is gone")
				}
				called.Add(1)
				return ctx.Err()
			})
			return count(t, r.key, w.out)
		}
		w.until(l, f, "all records are counted", func() bool { return x.reached(w.seq) && called.Load() >= 50 && failed.Load() >= 3 })
		w.close(l)
		if failed.Load() != 3 {
			w.t.Errorf("the sink was asked %d times, want 3", failed.Load())
		}
		l = w.start(w.config(dir, embedded.AtLeastOnce))
		w.produce(10)
		w.until(l, f, "all records are counted", func() bool { return x.reached(w.seq) })
		w.close(l)
		x.check(w.t, w.seq, embedded.AtLeastOnce)
	})
}

// A client that its user has closed is of no use to the host, which says so.
func TestClientClosed(t *testing.T) {
	w := newWorld(t, doors[0])
	w.produce(10)
	l := w.start(w.config(t.TempDir(), embedded.AtLeastOnce)).(franzLoop)
	x := w.watch()
	w.until(l, func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }, "all records are counted", func() bool { return x.reached(w.seq) })
	l.Client().CloseAllowingRebalance()
	wants(t, l.Err(), "client was closed", "host's Close")
	wants(t, l.Process(&kgo.Record{Topic: w.in}, nil), "client was closed")
	w.close(l)
	if !errors.Is(l.Err(), embedded.ErrClosed) {
		t.Error(l.Err())
	}
	saysClosed(t, "process", l.Process(&kgo.Record{Topic: w.in}, nil))
	saysClosed(t, "commit", l.Commit(context.Background()))
}

// saysClosed checks that an operation on a closed host says so in the words of all.
func saysClosed(t *testing.T, operation string, err error) {
	t.Helper()
	if want := operation + ": " + embedded.ErrClosed.Error(); !errors.Is(err, embedded.ErrClosed) || err.Error() != want {
		t.Errorf("it says %v, want %q", err, want)
	}
}

// A commit after the partitions were lost does not say that it has committed what it has not; a task that is used then is
// left out.
func TestCommitAfterLoss(t *testing.T) {
	each(t, func(w *world) {
		if !w.classic {
			w.t.Skip("members of this protocol cannot be evicted")
		}
		w.produce(50)
		cfg := w.config(w.t.TempDir(), embedded.AtLeastOnce)
		cfg.Limits.CommitInterval = time.Hour
		l := w.start(cfg)
		var kept *embedded.Task
		got := 0
		f := func(t *embedded.Task, r record) error {
			kept = t
			got++
			return counts.In(t).Put(r.key, 1)
		}
		w.until(l, f, "all came", func() bool { return got >= 50 })
		if n := w.evict(nil); n != 1 {
			w.t.Fatalf("%d members were evicted", n)
		}
		var err error
		w.until(l, f, "a commit fails", func() bool { err = l.Commit(context.Background()); return err != nil })
		wants(w.t, err, "commit", "again")
		kept.Commit() // is only logged
		w.until(l, f, "they have come again and are committed", func() bool { return got >= 100 && l.Commit(context.Background()) == nil })
		w.close(l)
	})
}

// A changelog that exists and would lose what its store needs stops the host.
func TestChangelogThatForgets(t *testing.T) {
	each(t, func(w *world) {
		cl := w.client()
		defer cl.Close()
		minute, policy := "60000", "compact,delete"
		if _, err := kadm.NewClient(cl).CreateTopic(context.Background(), 4, 1, map[string]*string{"cleanup.policy": &policy, "retention.ms": &minute}, w.app+"-seen-changelog"); err != nil {
			w.t.Fatal(err)
		}
		cfg := w.config(w.t.TempDir(), embedded.AtLeastOnce)
		cfg.Stores = []processor.StoreDef{processor.Window("seen", serde.String, serde.Int64, time.Second, time.Hour)}
		l := w.start(cfg)
		eventually(w.t, 90*time.Second, "the host stops", func() bool {
			_ = l.poll(func(*embedded.Task, record) error { return nil })
			return l.Err() != nil
		})
		wants(w.t, l.Err(), w.app+"-seen-changelog", "retention.ms=60000", "at least 3600000")
		w.close(l)
	})
}
