package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/statestore"
)

// moveStores brings the data of all stores to migrate into the task's store, and sets the
// old databases aside when all of it is on the disk.
func (t *Task) moveStores(ctx context.Context, o Options) error {
	var moves []*Entry
	for i := range t.Entries {
		if t.Entries[i].Action == ActionMigrate {
			moves = append(moves, &t.Entries[i])
		}
	}
	if len(moves) > 0 {
		if t.noSpace != nil {
			return t.noSpace
		}
		if err := t.importAll(ctx, moves, o); err != nil {
			return err
		}
	}
	return t.setDataAside(moves, o)
}

func (t *Task) importAll(ctx context.Context, moves []*Entry, o Options) (err error) {
	s, err := statestore.Open(t.dir, statestore.Options{Resources: o.Resources, Logger: o.Logger, MemTableBytes: 16 << 20, CacheBytes: -1})
	if err != nil {
		return err
	}
	// Close flushes: the next open replays nothing, and what was imported is in tables.
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := registerAll(s, moves, o); err != nil {
		return err
	}
	positions := t.positionsOf(moves)
	for _, e := range moves {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := t.importStore(ctx, s, *e, positions, o)
		if bad, ok := errors.AsType[*badDatabase](err); ok {
			err = t.giveUp(s, e, bad, o)
		}
		if err != nil {
			return fmt.Errorf("store %q: %w", e.Store, err)
		}
	}
	return nil
}

// registerAll registers the new stores and every store that the database knows: a store
// that is left out would lose its offset.
func registerAll(s *statestore.TaskStore, moves []*Entry, o Options) error {
	known, err := s.Stores()
	if err != nil {
		return err
	}
	var specs []statestore.Spec
	for _, k := range known {
		specs = append(specs, k.Recorded)
	}
	for _, e := range moves {
		if !slices.ContainsFunc(specs, func(p statestore.Spec) bool { return p.Name == e.Store }) {
			specs = append(specs, specOf(*e, o))
		}
	}
	return s.Register(specs...)
}

func specOf(e Entry, o Options) statestore.Spec {
	p := o.Specs[e.Store]
	p.Kind = cmp.Or(p.Kind, statestore.KindKeyValue)
	p.Name, p.Changelog = e.Store, cmp.Or(p.Changelog, e.Topic)
	return p
}

// positionsOf gives for each source partition the smallest position that a moved store has:
// positions are a lower bound, and the task has one for all its stores.
func (t *Task) positionsOf(moves []*Entry) []statestore.Position {
	type partition struct {
		topic string
		n     int32
	}
	moved := map[string]bool{}
	for _, e := range moves {
		moved[e.Store] = true
	}
	var positions []statestore.Position
	places := map[partition]int{}
	for _, p := range t.Positions {
		if !moved[p.Store] {
			continue
		}
		at, known := places[partition{p.Topic, p.Partition}]
		if !known {
			places[partition{p.Topic, p.Partition}] = len(positions)
			positions = append(positions, statestore.Position{Topic: p.Topic, Partition: p.Partition, Next: p.NextOffset})
			continue
		}
		positions[at].Next = min(positions[at].Next, p.NextOffset)
	}
	return positions
}

// importStore: what an interrupted attempt has left is cleared, the data is loaded without
// an offset, and one last batch, synced, gives the offset and records the import.
func (t *Task) importStore(ctx context.Context, s *statestore.TaskStore, e Entry, positions []statestore.Position, o Options) error {
	if slices.ContainsFunc(s.Imports(), func(x statestore.Import) bool { return x.Store == e.Store }) {
		return nil
	}
	source, from, err := t.openSource(e.Store, o)
	if err != nil {
		return err
	}
	err = s.Clear(e.Store)
	failpoint.Hit("migration-cleared")
	if err == nil {
		err = load(ctx, s, e.Store, source, specOf(e, o).Kind, func(p Progress) {
			p.Task, p.FileBytes = t.Task, from.bytes
			o.progress(p)
		})
	}
	if err = errors.Join(err, source.Close()); err != nil {
		return err
	}
	failpoint.Hit("migration-loaded")
	var offset statestore.Offset
	if e.State == StateAt && e.Topic != "" {
		offset = statestore.At(*e.NextOffset)
	}
	if err := s.RecordImport(statestore.Import{Store: e.Store, Source: from.name, Time: time.Now(), Data: t.written(e.Store)}, offset, positions); err != nil {
		return err
	}
	failpoint.Hit("migration-recorded")
	return nil
}

// origin is where the data of a store lies.
type origin struct {
	name  string // relative to the task directory
	bytes int64
}

func (t *Task) openSource(store string, o Options) (Source, origin, error) {
	dir, from := t.dir, origin{name: "source of " + store}
	d, onDisk := t.storeDir(store)
	if onDisk {
		dir = d.path
		if name, err := filepath.Rel(t.dir, dir); err == nil {
			from.name = filepath.ToSlash(name)
		}
		from.bytes, _ = sizeOf(dir) // for the progress only
	}
	if open := o.Sources[store]; open != nil {
		s, err := open(dir)
		return s, from, err
	}
	if !onDisk {
		return nil, from, fmt.Errorf("%s holds no data of it", t.dir)
	}
	if d.goka != nil {
		s, err := openGoka(dir)
		if err != nil { // a nil *gokaSource would be a Source
			return nil, from, err
		}
		return s, from, nil
	}
	s, err := statestore.OpenForeign(dir, statestore.ReadOptions{Resources: o.Resources, Logger: o.Logger})
	if err != nil {
		return nil, from, badOr(err)
	}
	return foreignSource{s}, from, nil
}

// setDataAside renames the databases of stores that were taken over, now or by an attempt
// that was interrupted.
func (t *Task) setDataAside(moves []*Entry, o Options) error {
	for _, d := range t.stores {
		moved := slices.ContainsFunc(moves, func(e *Entry) bool { return e.Store == d.store && e.Action == ActionMigrate })
		if (moved || t.settled[d.store].imported) && d.readable() {
			if _, err := setAside(d.path, migratedSuffix); err != nil {
				return err
			}
			failpoint.Hit("migration-data-renamed")
		}
		if d.goka != nil && d.goka.damaged() {
			renamed, err := quarantine(d.path, time.Now())
			if err != nil {
				return err
			}
			o.logger().Warn("a legacy database was quarantined, its store is restored from the changelog",
				"task", t.Task, "store", d.store, "now", renamed, "error", d.goka.cause)
			failpoint.Hit("migration-data-quarantined")
		}
	}
	return nil
}
