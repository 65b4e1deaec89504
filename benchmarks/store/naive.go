package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// naive is one Pebble database per task, with a Get and a Set per update, and an offset
// under a key of its own at each commit. (It loses nothing only as long as it does not
// crash between two commits.)
type naive struct {
	dbs   []*pebble.DB
	cache *pebble.Cache
	value [8]byte
}

var offsetKey = []byte("offset")

func openNaive(w workload, dir string) (counter, error) {
	c := &naive{cache: pebble.NewCache(64 << 20)}
	for t := range w.tasks {
		db, err := pebble.Open(fmt.Sprintf("%s/%d", dir, t), &pebble.Options{
			Cache: c.cache, FS: vfs.Default, MemTableSize: 16 << 20, L0CompactionThreshold: 4, Logger: silent{}})
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.dbs = append(c.dbs, db)
	}
	return c, nil
}

func (c *naive) update(task int, keys [][]byte) error {
	db := c.dbs[task]
	for _, k := range keys {
		count := uint64(0)
		switch v, closer, err := db.Get(k); {
		case err == nil:
			count = binary.BigEndian.Uint64(v)
			if err := closer.Close(); err != nil {
				return err
			}
		case !errors.Is(err, pebble.ErrNotFound):
			return err
		}
		binary.BigEndian.PutUint64(c.value[:], count+1)
		if err := db.Set(k, c.value[:], pebble.NoSync); err != nil {
			return err
		}
	}
	return nil
}

func (c *naive) commit(n int64) error {
	binary.BigEndian.PutUint64(c.value[:], uint64(n))
	for _, db := range c.dbs {
		if err := db.Set(offsetKey, c.value[:], pebble.NoSync); err != nil {
			return err
		}
	}
	return nil
}

func (c *naive) sum() (sum uint64, err error) {
	for _, db := range c.dbs {
		it, err := db.NewIter(&pebble.IterOptions{UpperBound: offsetKey})
		if err != nil {
			return 0, err
		}
		for it.First(); it.Valid(); it.Next() {
			sum += binary.BigEndian.Uint64(it.Value())
		}
		if err := it.Close(); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

func (c *naive) close() error {
	var errs []error
	for _, db := range c.dbs {
		errs = append(errs, db.Flush(), db.Close())
	}
	c.cache.Unref()
	return errors.Join(errs...)
}

// silent keeps Pebble from telling what it does; what goes wrong comes back as an error.
type silent struct{}

func (silent) Infof(string, ...any)              {}
func (silent) Errorf(format string, args ...any) { slog.Error(fmt.Sprintf(format, args...)) }
func (silent) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
