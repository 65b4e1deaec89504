package pebbledb

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// IngestRun brings writes over whatever there is into the database as whole tables, past the log
// and the memtables, together with the row (key, value), which is in none of their ranges: all of it appears at
// once, durably, or nothing does. rows calls set and del in strictly ascending order of keys, each of which gets
// the prefix. scratch is as in [DB.IngestSorted], and so is what was applied before.
func (d *DB) IngestRun(op, scratch string, key, value, prefix []byte, rows func(set func(key, value []byte) error, del func(key []byte) error) error) error {
	return d.ingest(op, scratch, prefix, func(t *tables) error {
		t.options.WritingToLowestLevel = false // else readers pass over its deletions: there would be nothing under them
		return d.aside(op, func() error { return t.run(key, value, rows) })
	})
}

// run writes two tables: one of the row (key, value), and one of rows, unless there are none.
func (t *tables) run(key, value []byte, rows func(set func(key, value []byte) error, del func(key []byte) error) error) error {
	record, run := t.fs.PathJoin(t.scratch, "record.sst"), t.fs.PathJoin(t.scratch, "run.sst")
	if err := t.file(record, func(w *sstable.Writer) error { return w.Set(key, value) }); err != nil {
		return err
	}
	t.paths = append(t.paths, record)
	some := false
	err := t.file(run, func(w *sstable.Writer) error {
		k := bytes.Clone(t.prefix)
		return rows(func(key, value []byte) error {
			some = true
			k = append(k[:len(t.prefix)], key...)
			return w.Set(k, value)
		}, func(key []byte) error {
			some = true
			k = append(k[:len(t.prefix)], key...)
			return w.Delete(k)
		})
	})
	if some { // an empty table cannot be ingested
		t.paths = append(t.paths, run)
	}
	return err
}

// file writes one table file, and syncs it.
func (t *tables) file(path string, fill func(*sstable.Writer) error) error {
	f, err := t.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), t.options)
	return errors.Join(fill(w), w.Close())
}
