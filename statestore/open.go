package statestore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/memdb"
	"github.com/tidemark-streams/tidemark/statestore/internal/pebbledb"
	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

// Open opens the database in dir, and makes directory (mode 0700) and database when there
// is none. Errors wrap [ErrCorrupt], [ErrLocked] or [ErrNewerFormat] where they apply.
func Open(dir string, o Options) (*TaskStore, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	begun := time.Now()
	s := &TaskStore{dir: dir, o: o.withDefaults(), handles: map[string]*KeyValue{}}
	if s.o.Engine == Pebble {
		s.dir = absolute(s.o.FS, dir)
	}
	s.log = s.o.Logger.With("dir", s.dir)
	s.resources = s.o.Resources
	if s.resources == nil {
		s.resources, s.private = privateResources(s.o), true
	}
	if err := s.open(); err != nil {
		if s.private {
			_ = s.resources.Close()
		}
		return nil, fmt.Errorf("open task store %s: %w; %s", s.dir, err, remedy(err))
	}
	s.opened.Time = time.Since(begun)
	s.table = table.New(0)
	s.share = s.resources.cache.join(s.o.mostCacheBytes(), s.table.Stats)
	s.Trim()
	s.sync.init(s)
	return s, nil
}

func (s *TaskStore) open() error {
	if s.o.Engine == Memory {
		return s.openInMemory()
	}
	fs := s.o.FS
	if err := makeDir(fs, s.dir); err != nil {
		return err
	}
	names, err := fs.List(s.dir)
	if err != nil {
		return err
	}
	if err := foundDamaged(fs, s.dir, names); err != nil {
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
	if err := s.checkFormat(); err != nil {
		return err
	}
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
		MemTableSize: s.memTableSize(),
		Create:       create,
		WrapFailure:  s.failure,
		CloseTimeout: s.o.closeTimeout,
		StallAfter:   s.o.stallAfter,
		HangTimeout:  s.o.hangTimeout,
	})
	if err != nil {
		return markOpen(err)
	}
	s.db = db
	r := db.Replay()
	s.opened.ReplayedKeys, s.opened.ReplayedBatches, s.opened.ReplayedBytes, s.opened.ReplayTime = r.Keys, r.Batches, r.Bytes, r.Time
	return nil
}

// openInMemory makes a new task store every time.
func (s *TaskStore) openInMemory() error {
	s.db = memdb.New(s.failure)
	s.opened.Created = true
	return errors.Join(s.writeFormat(), s.load())
}

// load reads the metadata. What Open finds is on the disk: replayed logs were flushed.
func (s *TaskStore) load() error {
	m, err := readMetadata(s.db)
	if err != nil {
		return err
	}
	if err := s.upgradeFormat(m); err != nil {
		return err
	}
	copy(s.opened.ID[:], m.format.GetStoreId())
	s.opened.CreatedAt = millisTime(m.format.GetCreatedMs())
	s.catalog.Store(m.catalog)
	s.committed.Store(m.progress)
	s.durable.Store(m.progress)
	s.owner.Store(&m.owner)
	s.imports.Store(&m.imports)
	return nil
}

// isEmpty tells whether there is no row of the store with that id.
func isEmpty(rows engine.Reader, id uint32) (empty bool, err error) {
	lower, upper := storeBounds(id)
	it, err := rows.NewIter("look into store", lower, upper)
	if err != nil {
		return false, err
	}
	empty = !it.First()
	return empty, it.Close()
}
