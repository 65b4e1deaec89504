package task

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// held gives offsets, by store, in the form of the offset cache: those of the logged stores.
func (t *Task) held(offsets map[string]statestore.Offset) []offsetcache.Offset {
	var held []offsetcache.Offset
	for _, s := range t.sub.Stores {
		tp := t.changelog(s.Name)
		if _, logged := t.cfg.Topics[tp.Topic]; logged && !s.Unlogged {
			held = append(held, offsetcache.Offset{Store: s.Name, Changelog: tp, Offset: offsets[s.Name]})
		}
	}
	return held
}

// The tell functions report to the offset cache what has happened, never what is meant to.

func (t *Task) tellRestored(store string, next int64) {
	if c := t.cfg.Offsets; c != nil {
		c.Restored(t.id.String(), offsetcache.Offset{Store: store, Changelog: t.changelog(store), Offset: statestore.At(next)})
	}
}

func (t *Task) tellCleared(store string) {
	if c := t.cfg.Offsets; c != nil {
		c.Cleared(t.id.String(), offsetcache.Offset{Store: store, Changelog: t.changelog(store)})
	}
}

func (t *Task) tellCommitted() {
	if c := t.cfg.Offsets; c != nil {
		c.Committed(t.id.String(), t.held(t.store.CommittedOffsets()))
	}
}

func (t *Task) tellRunning() {
	if c := t.cfg.Offsets; c != nil {
		t.tellCommitted()
		c.Running(t.id.String())
	}
}

// closeStore records that this process had the task until now, closes the store and tells
// what is left on the disk: after a failure only what was synced.
func (t *Task) closeStore() error {
	if t.cfg.Owner != "" && t.store.Err() == nil {
		if err := t.store.StampOwner(statestore.Owner{ProcessID: t.cfg.Owner, Last: time.Now()}); err != nil {
			t.cfg.Logger.Warn("the directory does not say who had the task last", "task", t.id.String(), "error", err)
		}
	}
	committed, durable := t.held(t.store.CommittedOffsets()), t.held(t.store.DurableOffsets())
	failed := t.store.Err()
	err := closeStore(t.cfg, t.id, t.store)
	if c := t.cfg.Offsets; c != nil {
		if err == nil && failed == nil {
			c.Closed(t.id.String(), committed)
		} else {
			c.Durable(t.id.String(), durable)
			c.ClosedDirty(t.id.String())
		}
	}
	if err != nil {
		return fmt.Errorf("task %v: close store: %w", t.id, err)
	}
	return nil
}

// closeStore closes a task's store and says so to whoever opened it.
func closeStore(cfg *Config, id processor.TaskID, store *statestore.TaskStore) error {
	failed := store.Err()
	err := store.Close()
	failpoint.Hit("store-closed")
	if cfg.StoreClosed != nil {
		cfg.StoreClosed(id, errors.Join(failed, err))
	}
	return err
}
