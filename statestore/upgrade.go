package statestore

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/pebbledb"
)

// upgrade puts into a batch what takes a database from one format to the next.
type upgrade func(m *metadata, b engine.Batch) error

// upgrades are the steps from each older format that this program knows: upgrades[n] leaves n.
//
// 1 to 2: nothing lies elsewhere. But a program that knows only format 1 would write the
// catalog without the fields that came with windows, sessions, versions and schema versions,
// and these say how to read the rows; so it must not open the database any more.
var upgrades = map[uint32]upgrade{
	1: func(*metadata, engine.Batch) error { return nil },
}

// upgradeFormat takes a database of an older format to the present one, in one batch that
// is on the disk when it returns: a crash leaves the one or the other.
func (s *TaskStore) upgradeFormat(m *metadata) error {
	from := m.format.GetVersion()
	if from == formatVersion {
		return nil
	}
	m.format.Version = formatVersion
	record, err := proto.Marshal(m.format)
	if err != nil {
		return fmt.Errorf("upgrade from format %d to %d: %w", from, formatVersion, err)
	}
	err = s.db.Apply("upgrade format", len(record), true, func(b engine.Batch) error {
		for v := from; v < formatVersion; v++ {
			step, ok := upgrades[v]
			if !ok {
				return fmt.Errorf("upgrade from format %d to %d: the step from %d is not known", from, formatVersion, v)
			}
			if err := step(m, b); err != nil {
				return fmt.Errorf("upgrade from format %d to %d: %w", from, v+1, err)
			}
		}
		engine.Set(b, nil, keyFormat, nil, record)
		return nil
	})
	if err == nil {
		err = s.db.Flush() // peekFormat does not read the log
	}
	if err != nil {
		return err
	}
	s.opened.UpgradedFrom = from
	s.log.Info("task store upgraded", "from", from, "to", formatVersion)
	return nil
}

// checkFormat is peekFormat, unless a [View] with the same resources has just found the format good: with many
// tasks the scan at start has opened each directory already.
func (s *TaskStore) checkFormat() error {
	if _, known := s.resources.read.LoadAndDelete(s.dir); known && s.o.FS == vfs.Default {
		return nil
	}
	return s.peekFormat()
}

// peekFormat refuses a database of a newer format before anything in its directory changes:
// opening it for writing already replays and makes files. It does not read the log, which
// may be long, because a format record is always flushed; whatever else is wrong is found
// when the database is opened.
func (s *TaskStore) peekFormat() error {
	db, err := pebbledb.Open(s.dir, pebbledb.Options{
		FS: s.o.FS, Resources: s.resources.r, Log: s.log, MemTableSize: readMemTableBytes, ReadOnly: true, NoLog: true,
		WrapFailure: s.failure, CloseTimeout: s.o.closeTimeout, StallAfter: s.o.stallAfter, HangTimeout: s.o.hangTimeout,
	})
	if err = markOpen(err); err != nil {
		if errors.Is(err, ErrNewerFormat) || errors.Is(err, ErrLocked) {
			return err
		}
		return nil
	}
	record, ok, err := db.Get("peek format", keyFormat, nil)
	if err == nil && ok {
		_, err = decodeFormat(record)
	}
	if cerr := db.Close(); cerr != nil {
		return cerr
	}
	if errors.Is(err, ErrNewerFormat) {
		return err
	}
	return nil
}
