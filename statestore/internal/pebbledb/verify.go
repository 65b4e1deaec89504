package pebbledb

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// VerifyTables reads every block of every table of the database and compares its checksum,
// not through the block cache, and tells report what it found in each: err is nil for a
// sound one. It ends early when ctx does.
func (d *DB) VerifyTables(ctx context.Context, dir string, report func(name string, bytes int64, err error)) error {
	var tables []pebble.SSTableInfo
	err := d.Read("list tables", func(db *pebble.DB) error {
		levels, err := db.SSTables()
		for _, level := range levels {
			tables = append(tables, level...)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range tables {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := fmt.Sprintf("%s.sst", t.BackingSSTNum)
		path := d.o.FS.PathJoin(dir, name)
		var bytes int64
		panicked, err := guard("read "+name, func() (err error) {
			bytes, err = verifyTable(ctx, d.o.FS, path)
			return err
		})
		if panicked { // a block that cannot be read at all
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if err != nil {
			err = classify(err)
		}
		report(name, bytes, err)
	}
	return nil
}

func verifyTable(ctx context.Context, fs vfs.FS, path string) (bytes int64, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return 0, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return 0, errors.Join(err, f.Close())
	}
	bytes = readable.Size()
	r, err := sstable.NewReader(ctx, readable, sstable.ReaderOptions{})
	if err != nil {
		return bytes, errors.Join(err, readable.Close())
	}
	err = r.ValidateBlockChecksums()
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return bytes, err
}
