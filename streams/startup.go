package streams

import (
	"context"

	"github.com/tidemark-streams/tidemark/internal/localstate"
	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/migration"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// readState takes over what another program left in the task directories, and then reads how
// far each task is on this host. No single directory can stop the start.
func (a *App) readState(ctx context.Context, dir *statedir.Dir, resources *statestore.Resources) (*offsetcache.Cache, error) {
	a.at("migrating the task directories")
	err := localstate.Adopt(ctx, dir, a.log, func() (migration.Options, error) {
		o := a.cfg.Migration
		o.App, o.Resources = a.cfg.AppID, resources
		o.Specs, o.Own = a.legacyStores()
		return o, nil
	})
	if err != nil {
		return nil, err
	}
	a.at("reading the task directories")
	cache, scan, err := localstate.Read(ctx, dir, resources, a.log, a.cfg.ScanListener)
	if err != nil {
		return nil, err
	}
	if scan.Unknown, err = a.unknownTasks(dir); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.offsets, a.scan = cache, scan
	a.mu.Unlock()
	return cache, nil
}

// Scan is what the reading of the task directories at start found: how many, how long it took,
// every directory that could not be read, with the reason, and those of sub-topologies that the topology
// does not have. nil before it was done. The caller
// must not change it.
func (a *App) Scan() *offsetcache.Scan {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.scan
}

// legacyStores is what the topology says about the stores, and which the program keeps itself.
func (a *App) legacyStores() (specs map[string]statestore.Spec, own []string) {
	specs = map[string]statestore.Spec{}
	for _, sub := range a.topology.Subtopologies() {
		for _, s := range sub.Stores {
			spec := s.Spec()
			topic := a.topics[task.ChangelogTopic(a.cfg.AppID, s.Name)]
			spec.Changelog, spec.ChangelogID = topic.Name, topic.ID
			specs[s.Name] = spec
			if s.IsOwn() {
				own = append(own, s.Name)
			}
		}
	}
	return specs, own
}

// LocalOffsets tells how far each task is on this host, those that run elsewhere and have
// only a directory here included; nil before the directories were read.
func (a *App) LocalOffsets() []offsetcache.Task {
	a.mu.Lock()
	cache := a.offsets
	a.mu.Unlock()
	if cache == nil {
		return nil
	}
	return cache.Snapshot()
}
