package streamstest

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

func (d *Driver) open(topology *streams.Topology) error {
	whole := topology.Undivided()
	for _, name := range whole.Sources {
		d.topic(topology, name).reads = true
	}
	for _, name := range whole.Sinks {
		d.topic(topology, name).writes = true
	}
	var err error
	if d.store, err = statestore.Open("driver", statestore.Options{Engine: statestore.Memory, Logger: d.cfg.Logger}); err != nil {
		return err
	}
	var specs []statestore.Spec
	var defs []processor.StoreDef
	for _, def := range whole.Stores {
		spec := def.Spec()
		if !def.Unlogged {
			spec.Changelog = task.ChangelogTopic(d.cfg.AppID, def.Name)
		}
		specs, defs = append(specs, spec), append(defs, declared(def))
	}
	if err := d.store.Register(specs...); err != nil {
		return err
	}
	if d.stores, err = processor.NewStores("the test", d.store, defs...); err != nil {
		return err
	}
	d.stores.OnDrop(func(reason string) { d.drop("the test", reason) })
	env := processor.Env{Stores: d.store, Send: d.take, Commit: func() { d.asked = true }, Now: d.Now, Dropped: d.drop,
		Caching: processor.Caching{All: d.cfg.Caching, MaxEntries: d.cfg.CachingMaxEntries}}
	if x := d.cfg.TimestampExtractor; x != nil {
		env.ExtractTimestamp = func(r *kafka.Record, partitionTime time.Time) (int64, error) {
			at, err := x(r, partitionTime)
			return at.UnixMilli(), err
		}
	}
	if d.inst, err = whole.NewInstance(env, time.Time{}); err != nil {
		return err
	}
	return d.end(nil) // Init may forward and write
}

// declared makes a StoreDef of a definition.
type declared processor.Definition

func (d declared) Definition() processor.Definition { return processor.Definition(d) }

func (d *Driver) close() error {
	var errs []error
	if d.inst != nil {
		errs = append(errs, d.inst.Close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	return errors.Join(errs...)
}

// run processes what waits, the record with the smallest timestamp among the topics' first ones
// at a time, each with a commit.
func (d *Driver) run() error {
	if d.batching > 0 {
		return nil
	}
	if err := d.usable(); err != nil {
		return err
	}
	for {
		t, err := d.next()
		if err != nil {
			return d.fail(err)
		}
		if t == nil {
			return nil
		}
		r := t.waiting[0]
		if err := d.one(t, &r); err != nil {
			return d.fail(err)
		}
		t.pop()
		if err := d.settle(); err != nil {
			return d.fail(err)
		}
	}
}

// next chooses a topic; nil: nothing waits.
func (d *Driver) next() (*topic, error) {
	var best *topic
	for _, t := range d.reads {
		if err := d.readHead(t); err != nil {
			return nil, err
		}
		if len(t.waiting) > 0 && (best == nil || t.headTime < best.headTime) {
			best = t
		}
	}
	return best, nil
}

// readHead finds the timestamp of the first record that waits, and drops those that have none.
func (d *Driver) readHead(t *topic) error {
	for !t.headKnown && len(t.waiting) > 0 {
		r := t.waiting[0]
		ms, skip, err := d.timestamp(t, &r)
		if err != nil {
			return recordError(&r, err)
		}
		if !skip {
			t.headTime, t.headKnown = ms, true
			return nil
		}
		d.drop(t.name, "negative timestamp")
		t.headTime = -1
		t.pop()
	}
	return nil
}

// timestamp calls what may be the user's code.
func (d *Driver) timestamp(t *topic, r *kafka.Record) (ms int64, skip bool, err error) {
	defer caught("extract timestamp", &err)
	return d.inst.Timestamp(r, t.partitionTime)
}

func (d *Driver) one(t *topic, r *kafka.Record) error {
	err := d.process(t, r)
	if err != nil {
		return recordError(r, fmt.Errorf("node %s: %w", d.inst.At(), err))
	}
	return nil
}

func (d *Driver) process(t *topic, r *kafka.Record) (err error) {
	defer caught("process", &err)
	return d.inst.Process(t.name, r, t.headTime)
}

// punctuate runs the punctuations of the wall clock that are due.
func (d *Driver) punctuate() (err error) {
	defer caught("punctuate", &err)
	if at, ok := d.inst.NextWallClock(); !ok || d.now.Before(at) {
		return nil
	}
	return d.inst.PunctuateWallClock(d.now)
}

// caught makes an error of a panic in a user's code.
func caught(what string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: panic: %v\n%s", what, p, debug.Stack())
	}
}

func recordError(r *kafka.Record, err error) error {
	return fmt.Errorf("process record %s-%d@%d: %w", r.Topic, r.Partition, r.Offset, err)
}

// end completes what was not caused by a record; err is how that ended.
func (d *Driver) end(err error) error {
	if err == nil {
		err = d.settle()
	}
	if err != nil {
		return d.fail(err)
	}
	return d.run()
}

// fail makes the driver useless (D2).
func (d *Driver) fail(err error) error {
	d.err = fmt.Errorf("test driver: %w", err)
	d.pending = nil
	d.store.Drop()
	return d.err
}

// settle ends a record: it is committed if it is to be, and its outputs are let go.
func (d *Driver) settle() error {
	if d.asked || !d.cfg.ManualCommit {
		d.asked = false
		if err := d.commit(); err != nil {
			return err
		}
	}
	for _, w := range d.pending {
		if w.topic.reads {
			w.topic.put(w.record)
		}
		w.topic.out = append(w.topic.out, w.record)
	}
	d.pending = d.pending[:0]
	return nil
}

// flush has tables with caching send on what they hold back.
func (d *Driver) flush() (err error) {
	defer caught("send what tables hold back", &err)
	if err := d.inst.Flush(); err != nil {
		return fmt.Errorf("send what tables hold back: %w", err)
	}
	return nil
}

// commit commits as a task does.
func (d *Driver) commit() error {
	if err := d.flush(); err != nil {
		return err
	}
	d.number++
	p := statestore.Progress{ID: statestore.CommitID{Epoch: 1, Number: d.number}, StreamTime: statestore.NoStreamTime}
	if at := d.inst.StreamTime(); !at.IsZero() {
		p.StreamTime = at.UnixMilli()
	}
	for _, t := range d.reads {
		if !t.reads {
			continue // it is only written
		}
		p.Positions = append(p.Positions, statestore.Position{Topic: t.real, Next: t.position})
	}
	sealed, err := d.store.Seal(p)
	if err != nil {
		return err
	}
	if err := d.store.Commit(sealed, nil); err != nil {
		return err
	}
	d.store.Release(sealed)
	return nil
}
