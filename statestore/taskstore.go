package statestore

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

// TaskStore is the database of one task: all its stores, and how far they and the task
// are. See the package's comment for which goroutine may call what.
type TaskStore struct {
	dir       string
	o         Options
	log       *slog.Logger
	resources *Resources
	private   bool                           // resources belong to this store
	db        engine.Engine                  // the metadata, and the rows of most stores
	beside    atomic.Pointer[[]besideEngine] // see putBeside
	memory    *memoryRows                    // the one of beside that is in memory, or nil
	externals []*externalRows
	opened    OpenStats
	closed    atomic.Bool
	// ending is read-held by calls of any goroutine that reach the database.
	ending sync.RWMutex

	// The owner's.
	table   *table.Table
	share   *cacheShare // of the process's cache budget
	sealed  *Sealed
	spare   *table.Sealed // a released one, to be filled again
	scans   int           // open iterators
	warm    *warming
	keyBuf  []byte
	valBuf  []byte
	unknown []unknownKey // Prefetch's
	handles map[string]*KeyValue

	// write serialises the batches.
	write     sync.Mutex
	catalog   atomic.Pointer[catalog]
	stores    atomic.Pointer[[]*store] // registered, by number; nil before Register
	committed atomic.Pointer[progress]
	durable   atomic.Pointer[progress]
	owner     atomic.Pointer[Owner]
	imports   atomic.Pointer[[]Import]
	sync      syncer
}

// OpenStats tells what Open did.
type OpenStats struct {
	// Created: there was no database. CreatedAt is when it was created, now or at another time.
	Created   bool
	CreatedAt time.Time
	// Keys, Batches and Bytes that had to be replayed from the log: nothing after a clean close.
	ReplayedKeys, ReplayedBatches, ReplayedBytes int64
	// Time is how long opening took, ReplayTime what of it the log took.
	Time, ReplayTime time.Duration
	// UpgradedFrom is the older format that the database had; 0: it had the present one.
	UpgradedFrom uint32
	// ID is the 16 bytes given to the database when it was created.
	ID [16]byte
}

// OpenStats tells what Open did.
func (s *TaskStore) OpenStats() OpenStats { return s.opened }

// Dir is the directory of the database.
func (s *TaskStore) Dir() string { return s.dir }

// Failed is closed when the database has failed; Err then tells why.
func (s *TaskStore) Failed() <-chan struct{} { return s.db.Failed() }

// Err is nil, or wraps [ErrFailed] or [ErrClosed].
func (s *TaskStore) Err() error { return s.usable() }

// CommitID is the id of the last commit.
func (s *TaskStore) CommitID() CommitID { return s.committed.Load().id }

// StreamTime is the committed stream time in milliseconds, or [NoStreamTime].
func (s *TaskStore) StreamTime() int64 { return s.committed.Load().streamTime }

// Positions gives the committed source positions by topic and partition.
func (s *TaskStore) Positions() []Position { return slices.Clone(s.committed.Load().positions) }

// DurablePositions gives the source positions of the last commit that is known to be on
// the disk: what a crash of the machine leaves at least.
func (s *TaskStore) DurablePositions() []Position { return slices.Clone(s.durable.Load().positions) }

// CommittedOffsets gives for each store the changelog offset of the last commit. A store
// without one is there, as absent.
func (s *TaskStore) CommittedOffsets() map[string]Offset { return s.offsets(s.committed.Load()) }

// DurableOffsets gives for each store the changelog offset of the last commit that is
// known to be on the disk.
func (s *TaskStore) DurableOffsets() map[string]Offset {
	return s.offsets(s.recorded(s.durable.Load()))
}

func (s *TaskStore) offsets(p *progress) map[string]Offset {
	c := s.catalog.Load()
	m := make(map[string]Offset, len(p.stores))
	for id, sp := range p.stores {
		m[c.specs[id].Name] = sp.offset
	}
	for _, st := range s.registered() {
		if _, ok := p.stores[st.id]; !ok {
			m[st.spec.Name] = Offset{}
		}
	}
	return m
}

func (s *TaskStore) registered() []*store {
	if p := s.stores.Load(); p != nil {
		return *p
	}
	return nil
}

// Stores tells what the database says about each store that it knows, in the order in
// which they were first registered. It reads the database.
func (s *TaskStore) Stores() ([]StoreState, error) {
	s.ending.RLock()
	defer s.ending.RUnlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	c, p := s.catalog.Load(), s.committed.Load()
	registered := map[uint32]*store{}
	for _, st := range s.registered() {
		registered[st.id] = st
	}
	var states []StoreState
	for _, id := range c.sortedIDs() {
		x := StoreState{Spec: c.specs[id], Recorded: c.specs[id], Offset: p.stores[id].offset, Complete: p.stores[id].complete, Replaying: p.stores[id].replaying}
		rows := s.db
		if st, ok := registered[id]; ok {
			x.Spec, x.Registered, rows = st.spec, true, st.rows
		}
		var err error
		if x.Empty, err = isEmpty(rows, id); err != nil {
			return nil, err
		}
		states = append(states, x)
	}
	return states, nil
}
