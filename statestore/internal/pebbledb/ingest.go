package pebbledb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"
)

// ingestFileBytes is how much data, before compression, goes into one table that is ingested.
const ingestFileBytes = 16 << 20

// lowestLevel is where large tables without neighbours end up.
const lowestLevel = 6

// IngestSorted brings rows into the database as whole tables, past the log and the
// memtables: for amounts that are large. rows calls add for each, in strictly ascending order
// of keys; each key gets the prefix. scratch is a directory for the tables on the file
// system of the database; it is removed. All rows appear at once, durably, or none. What was
// applied before must be synced: an ingested table does not wait for the log.
func (d *DB) IngestSorted(op, scratch string, prefix []byte, rows func(add func(key, value []byte) error) error) error {
	return d.ingest(op, scratch, prefix, func(t *tables) error { return t.write(rows) })
}

// ingest brings the tables that write makes in scratch into the database, if there are any.
func (d *DB) ingest(op, scratch string, prefix []byte, write func(*tables) error) (err error) {
	if err := d.Err(); err != nil {
		return err
	}
	fs := d.files()
	t := newTables(fs, scratch, prefix, d.db.TableFormat())
	t.wait = func(fn func() error) error { return d.aside(op, fn) }
	if err := t.wait(func() error { return errors.Join(fs.RemoveAll(scratch), fs.MkdirAll(scratch, 0o700)) }); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.sweep(op, fs, scratch)) }()
	if err := write(t); err != nil || len(t.paths) == 0 {
		return err
	}
	return d.Write(op, func(db *pebble.DB) error { return db.Ingest(context.Background(), t.paths) })
}

// sweep removes scratch, unless somebody may write to it still: whoever did not come back from the disk.
func (d *DB) sweep(op string, fs vfs.FS, scratch string) error {
	if level, _ := d.latch.state(); level == fatal {
		return nil
	}
	return d.aside(op, func() error { return fs.RemoveAll(scratch) })
}

// tables writes rows into table files, several at a time.
type tables struct {
	fs      vfs.FS
	scratch string
	prefix  []byte
	options sstable.WriterOptions
	wait    func(func() error) error // for what may wait for the disk

	paths   []string
	workers errgroup.Group
	chunk   *chunk
	free    chan *chunk // written ones, to be filled again
	last    []byte
}

// chunk is the rows of one table, in order.
type chunk struct {
	bytes []byte
	ends  []int // of key, value, key, value ...
}

func newTables(fs vfs.FS, scratch string, prefix []byte, format sstable.TableFormat) *tables {
	o := &pebble.Options{FS: fs}
	o.EnsureDefaults()
	t := &tables{fs: fs, scratch: scratch, prefix: prefix, options: o.MakeWriterOptions(lowestLevel, format), chunk: &chunk{}}
	n := max(1, runtime.GOMAXPROCS(0))
	t.free = make(chan *chunk, n+1)
	t.workers.SetLimit(n)
	return t
}

func (t *tables) write(rows func(add func(key, value []byte) error) error) error {
	err := rows(t.add)
	if err == nil {
		err = t.finishChunk()
	}
	return errors.Join(err, t.wait(t.workers.Wait))
}

func (t *tables) add(key, value []byte) error {
	if t.last != nil && bytes.Compare(t.last, key) >= 0 {
		return fmt.Errorf("key %.40q comes behind %.40q: rows must be in ascending order", key, t.last)
	}
	t.last = append(t.last[:0], key...)
	if t.last == nil {
		t.last = []byte{} // an empty key is one
	}
	c := t.chunk
	if n := len(c.bytes); n > 0 && n+len(key)+len(value) > ingestFileBytes {
		if err := t.finishChunk(); err != nil {
			return err
		}
		c = t.chunk
	}
	if c.bytes == nil && len(t.paths) > 0 {
		c.bytes = make([]byte, 0, ingestFileBytes) // the one before was full, so this one may become it
	}
	c.bytes = append(c.bytes, key...)
	c.ends = append(c.ends, len(c.bytes))
	c.bytes = append(c.bytes, value...)
	c.ends = append(c.ends, len(c.bytes))
	return nil
}

// finishChunk hands the chunk to a worker; it waits while all have one.
func (t *tables) finishChunk() error {
	c := t.chunk
	if len(c.ends) == 0 {
		return nil
	}
	select {
	case t.chunk = <-t.free:
	default:
		t.chunk = &chunk{}
	}
	path := t.fs.PathJoin(t.scratch, fmt.Sprintf("%06d.sst", len(t.paths)))
	t.paths = append(t.paths, path)
	return t.wait(func() error {
		t.workers.Go(func() error {
			err := t.writeTable(path, c)
			c.bytes, c.ends = c.bytes[:0], c.ends[:0]
			t.free <- c // there is room for all
			return err
		})
		return nil
	})
}

func (t *tables) writeTable(path string, c *chunk) error {
	f, err := t.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), t.options)
	key := bytes.Clone(t.prefix)
	from := 0
	for i := 0; i < len(c.ends); i += 2 {
		key = append(key[:len(t.prefix)], c.bytes[from:c.ends[i]]...)
		if err := w.Set(key, c.bytes[c.ends[i]:c.ends[i+1]]); err != nil {
			return errors.Join(err, w.Close())
		}
		from = c.ends[i+1]
	}
	return w.Close() // syncs
}
