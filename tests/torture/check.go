package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// result says how much was compared.
type result struct{ inputs, ledgers, tallies, repeated, changes int }

func (r result) String() string {
	return fmt.Sprintf("%d inputs, %d and %d outputs (%d repeated), %d changelog records: all as the oracle says", r.inputs, r.ledgers, r.tallies, r.repeated, r.changes)
}

// check reads all topics and stores, and compares them with the oracle.
func (w *world) check(ctx context.Context) (r result, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var p problems
	in, err := w.read(ctx, w.names.in())
	if err != nil {
		return r, err
	}
	truths := make([]*truth, partitions)
	groups := map[string]string{}
	for n := range truths {
		truths[n] = recompute(int32(n), in[n])
		r.inputs += len(in[n])
		for g, tally := range truths[n].groups {
			groups[g] = addTallies(groups[g], tally)
		}
	}
	if err := errors.Join(w.checkLedgers(ctx, &p, truths, &r), w.checkTallies(ctx, &p, groups, &r), w.checkState(ctx, &p, truths, groups, &r)); err != nil {
		return r, err
	}
	return r, p.err()
}

func (w *world) exactly() bool { return w.o.guarantee == "exactly-once" }

// checkLedgers: a key is in the same partition of input and output.
func (w *world) checkLedgers(ctx context.Context, p *problems, truths []*truth, r *result) error {
	outs, err := w.outputs(ctx, w.names.ledgers())
	if err != nil {
		return err
	}
	for n, got := range outs {
		r.ledgers += len(got)
		source := kafka.TopicPartition{Topic: w.names.in(), Partition: int32(n)}
		r.repeated += judge(p, fmt.Sprint("ledgers-", n), w.exactly(), truths[n].order, truths[n].lines, got, w.committedAt(source))
	}
	return nil
}

// committedAt gives a function that tells an offset below which all was committed at a time. There are few
// such times, those at which lives began.
func (w *world) committedAt(tp kafka.TopicPartition) func(at int64) int64 {
	known := map[int64]int64{}
	return func(at int64) int64 {
		n, ok := known[at]
		if !ok {
			n = w.watch.least(tp, at)
			known[at] = n
		}
		return n
	}
}

// checkTallies: in which order the lines of a group came only the repartition topic knew, and
// that is purged. But each had a number: those of a group are 1 to its count, and the same
// source offset has the same one whoever counts it.
func (w *world) checkTallies(ctx context.Context, p *problems, groups map[string]string, r *result) error {
	if w.o.single {
		return nil
	}
	outs, err := w.outputs(ctx, w.names.tallies())
	if err != nil {
		return err
	}
	last := map[string]string{}
	for n, got := range outs {
		r.tallies += len(got)
		want, order := map[int64]string{}, []int64{}
		for _, o := range got {
			if _, ok := want[o.source]; !ok {
				want[o.source] = o.key + " " + o.rest
				order = append(order, o.source)
			}
		}
		if !w.exactly() {
			slices.Sort(order)
		}
		source := kafka.TopicPartition{Topic: w.names.app + "-groups-repartition", Partition: int32(n)}
		r.repeated += judge(p, fmt.Sprint("tallies-", n), w.exactly(), order, want, got, w.committedAt(source))
		if !slices.IsSorted(order) {
			p.add("output out of order", "tallies-%d", n)
		}
		for _, offset := range order {
			var key, tally string
			var partition, at, count int64
			if _, err := fmt.Sscanf(want[offset], "%s %d %d %d %s", &key, &partition, &at, &count, &tally); err != nil {
				return fmt.Errorf("tally %q: %w", want[offset], err)
			}
			var before int64
			_, _ = fmt.Sscan(last[key], &before) // the first has none before it
			if count != before+1 {
				p.add("tally", "tallies-%d: %q comes after %q", n, want[offset], last[key])
			}
			last[key] = fmt.Sprintf("%d %s", count, tally)
		}
	}
	compareMaps(p, "last tallies", last, groups)
	return nil
}

func (w *world) outputs(ctx context.Context, topic string) ([][]output, error) {
	records, err := w.read(ctx, topic)
	out := make([][]output, len(records))
	for n := range records {
		for _, r := range records[n] {
			o, perr := parseOutput(r)
			err = errors.Join(err, perr)
			out[n] = append(out[n], o)
		}
	}
	return out, err
}

// checkState compares, for each task, the stores on the disk of the process that was stopped last,
// their changelogs, and the oracle.
func (w *world) checkState(ctx context.Context, p *problems, truths []*truth, groups map[string]string, r *result) error {
	subs := [][]string{{"ledger", "latest", "visits", "history"}, {"tally"}}
	if w.o.single {
		subs = [][]string{{"ledger"}}
	}
	for sub, stores := range subs {
		for n := range partitions {
			got, err := w.readStores(p, fmt.Sprintf("%d_%d", sub, n))
			if err != nil {
				return err
			}
			for _, name := range stores {
				compareMaps(p, fmt.Sprintf("store %s of task %d_%d", name, sub, n), got[name], w.want(name, n, truths[n], groups))
			}
		}
		for _, name := range stores {
			logs, err := w.read(ctx, task.ChangelogTopic(w.names.app, name))
			if err != nil {
				return err
			}
			for n, records := range logs {
				r.changes += len(records)
				want := w.want(name, n, truths[n], groups)
				if name == "history" {
					want = truths[n].visits() // the log has the versions, but not until when they are valid
				}
				compareMaps(p, fmt.Sprintf("changelog %s-%d", name, n), replay(name, records), want)
			}
		}
	}
	return nil
}

// want gives what a store must hold in a partition.
func (w *world) want(name string, n int, t *truth, groups map[string]string) map[string]string {
	switch name {
	case "ledger":
		return t.ledger
	case "latest":
		return t.latest
	case "visits":
		return t.visits()
	case "history":
		return t.history()
	}
	mine := map[string]string{}
	for g, tally := range groups {
		if kafka.Partition([]byte(g), partitions) == int32(n) {
			mine[g] = tally
		}
	}
	return mine
}

// replay gives what the changelog of a store says in the end. A window's key holds its start, and a
// version is known by its record's timestamp.
func replay(store string, records []record) map[string]string {
	m := map[string]string{}
	for _, r := range records {
		key := r.key
		switch {
		case store == "visits" && len(key) > 12:
			at := len(key) - 12 // start and sequence number
			key = fmt.Sprint(key[:at], "@", int64(binary.BigEndian.Uint64([]byte(key[at:]))))
		case store == "history":
			key = fmt.Sprint(key, "@", r.ms)
		}
		if r.null {
			delete(m, key)
		} else {
			m[key] = r.value
		}
	}
	return m
}

// readStores reads all stores of a task out of p1's disk.
func (w *world) readStores(p *problems, id string) (map[string]map[string]string, error) {
	s, err := statestore.Open(filepath.Join(w.o.dir, "p1", w.names.app, id), statestore.Options{})
	if err != nil {
		return nil, err
	}
	all, err := readAll(p, s, id)
	for _, at := range s.Positions() {
		w.watch.mu.Lock()
		c := w.watch.last[kafka.TopicPartition{Topic: at.Topic, Partition: at.Partition}]
		w.watch.mu.Unlock()
		if c.offset != at.Next || c.id != s.CommitID() {
			p.add("store beside the group", "task %s is at %d with commit %v, the group at %d with %v", id, at.Next, s.CommitID(), c.offset, c.id)
		}
	}
	return all, errors.Join(err, s.Close())
}

// readAll gives the content of all stores of a task, by store.
func readAll(p *problems, s *statestore.TaskStore, id string) (map[string]map[string]string, error) {
	states, err := s.Stores()
	if err != nil {
		return nil, err
	}
	var specs []statestore.Spec
	for _, state := range states {
		if !state.Complete {
			p.add("store not complete", "%s of task %s", state.Recorded.Name, id)
		}
		specs = append(specs, state.Recorded)
	}
	if err := s.Register(specs...); err != nil {
		return nil, err
	}
	all := map[string]map[string]string{}
	for _, spec := range specs {
		var err error
		if all[spec.Name], err = readStore(s, spec); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readStore gives the content of a store, in the oracle's form.
func readStore(s *statestore.TaskStore, spec statestore.Spec) (map[string]string, error) {
	m := map[string]string{}
	switch spec.Kind {
	case statestore.KindWindow:
		windows, err := s.Window(spec.Name)
		if err != nil {
			return nil, err
		}
		for e, err := range windows.All() {
			if err != nil {
				return nil, err
			}
			m[fmt.Sprint(string(e.Key), "@", e.Start)] = string(e.Value)
		}
	case statestore.KindVersioned:
		versions, err := s.Versioned(spec.Name)
		if err != nil {
			return nil, err
		}
		for e, err := range versions.All() {
			if err != nil {
				return nil, err
			}
			to := e.To
			if e.Current {
				to = -1
			}
			m[versionName(string(e.Key), e.From, to)] = string(e.Value)
		}
	default:
		kv, err := s.KeyValue(spec.Name)
		if err != nil {
			return nil, err
		}
		for e, err := range kv.All() {
			if err != nil {
				return nil, err
			}
			m[string(e.Key)] = string(e.Value)
		}
	}
	return m, nil
}

// read gives all committed records of a topic, by partition.
func (w *world) read(ctx context.Context, topic string) ([][]record, error) {
	ends, err := w.adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	starts, err := w.adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := make([][]record, partitions)
	left := map[int32]int64{}
	from := map[int32]kgo.Offset{}
	for n := range int32(partitions) {
		end, ok := ends.Lookup(topic, n)
		start, ok2 := starts.Lookup(topic, n)
		if !ok || !ok2 || end.Err != nil || start.Err != nil {
			return nil, fmt.Errorf("read %s-%d: %w", topic, n, errors.Join(end.Err, start.Err))
		}
		if start.Offset < end.Offset {
			left[n], from[n] = end.Offset, kgo.NewOffset().At(start.Offset)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.broker.addr), kgo.Dialer(w.broker.dial), kgo.DisableClientMetrics(), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := errors.Join(fetches.Err0(), ctx.Err()); err != nil {
			return nil, fmt.Errorf("read %s, %v not reached: %w", topic, left, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out[r.Partition] = append(out[r.Partition], record{r.Offset, string(r.Key), string(r.Value), r.Value == nil, r.Timestamp.UnixMilli()})
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return out, nil
}
