package task

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

func (f *feed) Close(context.Context) error { return nil }

// A reload ends whatever transaction there is before anybody looks at the group's offsets, and
// keeps nothing of what was not committed but the open store.
func TestReload(t *testing.T) {
	d := newDoubtful(t)
	d.w.cfg.Guarantee = ExactlyOnce
	d.w.cfg.Consumer = func() (kafka.Consumer, error) { return &feed{t: t}, nil }
	d.w.tasks = []*Task{d.task}
	q := d.task.queues[0]
	d.w.queues[q.tp] = q
	q.offer(fetched(300, 200, 201))
	d.w.box.add("out", 0, []byte("k"), []byte("v"), time.UnixMilli(1), nil)
	d.w.direct.add("out", 0, []byte("k"), []byte("v"), time.UnixMilli(1), nil)
	d.w.running.records = 2
	d.w.sealed = d.iv
	d.w.results <- commitResult{interval: d.iv, err: &kafka.Error{Class: kafka.ClassInDoubt}}
	if err := d.w.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.inits != 1 {
		t.Errorf("the transactional id was initialised %d times", d.inits)
	}
	if d.w.sealed != nil || d.w.running.records != 0 || len(d.w.box.take())+len(d.w.direct.take()) != 0 {
		t.Error("something of the intervals is left")
	}
	if q.len() != 0 || q.position != 0 || q != d.w.queues[q.tp] || len(d.task.sealedAt) != 0 || d.task.moved() {
		t.Errorf("queue %+v, sealed at %v", q, d.task.sealedAt)
	}
	kv, err := d.task.store.KeyValue("counts")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok, err := kv.Get([]byte("key")); ok || err != nil {
		t.Errorf("a write that was not committed: %v, %v", ok, err)
	}
	if got := d.task.store.CommitID(); got != id(2, 0) {
		t.Errorf("the store is at %v", got)
	}
}
