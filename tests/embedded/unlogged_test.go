package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/kafka"
	kafkafranz "github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// local is counts without a changelog.
var local = processor.KeyValue("local", serde.String, serde.Int64).Unlogged()

// inBoth counts a key in both stores, and complains if they differ when the record is new.
func inBoth(t *embedded.Task, key, out string) error {
	s := local.In(t)
	n, _, err := s.Get(key)
	if err != nil {
		return err
	}
	if err := s.Put(key, n+1); err != nil {
		return err
	}
	if logged, _, err := counts.In(t).Get(key); err != nil || !t.Replaying() && logged != n {
		return fmt.Errorf("%s is counted %d times with a changelog, %d without, %w", key, logged, n, err)
	}
	return count(t, key, out)
}

// once checks that each count of a key came once and in order.
func (x *watch) once(t *testing.T, n int) {
	t.Helper()
	x.check(t, n, embedded.ExactlyOnce)
}

func (w *world) lose(dir string) {
	w.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(dir, w.app, "0_*"))
	if err != nil || len(dirs) == 0 {
		w.t.Fatal(dirs, err)
	}
	for _, d := range dirs {
		if err := os.RemoveAll(d); err != nil {
			w.t.Fatal(err)
		}
	}
}

// copyOf gives a copy of a state directory, as it is now.
func (w *world) copyOf(dir string) string {
	w.t.Helper()
	to := filepath.Join(w.t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		w.t.Fatal(err)
	}
	return to
}

// A store without a changelog gets back from the user's own loop what a crash or a lost disk has taken from it;
// an error in the middle begins at the last commit again.
func TestUnloggedIsReplayed(t *testing.T) {
	everywhere(t, func(w *world) {
		x := w.watch()
		dir := w.t.TempDir()
		older := ""
		var replayed, committed atomic.Int64
		fail := false
		f := func(t *embedded.Task, r record) error {
			if t.Replaying() {
				if replayed.Add(1); fail && r.offset > 15 {
					fail = false
					return errOnce
				}
				t.BeforeCommit(func(context.Context) error { return errors.New("called for a record that was committed before") })
			} else {
				t.BeforeCommit(func(context.Context) error { committed.Add(1); return nil })
			}
			return inBoth(t, r.key, w.out)
		}
		for round, want := range []int64{0, 0, 100, 300} {
			switch round {
			case 1:
				older = w.copyOf(dir)
			case 2:
				dir = older
			case 3:
				w.lose(dir)
				fail = true
			}
			replayed.Store(0)
			w.produce(100)
			cfg := w.config(dir, embedded.AtLeastOnce)
			cfg.Stores = append(cfg.Stores, local)
			l := w.start(cfg)
			w.until(l, f, "all records are counted", func() bool { return x.reached(w.seq) })
			w.close(l)
			if n := replayed.Load(); n < want || round < 3 && n != want {
				w.t.Errorf("round %d: %d records were replayed, want %d", round, n, want)
			}
			if w.t.Failed() {
				w.t.Fatalf("in round %d, told %v", round, w.told)
			}
		}
		if fail || len(w.told) == 0 || !errors.Is(w.told[0], errOnce) {
			w.t.Errorf("told %v", w.told)
		}
		if n := committed.Load(); n != 400 {
			w.t.Errorf("%d records were committed, want 400", n)
		}
		x.once(w.t, w.seq)
	})
}

// Several inputs: none goes on to new records before all are back at the group's offsets, whatever the loop
// polls first, and with transaction markers between.
func TestReplayOfSeveralInputs(t *testing.T) {
	for _, d := range rangeDoors {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, d)
			second := w.b.CreateTopic(t, "second", 4, nil)
			dir := t.TempDir()
			var seen, replayed atomic.Int64
			live := make([]atomic.Bool, 4)
			f := func(t *embedded.Task, r record) error {
				if !t.Replaying() {
					seen.Add(1)
					live[r.partition].Store(true)
				} else if replayed.Add(1); live[r.partition].Load() {
					return fmt.Errorf("record %s-%d@%d is replayed after one that was new", r.topic, r.partition, r.offset)
				}
				return inBoth(t, r.topic+r.key, w.out)
			}
			for round, want := range []int64{0, 240, 320} {
				fresh := int64(240)
				seen.Store(0)
				for i := range live {
					live[i].Store(false)
				}
				replayed.Store(0)
				if round != 1 { // in the second round nothing comes behind the markers
					transacted(t, w, second, 80)
					transacted(t, w, second, 80)
				} else {
					fresh = 80
				}
				w.produce(80)
				if round > 0 {
					w.lose(dir)
				}
				cfg := w.config(dir, embedded.AtLeastOnce)
				cfg.Stores, cfg.Topics = append(cfg.Stores, local), []string{w.in, second}
				l, err := w.open(w.b.Addrs, w.app+"-group", cfg.Topics, cfg)
				if err != nil {
					t.Fatal(err)
				}
				w.until(l, f, "all records are counted", func() bool { return seen.Load() >= fresh })
				w.close(l)
				if n := replayed.Load(); n != want || seen.Load() != fresh || len(w.told) > 0 {
					t.Fatalf("round %d: %d records were replayed, want %d; %d of %d were new; told %v", round, n, want, seen.Load(), fresh, w.told)
				}
			}
		})
	}
}

// transacted writes n records to a topic in one transaction, which leaves a marker at its end.
func transacted(t *testing.T, w *world, topic string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	p, err := kafkafranz.Client{}.NewTransactional(w.b.Settings(), kafka.TransactionalConfig{ID: w.app + "-input", Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(ctx) }()
	var records []kafka.Record
	for i := range n {
		records = append(records, kafka.Record{Topic: topic, Partition: int32(i % 4), Timestamp: int64(1000 + i), Key: []byte(strconv.Itoa(i % 20)), Value: []byte("v")})
	}
	sent := make(chan error, 1)
	err = errors.Join(p.Init(ctx), p.Begin(), p.Send(ctx, slices.Clone(records), func(d kafka.Delivery) { sent <- d.Err }))
	if err == nil {
		err = <-sent
	}
	if err = errors.Join(err, p.Commit(ctx)); err != nil {
		t.Fatal(err)
	}
}
