package statestore

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-streams/tidemark/internal/offsetfile"
	"github.com/tidemark-streams/tidemark/statestore/internal/checkpoint"
)

// checkpointFile is the .checkpoint_<store> of a store that keeps no offsets. It may be one that Kafka
// Streams or another program has left: what cannot be trusted of it, or will be replaced, stays under
// another name.
type checkpointFile struct {
	fs        vfs.FS
	path      string
	log       *slog.Logger
	topic     string
	partition int32
	nowhere   bool // the task store has no directory
	original  bool // what lies there is not, or not only, what this task store has written
}

// read gives the offset of the next record; the file names the last one applied. recorded is what the
// task's database knows. A file that is no use does not stop the store: it is restored from the start.
func (c *checkpointFile) read(recorded Offset) (Offset, error) {
	if c.nowhere {
		return Offset{}, nil
	}
	content, exists, err := checkpoint.Read(c.fs, c.path)
	if !exists {
		return Offset{}, err
	}
	if err != nil {
		return Offset{}, c.quarantine(err)
	}
	e, why := c.own(content)
	if why != "" {
		c.log.Warn("the checkpoint of a store does not say how far it is: it is restored from the start of its changelog", "file", c.path, "reason", why)
	}
	c.original = recorded.IsAbsent() || why != "" || len(content.Entries)+len(content.Skipped) > 1
	switch {
	case why != "":
		return Offset{}, nil
	case e.Offset == offsetfile.Unknown:
		return CleanUnknown(), nil
	}
	return At(e.Offset + 1), nil
}

// own gives the store's entry, or says why there is none. Entries of others are left out of account.
func (c *checkpointFile) own(content offsetfile.Content) (e offsetfile.Line, why string) {
	isOwn := func(l offsetfile.Line) bool { return l.Topic == c.topic && l.Partition == c.partition }
	if i := slices.IndexFunc(content.Entries, isOwn); i >= 0 {
		e = content.Entries[i]
		if e.Offset == math.MaxInt64 {
			return e, "no offset can follow the one that it gives"
		}
		return e, ""
	}
	if i := slices.IndexFunc(content.Skipped, isOwn); i >= 0 {
		return e, fmt.Sprintf("it gives the offset %d, which means nothing", content.Skipped[i].Offset)
	}
	return e, fmt.Sprintf("it has no entry of %s-%d", c.topic, c.partition)
}

// quarantine takes what cannot be read out of the way. What will be over (no file descriptor, no memory) is an error.
func (c *checkpointFile) quarantine(cause error) error {
	for _, passing := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(cause, passing) {
			return cause
		}
	}
	to, err := checkpoint.SetAside(c.fs, c.path, offsetfile.QuarantineSuffix(time.Now()))
	if err != nil {
		return errors.Join(cause, err)
	}
	c.log.Error("the checkpoint of a store cannot be used and is quarantined: the store is restored from the start of its changelog",
		"file", c.path, "now", to, "error", cause)
	return nil
}

// write replaces the file. Where nothing was applied there is none.
func (c *checkpointFile) write(o Offset) error {
	if c.nowhere {
		return nil
	}
	if c.original {
		if err := checkpoint.Keep(c.fs, c.path, offsetfile.Migrated); err != nil {
			return err
		}
		c.original = false
	}
	next, known := o.Next()
	e := offsetfile.Line{Topic: c.topic, Partition: c.partition, Offset: offsetfile.Unknown}
	switch {
	case o.IsUnknown():
	case !known || next == 0:
		return checkpoint.Remove(c.fs, c.path)
	default:
		e.Offset = next - 1
	}
	return checkpoint.Write(c.fs, c.path, e)
}
