package pebbledb

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// open opens the database with an empty log. Pebble reads tables with range deletions for their statistics in the
// background. An Open that has flushed such a table, because the log held it, does not wait for that: if it fails
// afterwards, of a full disk say, it closes the caches under the goroutine that reads, and the runtime ends the process
// (Pebble 2.1.7). So what the log holds is brought into tables first, by an Open without statistics, which cannot be kept:
// without them the space that range deletions cover is not freed. (Compactions are held back for the same reason: see scheduler.)
func (d *DB) open(dir string) (*pebble.DB, error) {
	po := d.pebbleOptions(dir)
	if d.o.ReadOnly || d.o.Create {
		return pebble.Open(dir, po)
	}
	logged, err := holdsLog(d.o.FS, dir)
	if err != nil {
		return nil, err
	}
	if !logged {
		db, err := d.openEmpty(dir, po)
		if !errors.Is(err, errLogged) {
			return db, err
		}
	}
	if err := d.settle(dir, po); err != nil {
		return nil, err
	}
	return pebble.Open(dir, po)
}

// errLogged ends an Open that has found something in the log, before it flushes that. Pebble does not give back what such
// an Open has reserved of the block cache for its memtables (256 KiB and more), so that this is not the usual way.
var errLogged = errors.New("the log is not empty")

// openEmpty opens a database whose log is thought to be empty, or ends with errLogged.
func (d *DB) openEmpty(dir string, po *pebble.Options) (db *pebble.DB, err error) {
	po = po.Clone()
	log := d.fatalLogger()
	log.info = func(format string, args []any) {
		if d.replay.note(format, args); d.replay.Batches > 0 {
			d.replay = Replay{}
			panic(errLogged) // which Open is prepared for
		}
	}
	po.Logger = log
	_, err = guard("open", func() (err error) { db, err = pebble.Open(dir, po); return err })
	return db, err
}

// settle brings what the log holds into tables.
func (d *DB) settle(dir string, po *pebble.Options) error {
	po = po.Clone()
	po.DisableTableStats = true
	po.Experimental.CompactionScheduler = &scheduler{l: d.o.Resources.limit, opening: true}
	db, err := pebble.Open(dir, po)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("close after the log was replayed: %w", err)
	}
	return d.Err() // of a flush in the background
}

// holdsLog tells whether the newest log holds anything. After a clean close it does not; older ones stay to be used again. After a
// kill an older one may hold something while the newest is empty: right behind a change of logs, as a run of a restore makes one.
func holdsLog(fs vfs.FS, dir string) (bool, error) {
	logs, err := wal.Scan(wal.Dir{FS: fs, Dirname: dir})
	if err != nil || len(logs) == 0 {
		return false, err
	}
	r := logs[len(logs)-1].OpenForRead()
	_, _, err = r.NextRecord()
	return err == nil, r.Close() // what is damaged is for Open to tell
}
