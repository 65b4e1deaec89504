package pebbledb

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// memTables bounds what the memtables of all databases hold together. Beyond the budget a
// database that has just been written to, or synced, is flushed if it holds at least an
// equal part: so the fullest go first, those that have become idle too (a sync follows the
// last write), and nobody looks into another's database.
type memTables struct {
	budget int64
	total  atomic.Int64
}

// memTable is one database's part.
type memTable struct {
	filled   atomic.Int64 // since the last flush
	flushing atomic.Int64 // of it, what the running flush takes
	asked    atomic.Bool  // for a flush
	deleted  deletedRanges
}

const (
	// worthFlushing: every open database has a memtable of this size, however little is in it.
	worthFlushing = 256 << 10
	// rowOverhead is about what a row takes in a memtable beside key and value.
	rowOverhead = 64
)

// wrote counts a batch, and asks for a flush where the budget says so.
func (d *DB) wrote(b *pebble.Batch) {
	n := int64(b.Len()) + int64(b.Count())*rowOverhead
	d.table.filled.Add(n)
	d.o.Resources.tables.total.Add(n)
}

// relieve flushes if the budget asks for it. It does not wait for the flush.
func (d *DB) relieve(db *pebble.DB) error {
	t := d.o.Resources.tables
	total, mine := t.total.Load(), d.table.filled.Load()
	if total <= t.budget || mine < worthFlushing || mine < total/max(1, d.o.Resources.users.Load()) || d.table.asked.Swap(true) {
		return nil
	}
	_, err := db.AsyncFlush()
	return err
}

func (d *DB) flushBegins() { d.table.flushing.Store(d.table.filled.Load()) }

func (d *DB) flushEnds() {
	n := d.table.flushing.Swap(0)
	d.table.filled.Add(-n)
	d.table.deleted.flushed()
	d.o.Resources.tables.total.Add(-n)
	d.table.asked.Store(false)
}

// forget takes a database that was closed, or left behind, out of the count.
func (d *DB) forget() { d.o.Resources.tables.total.Add(-d.table.filled.Swap(0)) }
