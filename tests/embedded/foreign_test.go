package embedded

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/task"
)

// committer is a loop whose user commits an offset himself, with the client of the host.
type committer interface {
	commitByUser(tp kafka.TopicPartition, offset int64) error
}

func (l franzLoop) commitByUser(tp kafka.TopicPartition, offset int64) (err error) {
	l.Client().CommitOffsetsSync(context.Background(), map[string]map[int32]kgo.EpochOffset{tp.Topic: {tp.Partition: {Epoch: -1, Offset: offset}}},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, r *kmsg.OffsetCommitResponse, cerr error) {
			if err = cerr; err == nil && r.Topics[0].Partitions[0].ErrorCode != 0 {
				err = fmt.Errorf("error code %d", r.Topics[0].Partitions[0].ErrorCode)
			}
		})
	return err
}

// processed runs a loop until all records are counted and committed, and gives a partition that had some, with its position.
func (w *world) processed(l loop, x *watch) (kafka.TopicPartition, int64) {
	w.t.Helper()
	var tp kafka.TopicPartition
	var next int64
	f := func(t *embedded.Task, r record) error {
		tp, next = kafka.TopicPartition{Topic: r.topic, Partition: r.partition}, r.offset+1
		return count(t, r.key, w.out)
	}
	w.until(l, f, "all records are counted", func() bool { return x.reached(w.seq) })
	if err := l.Commit(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	return tp, next
}

// saysWho checks that an error tells of an offset that is not ours, and what to do.
func saysWho(t *testing.T, err error, tp kafka.TopicPartition, offset int64, more ...string) {
	t.Helper()
	if !errors.Is(err, task.ErrForeignCommit) {
		t.Errorf("it is not ErrForeignCommit: %v", err)
	}
	wants(t, err, append(more, fmt.Sprintf("something other than Tidemark committed offset %d of %v", offset, tp), "CommitRecords", "CommitMessage", "host's client")...)
}

// A commit of the user's own, with the host's client, stops the host, which makes it good first: the next start goes on as if
// nothing had been.
func TestUserCommits(t *testing.T) {
	t.Parallel()
	everywhere(t, func(w *world) {
		x := w.watch()
		w.produce(50)
		cfg := w.config(w.t.TempDir(), embedded.ExactlyOnce)
		l := w.start(cfg)
		tp, next := w.processed(l, x)
		if err := l.(committer).commitByUser(tp, next-1); err != nil {
			w.t.Fatal(err)
		}
		w.stops(l, nothing)
		saysWho(w.t, l.Err(), tp, next-1, "committed again", "leave offsets to the host")
		w.close(l)
		w.goesOn(cfg, x)
	})
}

// One just before the host is closed is made good then, and told by Close.
func TestUserCommitsBeforeClose(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		x := w.watch()
		w.produce(50)
		cfg := w.config(w.t.TempDir(), embedded.ExactlyOnce)
		cfg.Limits.CommitInterval = 100 * time.Millisecond // the host looks by itself every ten seconds then
		l := w.start(cfg)
		tp, _ := w.processed(l, x)
		if err := l.(committer).commitByUser(tp, 0); err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		before := l.Err() // it has looked by itself, on a slow machine
		saysWho(w.t, errors.Join(before, l.Close(ctx)), tp, 0, "committed again")
		w.goesOn(cfg, x)
	})
}

// One in a revoke, which many programs make there, is made good before the next owner comes.
func TestUserCommitsInRevoke(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		x := w.watch()
		w.produce(50)
		cfg := w.config(w.t.TempDir(), embedded.ExactlyOnce)
		cfg.Limits.CommitInterval = 100 * time.Millisecond
		l := w.start(cfg)
		w.processed(l, x)
		for _, tp := range l.Ready() {
			if err := l.(committer).commitByUser(tp, 1<<40); err != nil {
				w.t.Fatal(err)
			}
		}
		f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
		b := w.member(w.config(w.t.TempDir(), embedded.ExactlyOnce), f)
		w.stops(l, f)
		wants(w.t, l.Err(), "something other than Tidemark committed offset 1099511627776 of", "committed again")
		w.close(l)
		w.produce(50)
		eventually(w.t, 90*time.Second, "all records are counted", func() bool { return x.reached(w.seq) })
		b.leave()
		x.check(w.t, w.seq, embedded.ExactlyOnce)
	})
}

// commitFromOutside has somebody who is no member commit an offset, once the group has none.
func (w *world) commitFromOutside(tp kafka.TopicPartition, offset int64) {
	w.t.Helper()
	cl := w.client()
	defer cl.Close()
	var offsets kadm.Offsets
	offsets.AddOffset(tp.Topic, tp.Partition, offset, -1)
	eventually(w.t, 90*time.Second, "the group is empty, and takes an offset", func() bool {
		got, err := kadm.NewClient(cl).CommitOffsets(context.Background(), w.app+"-group", offsets)
		return err == nil && got.Ok()
	})
}

// stops polls until the host has stopped.
func (w *world) stops(l loop, f function) {
	w.t.Helper()
	eventually(w.t, 90*time.Second, "the host stops", func() bool {
		_ = l.poll(f)
		return l.Err() != nil
	})
}

// nothing is the function of a loop whose records do not matter.
func nothing(*embedded.Task, record) error { return nil }

// goesOn starts a loop again, and expects that every record was counted once.
func (w *world) goesOn(cfg embedded.Config, x *watch) {
	w.t.Helper()
	w.produce(20)
	l := w.start(cfg)
	w.processed(l, x)
	w.close(l)
	x.check(w.t, w.seq, cfg.Guarantee)
}

// One that is found at a start stops it, and says what does such a thing and how to go on.
func TestForeignOffsetAtStart(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		x := w.watch()
		w.produce(50)
		cfg := w.config(w.t.TempDir(), embedded.ExactlyOnce)
		l := w.start(cfg)
		tp, next := w.processed(l, x)
		w.close(l)
		w.commitFromOutside(tp, next-1)
		l = w.start(cfg)
		w.stops(l, nothing)
		saysWho(w.t, l.Err(), tp, next-1, "not all committed by Tidemark", "use-store", "accept-reset", w.app+"-group", "OnConflict")
		w.close(l)
		cfg.OnConflict = task.UseStore
		w.goesOn(cfg, x)
	})
}
