package statestore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tidemark-streams/tidemark/statestore/internal/pebbledb"
	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

// Open opens the database in dir, and makes directory (mode 0700) and database when there
// is none. Errors wrap [ErrCorrupt], [ErrLocked] or [ErrNewerFormat] where they apply.
func Open(dir string, o Options) (*TaskStore, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &TaskStore{dir: dir, o: o.withDefaults(), handles: map[string]*KeyValue{}}
	s.log = s.o.Logger.With("dir", dir)
	s.resources = s.o.Resources
	if s.resources == nil {
		s.resources, s.private = privateResources(), true
	}
	if err := s.open(); err != nil {
		if s.private {
			s.resources.r.Close()
		}
		return nil, fmt.Errorf("open task store %s: %w", dir, err)
	}
	s.table = table.New(s.o.CacheBytes)
	s.sync.init(s)
	return s, nil
}

func (s *TaskStore) open() error {
	fs := s.o.FS
	if err := makeDir(fs, s.dir); err != nil {
		return err
	}
	names, err := fs.List(s.dir)
	if err != nil {
		return err
	}
	unfinished := slices.Contains(names, creatingName)
	exists := slices.ContainsFunc(names, isDatabaseFile)
	switch {
	case exists && !unfinished:
		return s.openExisting()
	case exists:
		err := s.openExisting()
		if err == nil {
			return s.endCreation() // it was finished but for this
		}
		if errors.Is(err, ErrLocked) || errors.Is(err, ErrNewerFormat) {
			return err
		}
		if err := s.removeUnfinished(); err != nil {
			return err
		}
	}
	return s.create()
}

func (s *TaskStore) openExisting() error {
	if err := s.openDatabase(false); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

func (s *TaskStore) openDatabase(create bool) error {
	db, err := pebbledb.Open(s.dir, pebbledb.Options{
		FS:           s.o.FS,
		Resources:    s.resources.r,
		Log:          s.log,
		MemTableSize: uint64(s.o.MemTableBytes),
		Create:       create,
		WrapFailure:  s.failure,
		CloseTimeout: s.o.closeTimeout,
	})
	// Pebble has no mark for its lock; the text and EAGAIN are what it gives.
	if err != nil && (errors.Is(err, syscall.EAGAIN) || strings.Contains(err.Error(), "lock held by current process")) {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	if err != nil {
		return err
	}
	s.db = db
	r := db.Replay()
	s.opened.ReplayedKeys, s.opened.ReplayedBatches, s.opened.ReplayedBytes = r.Keys, r.Batches, r.Bytes
	return nil
}

// load reads the metadata. What Open finds is on the disk: replayed logs were flushed.
func (s *TaskStore) load() error {
	b, err := s.readMeta(keyFormat)
	if err != nil {
		return err
	}
	if b == nil {
		return fmt.Errorf("%w: the database has no format record", ErrCorrupt)
	}
	f, err := decodeFormat(b)
	if err != nil {
		return err
	}
	copy(s.opened.ID[:], f.GetStoreId())
	c := &catalog{nextID: 1, ids: map[string]uint32{}, specs: map[uint32]Spec{}}
	if b, err = s.readMeta(keyCatalog); err != nil {
		return err
	}
	if b != nil {
		if c, err = decodeCatalog(b); err != nil {
			return err
		}
	}
	p := &progress{streamTime: NoStreamTime, stores: map[uint32]storeProgress{}}
	if b, err = s.readMeta(keyCommit); err != nil {
		return err
	}
	if b != nil {
		if p, err = decodeCommit(b); err != nil {
			return err
		}
	}
	for id := range p.stores {
		if _, ok := c.specs[id]; !ok {
			return fmt.Errorf("%w: commit record: store %d is not in the catalog", ErrCorrupt, id)
		}
	}
	s.catalog.Store(c)
	s.committed.Store(p)
	s.durable.Store(p)
	return nil
}

// readMeta gives a copy of a metadata record, nil when there is none.
func (s *TaskStore) readMeta(key []byte) (record []byte, err error) {
	err = s.db.Read("read metadata", func(db *pebble.DB) error {
		v, c, err := db.Get(key)
		if errors.Is(err, pebble.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		record = append([]byte{}, v...)
		return c.Close()
	})
	return record, err
}

// isEmpty tells whether the database has no key of the store.
func (s *TaskStore) isEmpty(id uint32) (empty bool, err error) {
	lower, upper := storeBounds(id)
	err = s.db.Read("look into store", func(db *pebble.DB) error {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		if err != nil {
			return err
		}
		empty = !it.First()
		return errors.Join(it.Error(), it.Close())
	})
	return empty, err
}
