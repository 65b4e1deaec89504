package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tidemark-streams/tidemark/statestore"
)

// tidemark is one task store per task. Each interval is sealed, committed and released on
// the loop's goroutine, so that all of its CPU time is this workload's.
type tidemark struct {
	resources *statestore.Resources
	stores    []*statestore.TaskStore
	counts    []*statestore.KeyValue
	prefetch  bool
	memTable  int
	value     [8]byte
}

// openTidemark opens the stores with a budget for all tasks together.
func openTidemark(w workload, dir string, budget int, prefetch bool) (counter, error) {
	r, err := statestore.NewResources(statestore.ResourceOptions{CacheBytes: int64(budget)})
	if err != nil {
		return nil, err
	}
	c := &tidemark{resources: r, prefetch: prefetch, memTable: w.memTable}
	for t := range w.tasks {
		if err := c.open(fmt.Sprintf("%s/%d", dir, t), max(1, budget/w.tasks)); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *tidemark) open(dir string, cacheBytes int) error {
	s, err := statestore.Open(dir, statestore.Options{Resources: c.resources, CacheBytes: cacheBytes, MemTableBytes: c.memTable,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	c.stores = append(c.stores, s)
	if err := s.Register(statestore.Spec{Name: "counts", Kind: statestore.KindKeyValue}); err != nil {
		return err
	}
	kv, err := s.KeyValue("counts")
	if err != nil {
		return err
	}
	c.counts = append(c.counts, kv)
	return nil
}

func (c *tidemark) update(task int, keys [][]byte) error {
	kv := c.counts[task]
	if c.prefetch {
		if err := kv.Prefetch(keys); err != nil {
			return err
		}
	}
	for _, k := range keys {
		v, _, ok, err := kv.Get(k)
		if err != nil {
			return err
		}
		count := uint64(1)
		if ok {
			count += binary.BigEndian.Uint64(v)
		}
		binary.BigEndian.PutUint64(c.value[:], count)
		if err := kv.Put(k, c.value[:], 0); err != nil {
			return err
		}
	}
	return nil
}

func (c *tidemark) commit(n int64) error {
	for t, s := range c.stores {
		x, err := s.Seal(statestore.Progress{
			ID: statestore.CommitID{Epoch: 1, Number: n}, StreamTime: n,
			Positions: []statestore.Position{{Topic: "words", Partition: int32(t), Next: n}}})
		if err != nil {
			return err
		}
		if err := s.Commit(x, map[string]statestore.Offset{"counts": statestore.At(n)}); err != nil {
			return err
		}
		s.Release(x)
	}
	return nil
}

func (c *tidemark) sum() (sum uint64, err error) {
	for _, kv := range c.counts {
		for e, err := range kv.All() {
			if err != nil {
				return 0, err
			}
			sum += binary.BigEndian.Uint64(e.Value)
		}
	}
	return sum, nil
}

func (c *tidemark) close() error {
	var errs []error
	for _, s := range c.stores {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.resources.Close())...)
}
