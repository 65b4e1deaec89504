package processor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// rig runs one sub-topology as a task does, without Kafka.
type rig struct {
	t       *testing.T
	in      *processor.Instance
	env     processor.Env
	sub     *processor.Subtopology
	store   *statestore.TaskStore
	now     time.Time
	offset  int64
	latest  map[string]int64 // largest timestamp so far, by topic
	outputs []string
	drops   []string
	commits int
	closed  bool
}

func newRig(t *testing.T, top *processor.Topology) *rig {
	t.Helper()
	r := prepare(t, top)
	r.start()
	return r
}

// start makes the instance.
func (r *rig) start() {
	r.t.Helper()
	in, err := r.sub.NewInstance(r.env, time.Time{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.in = in
	r.t.Cleanup(r.close)
}

// prepare is a rig without an instance.
func prepare(t *testing.T, top *processor.Topology) *rig {
	t.Helper()
	if err := top.Build(); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, sub: top.Subtopologies()[0], now: time.UnixMilli(1_000_000), offset: 40, latest: map[string]int64{}}
	if len(r.sub.Stores) > 0 {
		r.store = openStore(t, r.sub.Stores)
	}
	r.env = processor.Env{
		TaskID:  processor.TaskID{Subtopology: r.sub.ID, Partition: 3},
		Stores:  r.store,
		Send:    func(o processor.Output) error { r.outputs = append(r.outputs, show(o)); return nil },
		Commit:  func() { r.commits++ },
		Now:     func() time.Time { return r.now },
		Dropped: func(node, reason string) { r.drops = append(r.drops, node+": "+reason) },
	}
	return r
}

func openStore(t *testing.T, stores []processor.Definition) *statestore.TaskStore {
	t.Helper()
	s, err := statestore.Open(t.TempDir(), statestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var specs []statestore.Spec
	for _, d := range stores {
		specs = append(specs, d.Spec())
	}
	if err := s.Register(specs...); err != nil {
		t.Fatal(err)
	}
	return s
}

func (r *rig) close() {
	if r.closed {
		return
	}
	r.closed = true
	if err := r.in.Close(); err != nil {
		r.t.Error(err)
	}
}

// send runs a record with a timestamp through the instance, at the next offset of a topic.
func (r *rig) send(topic string, key, value []byte, ms int64, headers ...kafka.Header) error {
	rec := &kafka.Record{Topic: topic, Partition: 3, Offset: r.offset, Timestamp: ms, Key: key, Value: value, Headers: headers}
	r.offset++
	sofar, ok := r.latest[topic]
	if !ok {
		sofar = -1
	}
	at, skip, err := r.in.Timestamp(rec, sofar)
	if err != nil || skip {
		return err
	}
	r.latest[topic] = max(sofar, at)
	return r.in.Process(topic, rec, at)
}

func (r *rig) mustSend(topic, key, value string, ms int64, headers ...kafka.Header) {
	r.t.Helper()
	if err := r.send(topic, []byte(key), []byte(value), ms, headers...); err != nil {
		r.t.Fatal(err)
	}
}

// expect compares what sinks wrote since the last call.
func (r *rig) expect(want ...string) {
	r.t.Helper()
	if got := strings.Join(r.outputs, "\n"); got != strings.Join(want, "\n") {
		r.t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	r.outputs = nil
}

// show writes an output as "topic key=value @ms name:value...", null as ∅.
func show(o processor.Output) string {
	s := fmt.Sprintf("%s %s=%s @%d", o.Topic, text(o.Key), text(o.Value), o.Timestamp.UnixMilli())
	for _, h := range o.Headers {
		s += fmt.Sprintf(" %s:%s", h.Key, text(h.Value))
	}
	return s
}

func text(b []byte) string {
	if b == nil {
		return "∅"
	}
	return string(b)
}
