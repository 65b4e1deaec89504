package task

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// deleting is an admin that notes what it is to delete.
type deleting struct {
	kafka.Admin
	asked chan map[kafka.TopicPartition]int64
	err   error
}

func (a *deleting) DeleteRecords(_ context.Context, before map[kafka.TopicPartition]int64) error {
	a.asked <- maps.Clone(before)
	return a.err
}

// newPurging is a worker with a task that reads a topic of the user's and an internal one.
func newPurging(t *testing.T) (*Worker, *Task, *deleting, *time.Time) {
	t.Helper()
	top := processor.NewTopology()
	top.AddInternalTopic(processor.InternalTopic{Name: "between", Partitions: 1})
	processor.AddSource(top, "source", serde.String, serde.String, "in", "between")
	processor.AddSink(top, "sink", "out", serde.String, serde.String, "source")
	if err := top.Build(); err != nil {
		t.Fatal(err)
	}
	dir, now, admin := t.TempDir(), time.UnixMilli(1), &deleting{asked: make(chan map[kafka.TopicPartition]int64, 9)}
	cfg := Config{AppID: "app", Topology: top, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }, Clients: Clients{Admin: admin},
		Topics: map[string]kafka.Topic{"in": {Name: "in", Partitions: 1}, "app-between": {Name: "app-between", Partitions: 1}, "out": {Name: "out", Partitions: 1}},
		OpenStore: func(processor.TaskID) (*statestore.TaskStore, error) {
			return statestore.Open(dir, statestore.Options{SyncInterval: time.Hour})
		}}
	w := NewWorker(cfg, nil)
	task, err := newTask(&w.cfg, top.Subtopologies()[0], processor.TaskID{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.stopPurge()
		_ = task.close()
	})
	w.tasks = []*Task{task}
	return w, task, admin, &now
}

// commitAt lets the store of a task stand at positions.
func commitAt(t *testing.T, task *Task, number, next int64) {
	t.Helper()
	x, err := task.store.Seal(statestore.Progress{ID: id(1, number), Positions: []statestore.Position{{Topic: "in", Next: next}, {Topic: "app-between", Next: next}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := task.store.Commit(x, nil); err != nil {
		t.Fatal(err)
	}
	task.store.Release(x)
}

// Of the internal topic is deleted what was read and is on the disk, of the user's nothing.
func TestPurge(t *testing.T) {
	w, task, admin, now := newPurging(t)
	between := kafka.TopicPartition{Topic: "app-between"}
	purge := func(wait time.Duration, want int64) {
		t.Helper()
		*now = now.Add(wait)
		w.purge(t.Context())
		if busy := w.purging.busy; busy != (want > 0) {
			t.Fatalf("busy: %v", busy)
		}
		if want == 0 {
			return
		}
		if got := <-admin.asked; len(got) != 1 || got[between] != want {
			t.Errorf("deleted before %v, want %d", got, want)
		}
		w.purged(<-w.purging.done)
		w.purging.busy = false
	}
	purge(0, 0)
	commitAt(t, task, 1, 10)
	purge(time.Minute, 0) // it is not on the disk
	if err := task.store.Sync(); err != nil {
		t.Fatal(err)
	}
	purge(time.Minute, 10)
	purge(time.Minute, 0) // nothing new
	commitAt(t, task, 2, 20)
	if err := task.store.Sync(); err != nil {
		t.Fatal(err)
	}
	purge(time.Second, 0) // too early
	admin.err = &kafka.Error{Class: kafka.ClassTimeout}
	purge(time.Minute, 20)
	purge(time.Minute, 20) // again, since it failed
	admin.err = &kafka.Error{Class: kafka.ClassUnauthorized}
	purge(time.Minute, 20)
	purge(time.Minute, 0) // it never will
}

// A purge that hangs keeps nothing up.
func TestPurgeHangs(t *testing.T) {
	w, task, _, now := newPurging(t)
	commitAt(t, task, 1, 10)
	if err := task.store.Sync(); err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	w.cfg.Admin = hangingDelete{asked: asked}
	*now = now.Add(time.Minute)
	w.purge(t.Context())
	<-asked
	*now = now.Add(time.Hour)
	w.purge(t.Context())
	if !w.purging.busy {
		t.Error("not busy")
	}
	w.stopPurge()
}

type hangingDelete struct {
	kafka.Admin
	asked chan struct{}
}

func (a hangingDelete) DeleteRecords(ctx context.Context, _ map[kafka.TopicPartition]int64) error {
	close(a.asked)
	<-ctx.Done()
	return ctx.Err()
}
