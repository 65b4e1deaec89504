package statestore

import (
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/storepb"
	"google.golang.org/protobuf/proto"
)

// Owner says which process had the task last, and when. The zero value: not known.
type Owner struct {
	// ProcessID is the id of the process's place in the group.
	ProcessID string
	// Last is when it said so last, to the millisecond.
	Last time.Time
}

// Owner is who was stamped as the owner last.
func (s *TaskStore) Owner() Owner {
	if o := s.owner.Load(); o != nil {
		return *o
	}
	return Owner{}
}

// StampOwner records who has the task, and when: whoever cleans up later goes by that, not
// by the time of a file. It is durable as a commit is. Any goroutine may call it.
func (s *TaskStore) StampOwner(o Owner) error {
	record, err := encodeOwner(o)
	if err != nil {
		return fmt.Errorf("stamp owner of %s: %w", s.dir, err)
	}
	err = s.recordBeside("stamp owner", keyOwner, record, func(*progress) {})
	if err == nil {
		s.owner.Store(&o)
	}
	return err
}

// recordBeside writes one metadata record, and the commit record as change makes it, in one
// batch.
func (s *TaskStore) recordBeside(op string, key, record []byte, change func(*progress)) error {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	next := *s.committed.Load()
	change(&next)
	return s.apply(op, &next, len(record), func(b engine.Batch) error {
		engine.Set(b, nil, key, nil, record)
		return nil
	})
}

func millisTime(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func timeMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func encodeOwner(o Owner) ([]byte, error) {
	return proto.Marshal(&storepb.Owner{Version: ownerVersion, ProcessId: o.ProcessID, LastOwnedMs: timeMillis(o.Last)})
}

func decodeOwner(b []byte) (Owner, error) {
	var m storepb.Owner
	if err := unmarshal("owner", b, &m); err != nil {
		return Owner{}, err
	}
	return Owner{ProcessID: m.GetProcessId(), Last: millisTime(m.GetLastOwnedMs())}, checkVersion("owner", m.GetVersion(), ownerVersion)
}
