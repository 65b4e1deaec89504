package pebbledb

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Checkpoint makes a database in dir, which must not exist, that holds what was applied
// when it was called, or the result of a longer prefix of the batches. Tables are hard
// links where that is possible. A failure to write it does not fail the database; what
// was written is removed.
func (d *DB) Checkpoint(dir string) error {
	d.checkpoint.running.Lock()
	defer d.checkpoint.running.Unlock()
	if err := d.Err(); err != nil {
		return err
	}
	if !d.checkpoint.flushed {
		// Pebble writes a manifest of this opening at the first flush, and until then copies none: at
		// once, but where a crash took the log away, so that there was nothing to flush.
		if err := d.Flush(); err != nil {
			return err
		}
		d.checkpoint.flushed = true
	}
	if err := d.enter("checkpoint"); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer d.underway.RUnlock()
		panicked, err := guard("checkpoint", func() error { return d.db.Checkpoint(dir, pebble.WithFlushedWAL()) })
		if panicked {
			d.fail(err, fatal)
		}
		if unsynced := d.checkpoint.take(); err == nil && unsynced != nil {
			err = errors.Join(unsynced, d.files().RemoveAll(dir))
		}
		done <- err
	}()
	w := d.watch("checkpoint")
	defer w.end()
	for {
		select {
		case err := <-done:
			if failed := d.Err(); failed != nil {
				return failed
			}
			if err != nil {
				return fmt.Errorf("checkpoint: %w", err)
			}
			return nil
		case <-w.timer.C:
			w.tick()
		case <-d.latch.closed:
			return d.Err()
		}
	}
}

// checkpointing keeps the error of a directory that could not be synced.
type checkpointing struct {
	running sync.Mutex // one at a time
	flushed bool       // under running: since the database was opened

	mu  sync.Mutex
	err error
}

func (c *checkpointing) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(c.err, err)
}

func (c *checkpointing) take() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err, c.err = c.err, nil
	return err
}
