package embedded

import (
	"context"
	"fmt"

	"github.com/tidemark-streams/tidemark/internal/localstate"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/migration"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// readState takes over what another program left in the state directory, and then reads how far each task is there.
func (h *Host) readState(ctx context.Context) (err error) {
	h.leases.Dir, h.leases.Holder, h.leases.Log = h.dir, "a host", h.log
	if err := localstate.Adopt(ctx, h.dir, h.log, func() (migration.Options, error) { return h.migration(ctx) }); err != nil {
		return err
	}
	h.offsets, h.scan, err = localstate.Read(ctx, h.dir, h.resources, h.log, h.cfg.ScanListener)
	return err
}

// migration says what the stores are. A changelog that does not exist yet has no id.
func (h *Host) migration(ctx context.Context) (migration.Options, error) {
	o := h.cfg.Migration
	o.App, o.Resources = h.cfg.App, h.resources
	logs, err := h.changelogs(ctx)
	if err != nil {
		return o, err
	}
	o.Specs = map[string]statestore.Spec{}
	for _, s := range h.cfg.Stores {
		def := s.Definition()
		spec := def.Spec()
		if t, ok := logs[def.Name]; ok {
			spec.Changelog, spec.ChangelogID = t.Name, t.ID
		}
		o.Specs[def.Name] = spec
		if def.IsOwn() {
			o.Own = append(o.Own, def.Name)
		}
	}
	return o, nil
}

// changelogs describes, by store, those that exist.
func (h *Host) changelogs(ctx context.Context) (map[string]kafka.Topic, error) {
	var names []string
	for _, s := range h.cfg.Stores {
		if def := s.Definition(); !def.Unlogged {
			names = append(names, task.ChangelogTopic(h.cfg.App, def.Name))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	all, err := h.admin.Topics(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("describe changelogs: %w", err)
	}
	logs := map[string]kafka.Topic{}
	for _, s := range h.cfg.Stores {
		name := s.Definition().Name
		if t, ok := all[task.ChangelogTopic(h.cfg.App, name)]; ok {
			logs[name] = t
		}
	}
	return logs, nil
}

// Offsets tells how far each task is on this host, also those that run elsewhere and have only a directory here. The
// id of a task ends with the number of its partition. It is for who places partitions himself; see [Host.Lags].
func (h *Host) Offsets() []offsetcache.Task { return h.offsets.Snapshot() }

// Scan is what the reading of the task directories in Open found: how many, how long it took, and every directory that could not
// be read, with the reason: its partition is restored from the changelogs. The caller must not change it.
func (h *Host) Scan() *offsetcache.Scan { return h.scan }

// Lags gives for each partition what this host would have to restore of each store to take it over; the whole changelog,
// with the reason, where it has nothing. A partition that is here lags behind nothing. There is no entry before the
// changelogs exist, which the first assignment makes.
func (h *Host) Lags(ctx context.Context) (map[int32][]offsetcache.Lag, error) {
	if err := h.Err(); err != nil {
		return nil, fmt.Errorf("lags: %w", err)
	}
	logs, err := h.changelogs(ctx)
	if err != nil {
		return nil, fmt.Errorf("lags: %w", err)
	}
	var tps []kafka.TopicPartition
	for _, t := range logs {
		for p := range t.Partitions {
			tps = append(tps, kafka.TopicPartition{Topic: t.Name, Partition: p})
		}
	}
	lags := map[int32][]offsetcache.Lag{}
	if len(tps) == 0 {
		return lags, nil
	}
	starts, err := h.admin.ListOffsets(ctx, kafka.Earliest, tps...)
	if err != nil {
		return nil, fmt.Errorf("lags: read the changelogs' ends: %w", err)
	}
	ends, err := h.admin.ListOffsets(ctx, kafka.HighWatermark, tps...)
	if err != nil {
		return nil, fmt.Errorf("lags: read the changelogs' ends: %w", err)
	}
	for _, tp := range tps {
		if _, done := lags[tp.Partition]; !done {
			lags[tp.Partition] = h.heldOf(tp.Partition, logs).Lags(func(tp kafka.TopicPartition) (offsetcache.Bounds, bool) {
				end, ok := ends[tp]
				return offsetcache.Bounds{Start: starts[tp], End: end}, ok
			})
		}
	}
	return lags, nil
}

// heldOf gives a task with an offset for every store that has a changelog, absent where this host has none.
func (h *Host) heldOf(partition int32, logs map[string]kafka.Topic) offsetcache.Task {
	held, _ := h.offsets.Lookup(processor.TaskID{Partition: partition}.String())
	all := offsetcache.Task{ID: held.ID, Latest: held.Latest}
	for _, s := range h.cfg.Stores {
		t, ok := logs[s.Definition().Name]
		if !ok || partition >= t.Partitions {
			continue
		}
		o := offsetcache.Offset{Store: s.Definition().Name, Changelog: kafka.TopicPartition{Topic: t.Name, Partition: partition}}
		for _, has := range held.Offsets {
			if has.Store == o.Store && has.Changelog == o.Changelog {
				o = has
			}
		}
		all.Offsets = append(all.Offsets, o)
	}
	return all
}

func (h *Host) openStore(id processor.TaskID) (*statestore.TaskStore, error) {
	return h.leases.Open(id.String(), func() (*statestore.TaskStore, error) {
		return statestore.Open(h.dir.TaskDir(id.String()), statestore.Options{Resources: h.resources, SyncInterval: h.cfg.SyncInterval, SyncEveryCommit: h.cfg.SyncEveryCommit, Logger: h.log})
	})
}

func (h *Host) storeClosed(id processor.TaskID, err error) { h.leases.Closed(id.String(), err) }

// keep copies a task's directory, by links, before one of its stores is emptied.
func (h *Host) keep(id processor.TaskID, store *statestore.TaskStore, reason string) (path string, made bool, err error) {
	return h.dir.Keep(id.String(), reason, store.Snapshot)
}
