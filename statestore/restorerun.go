package statestore

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"sync/atomic"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

// defaultRunBytes is how much of keys and values a run collects. A restore has two of them, one that is written and
// one that is collected. With the indexes over it a run takes about twice that, or three times where records are small.
// With smaller runs Pebble compacts them before they are all there.
const defaultRunBytes = 32 << 20

// defaultLargeRestores is how many restores in sorted runs go on at a time in a process, or rather over
// one [Resources]: it bounds their memory, and more would not be faster. As many more may be in their last
// runs, so that others begin to read meanwhile.
const defaultLargeRestores = 2

// ErrRestoresBusy means that as many restores in runs go on as may at a time.
var ErrRestoresBusy = errors.New("as many large restores are under way as the memory for them allows")

// runSlots counts the restores in runs: those that collect, and those in their last runs.
type runSlots struct {
	taken, ending atomic.Int32
	most          int32 // of each
	bytes         int   // of a run
}

// sized gives the sizes; 0 = the default.
func (r *runSlots) sized(restores, bytes int) {
	r.most, r.bytes = defaultLargeRestores, defaultRunBytes
	if restores > 0 {
		r.most = int32(min(restores, math.MaxInt32))
	}
	if bytes > 0 {
		r.bytes = bytes
	}
}

func takeSlot(n *atomic.Int32, most int32) bool {
	if n.Add(1) <= most {
		return true
	}
	n.Add(-1)
	return false
}

// runIngester is an engine that takes whole runs.
type runIngester interface {
	IngestRun(op, scratch string, key, value, prefix []byte, rows func(set func(key, value []byte) error, del func(key []byte) error) error) error
}

// RunRestore is [TaskStore.Restore] for large amounts: it collects records up to 32 MiB
// ([ResourceOptions].RestoreRunBytes), and brings
// the last of each key into the database as a sorted table, past the write-ahead log and
// the memtables, with the offset in the same step: a crash leaves whole runs, on the disk. While one run is written,
// in a goroutine of its own, the next is collected. It belongs to the owner of the task store, and must be
// closed before that is.
type RunRestore struct {
	s         *TaskStore
	st        *store
	engine    runIngester
	collected *table.Run
	other     *table.Run // nil until the first run is full; while one is written it is the goroutine's
	limit     int        // bytes of a run
	next      int64      // behind what was collected
	handed    int64      // behind what was handed over to be written
	written   atomic.Int64
	writing   chan error // of the run that is being written; nil: none
	err       error      // of a run that was not written: its writes are gone, and no later ones may follow
	ending    bool       // see End
	closed    bool
}

// RestoreRuns begins a restore in runs. Other stores of the task may be restored meanwhile, but this
// one only through it. It gives [errors.ErrUnsupported] for stores for which it is not right (of other kinds than
// key-value; not in the database): use Restore; and [ErrRestoresBusy] when it is to be tried again later.
func (s *TaskStore) RestoreRuns(name string) (*RunRestore, error) {
	st, err := s.beginRestore("restore", name)
	if err != nil {
		return nil, err
	}
	db, ok := st.rows.(runIngester)
	if !ok || st.rows != s.db || st.spec.Kind != KindKeyValue && st.spec.Kind != KindTimestampedKeyValue {
		return nil, fmt.Errorf("restore store %q of %s in runs: %w", name, s.dir, errors.ErrUnsupported)
	}
	runs := &s.resources.runs
	if !takeSlot(&runs.taken, runs.most) {
		return nil, fmt.Errorf("restore store %q of %s in runs: %w", name, s.dir, ErrRestoresBusy)
	}
	return &RunRestore{s: s, st: st, engine: db, collected: table.NewRun(runs.bytes), limit: runs.bytes}, nil
}

// Add takes records of the store's changelog, in their order; next is the offset behind them. What
// is in them is copied. When there is enough for a run it is written.
func (x *RunRestore) Add(records []RestoreRecord, next int64) error {
	if err := errors.Join(x.err, x.s.usable()); err != nil {
		return err
	}
	if x.ending {
		return fmt.Errorf("restore store %q of %s: records behind the last", x.st.spec.Name, x.s.dir)
	}
	records, err := x.st.presentRecords(records)
	if err != nil {
		return fmt.Errorf("restore store %q of %s: %w", x.st.spec.Name, x.s.dir, err)
	}
	for i := range records {
		r := &records[i]
		if err := x.collected.Add(r.Key, r.Value, r.Timestamp); err != nil {
			x.err = fmt.Errorf("restore store %q of %s: record %d of %d: %w", x.st.spec.Name, x.s.dir, i+1, len(records), err)
			return x.err
		}
	}
	x.next = next
	if x.collected.Bytes() >= x.limit {
		return x.handOver()
	}
	return nil
}

// Flush writes what was collected, however little it is, and returns when it is in the database.
func (x *RunRestore) Flush() error {
	if x.next != x.handed {
		if err := x.handOver(); err != nil {
			return err
		}
	}
	return x.await()
}

// End has what was collected written, the last run, and does not wait: the channel is closed when all
// is written, or failed. Flush, which tells what became of it, must follow, and Close; no Add may. While too
// many restores are in their last runs it waits nevertheless.
func (x *RunRestore) End() (<-chan struct{}, error) {
	if x.ending || x.closed {
		return nil, fmt.Errorf("restore store %q of %s: it has ended", x.st.spec.Name, x.s.dir)
	}
	over := make(chan struct{})
	if !takeSlot(&x.s.resources.runs.ending, x.s.resources.runs.most) {
		close(over)
		return over, x.Flush()
	}
	x.s.resources.runs.taken.Add(-1)
	x.ending = true
	if err := x.prepare(); err != nil {
		return nil, err
	}
	before, last, next, more := x.writing, x.collected, x.next, x.next != x.handed
	x.collected, x.other, x.handed = nil, nil, next
	result := make(chan error, 1)
	x.writing = result
	go func() { // ended by await
		defer close(over)
		var err error
		if before != nil {
			err = <-before
		}
		if err == nil && more {
			err = x.write(last, next)
		}
		result <- err
	}()
	return over, nil
}

// handOver has what was collected written, once the run before it is.
func (x *RunRestore) handOver() error {
	if err := x.await(); err != nil {
		return err
	}
	if err := x.prepare(); err != nil {
		return err
	}
	if x.other == nil {
		x.other = table.NewRun(x.limit)
	}
	full, next := x.collected, x.next
	x.collected, x.other, x.handed = x.other, full, next
	result := make(chan error, 1)
	x.writing = result
	go func() { result <- x.write(full, next) }() // ended by await
	return nil
}

// prepare makes the task store ready for a run that is written past its cache. Its owner calls it.
func (x *RunRestore) prepare() error {
	if x.err != nil {
		return x.err
	}
	if _, x.err = x.s.beginRestore("restore", x.st.spec.Name); x.err == nil {
		x.s.bypass(x.st)
	}
	return x.err
}

// await waits until no run is being written.
func (x *RunRestore) await() error {
	if x.writing != nil {
		x.err = <-x.writing
		x.writing = nil
	}
	return x.err
}

// write brings a run into the database, and empties it. It may run beside the owner of the task store, as a
// commit may.
func (x *RunRestore) write(run *table.Run, next int64) error {
	s, st := x.s, x.st
	s.write.Lock()
	defer s.write.Unlock()
	p, err := s.restoredProgress(st, next)
	if err != nil {
		return err
	}
	if err := s.ingestRun(st, p, x.engine, run.Last()); err != nil {
		return err
	}
	failpoint.Hit("restore-run")
	x.written.Store(next)
	run.Reset(x.limit)
	return nil
}

// ingestRun is applyRows for a run. s.write is held.
func (s *TaskStore) ingestRun(st *store, next *progress, db runIngester, writes iter.Seq[table.Write]) error {
	next.seq = s.committed.Load().seq + 1
	record, err := encodeCommit(s.recorded(next))
	if err != nil {
		return fmt.Errorf("restore to %s: encode commit record: %w", s.dir, err)
	}
	// The record tells of the batches before it too, which may be in the log's buffer yet; the run
	// does not wait for the log.
	if err := s.db.Sync(); err != nil {
		return err
	}
	err = db.IngestRun("restore", s.o.FS.PathJoin(s.dir, scratchName), keyCommit, record, st.prefix[:], func(set func(key, value []byte) error, del func(key []byte) error) error {
		return st.eachWrite(writes, set, del)
	})
	if err != nil {
		return fmt.Errorf("restore store %q of %s: %w", st.spec.Name, s.dir, advised(err, "the restore goes on behind the last run that was written"))
	}
	if err := s.applyBeside("restore", next, 0, func(engine.Batch, engine.Engine) error { return nil }); err != nil {
		return err
	}
	s.committed.Store(next)
	s.sync.arm() // of what is beside the database
	return nil
}

func (st *store) eachWrite(writes iter.Seq[table.Write], set func(key, value []byte) error, del func(key []byte) error) error {
	for w := range writes {
		var err error
		switch {
		case w.Value == nil:
			err = del(w.Key)
		case st.timestamped():
			err = set(w.Key, w.Stamped)
		default:
			err = set(w.Key, w.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Written is the offset behind the last run that is on the disk; 0 when there is none.
func (x *RunRestore) Written() int64 { return x.written.Load() }

// Close waits for the run that is being written, and gives the memory back. What was not flushed is forgotten, and
// restored again the next time.
func (x *RunRestore) Close() {
	if !x.closed {
		_ = x.await()
		x.closed, x.collected, x.other = true, nil, nil
		if x.ending {
			x.s.resources.runs.ending.Add(-1)
		} else {
			x.s.resources.runs.taken.Add(-1)
		}
	}
}
