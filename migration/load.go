package migration

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/internal/offsetfile"
	"github.com/tidemark-streams/tidemark/statestore"
)

// A batch of the task store while data is loaded: large ones are cheaper for each row.
const (
	loadBytes = 4 << 20
	loadRows  = 32 << 10
)

// loader copies rows into batches of changelog records.
type loader struct {
	s           *statestore.TaskStore
	store       string
	timestamped bool
	records     []statestore.RestoreRecord
	arena       []byte
	progress    Progress
}

// load moves all rows of the source into the store, without an offset.
func load(ctx context.Context, s *statestore.TaskStore, store string, source Source, kind statestore.Kind, tell func(Progress)) error {
	if isSorted(source) {
		err := loadSorted(ctx, s, store, source, tell)
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return loadBatches(ctx, s, store, source, kind, tell)
}

// isSorted tells whether the rows come in the order of their keys.
func isSorted(source Source) bool {
	switch source.(type) {
	case foreignSource, *gokaSource:
		return true
	}
	return false
}

// loadSorted moves the rows as whole tables: several times as fast as batches.
func loadSorted(ctx context.Context, s *statestore.TaskStore, store string, source Source, tell func(Progress)) error {
	p := Progress{Store: store}
	told := time.Now()
	err := s.LoadSorted(store, func(yield func(statestore.Row, error) bool) {
		for row, err := range source.Rows() {
			if p.Records++; err == nil && p.Records%1024 == 0 {
				err = context.Cause(ctx)
				if now := time.Now(); now.Sub(told) >= time.Second {
					told = now
					tell(p)
				}
			}
			p.Bytes += int64(len(row.Key) + len(row.Value))
			if !yield(row, err) {
				return
			}
		}
	})
	if err == nil {
		p.Done = true
		tell(p)
	}
	return err
}

func loadBatches(ctx context.Context, s *statestore.TaskStore, store string, source Source, kind statestore.Kind, tell func(Progress)) error {
	l := loader{s: s, store: store, timestamped: kind == statestore.KindTimestampedKeyValue, arena: make([]byte, 0, loadBytes)}
	l.progress.Store = store
	told := time.Now()
	for row, err := range source.Rows() {
		if err != nil {
			return err
		}
		if len(l.records) > 0 && (len(l.records) == loadRows || len(l.arena)+len(row.Key)+len(row.Value) > loadBytes) {
			if err := l.flush(); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if now := time.Now(); now.Sub(told) >= time.Second {
				told = now
				tell(l.progress)
			}
		}
		if err := l.add(row); err != nil {
			return err
		}
	}
	if err := l.flush(); err != nil {
		return err
	}
	l.progress.Done = true
	tell(l.progress)
	return nil
}

func (l *loader) add(row statestore.Row) error {
	r := statestore.RestoreRecord{}
	value := row.Value
	if l.timestamped {
		if len(value) < 8 {
			return fmt.Errorf("the value of key %s has %d bytes: in a timestamped store it begins with 8 bytes of timestamp", offsetfile.Shown(row.Key), len(value))
		}
		r.Timestamp, value = int64(binary.BigEndian.Uint64(value)), value[8:]
	}
	r.Key, r.Value = l.keep(row.Key), l.keep(value)
	l.records = append(l.records, r)
	l.progress.Records++
	l.progress.Bytes += int64(len(row.Key) + len(row.Value))
	return nil
}

// keep copies into the arena; never nil, which would mean deleted.
func (l *loader) keep(b []byte) []byte {
	from := len(l.arena)
	l.arena = append(l.arena, b...)
	return l.arena[from:len(l.arena):len(l.arena)]
}

func (l *loader) flush() error {
	if len(l.records) == 0 {
		return nil
	}
	err := l.s.Load(l.store, l.records)
	l.records, l.arena = l.records[:0], l.arena[:0]
	failpoint.Hit("migration-loading")
	return err
}
