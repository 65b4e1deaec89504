package statestore

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
	"github.com/tidemark-streams/tidemark/statestore/internal/storepb"
	"google.golang.org/protobuf/proto"
)

// Versions of the metadata records that this code writes, and the newest that it reads.
const (
	formatVersion  = 2
	catalogVersion = 1
	commitVersion  = 1
	ownerVersion   = 1
	importsVersion = 1

	schemaChangeVersion = 1
)

func checkVersion(what string, version, newest uint32) error {
	if version == 0 {
		return fmt.Errorf("%w: %s record without a version", ErrCorrupt, what)
	}
	if version > newest {
		return fmt.Errorf("%w: %s record has version %d, this program reads up to %d", ErrNewerFormat, what, version, newest)
	}
	return nil
}

func unmarshal(what string, b []byte, m proto.Message) error {
	if err := proto.Unmarshal(b, m); err != nil {
		return fmt.Errorf("%w: %s record: %w", ErrCorrupt, what, err)
	}
	return nil
}

func encodeFormat(id []byte, createdMillis int64) ([]byte, error) {
	return proto.Marshal(&storepb.Format{Version: formatVersion, StoreId: id, CreatedMs: createdMillis})
}

func decodeFormat(b []byte) (*storepb.Format, error) {
	var m storepb.Format
	if err := unmarshal("format", b, &m); err != nil {
		return nil, err
	}
	return &m, checkVersion("format", m.GetVersion(), formatVersion)
}

// catalog is the stores that the database knows. It is never changed, only replaced.
type catalog struct {
	nextID uint32
	ids    map[string]uint32
	specs  map[uint32]Spec
}

func (c *catalog) clone() *catalog {
	return &catalog{nextID: c.nextID, ids: maps.Clone(c.ids), specs: maps.Clone(c.specs)}
}

// sortedIDs gives the ids in order, for records that do not depend on chance.
func (c *catalog) sortedIDs() []uint32 { return slices.Sorted(maps.Keys(c.specs)) }

func encodeCatalog(c *catalog) ([]byte, error) {
	m := &storepb.Catalog{Version: catalogVersion, NextId: c.nextID}
	for _, id := range c.sortedIDs() {
		p := c.specs[id]
		s := &storepb.Store{Id: id, Name: p.Name, Kind: uint32(p.Kind), Changelog: p.Changelog,
			KeySerde: p.KeySerde, ValueSerde: p.ValueSerde, SchemaVersion: p.SchemaVersion,
			RetentionMs: p.Retention.Milliseconds(), WindowSizeMs: p.WindowSize.Milliseconds(),
			RetainDuplicates: p.RetainDuplicates, InMemory: p.InMemory, External: p.external, SegmentMs: p.segmentMS}
		if p.ChangelogID != [16]byte{} {
			s.ChangelogId = bytes.Clone(p.ChangelogID[:])
		}
		m.Stores = append(m.Stores, s)
	}
	return proto.Marshal(m)
}

func decodeCatalog(b []byte) (*catalog, error) {
	var m storepb.Catalog
	if err := unmarshal("catalog", b, &m); err != nil {
		return nil, err
	}
	if err := checkVersion("catalog", m.GetVersion(), catalogVersion); err != nil {
		return nil, err
	}
	c := &catalog{nextID: m.GetNextId(), ids: map[string]uint32{}, specs: map[uint32]Spec{}}
	for _, s := range m.GetStores() {
		id, name := s.GetId(), s.GetName()
		_, twice := c.specs[id]
		_, named := c.ids[name]
		if id == 0 || id >= c.nextID || twice || named || name == "" {
			return nil, fmt.Errorf("%w: catalog record: store %q with id %d (next id %d)", ErrCorrupt, name, id, c.nextID)
		}
		if s.GetKind() > 255 || len(s.GetChangelogId()) != 0 && len(s.GetChangelogId()) != 16 {
			return nil, fmt.Errorf("%w: catalog record: store %q has kind %d and a changelog id of %d bytes",
				ErrCorrupt, name, s.GetKind(), len(s.GetChangelogId()))
		}
		p := Spec{Name: name, Kind: Kind(s.GetKind()), Changelog: s.GetChangelog(), KeySerde: s.GetKeySerde(), ValueSerde: s.GetValueSerde(),
			SchemaVersion: s.GetSchemaVersion(), Retention: time.Duration(s.GetRetentionMs()) * time.Millisecond,
			WindowSize: time.Duration(s.GetWindowSizeMs()) * time.Millisecond, RetainDuplicates: s.GetRetainDuplicates(), InMemory: s.GetInMemory(), external: s.GetExternal()}
		p.segmentMS = s.GetSegmentMs()
		if err := checkTimes(s, p.Kind); err != nil {
			return nil, err
		}
		copy(p.ChangelogID[:], s.GetChangelogId())
		c.ids[name], c.specs[id] = id, p
	}
	return c, nil
}

// maxMillis is as long as a duration can be.
const maxMillis = int64(math.MaxInt64 / time.Millisecond)

// checkTimes refuses times that overflow, or that no store can have been registered with.
func checkTimes(s *storepb.Store, kind Kind) error {
	retention, window, segment := s.GetRetentionMs(), s.GetWindowSizeMs(), s.GetSegmentMs()
	switch {
	case retention < 0 || retention > maxMillis || window < 0 || window > maxMillis:
		return fmt.Errorf("%w: catalog record: store %q has a retention of %d ms and windows of %d ms", ErrCorrupt, s.GetName(), retention, window)
	case kind.expiring() && segment <= 0:
		return fmt.Errorf("%w: catalog record: store %q is a %v store with a segment interval of %d ms", ErrCorrupt, s.GetName(), kind, segment)
	case kind.expiring() && retention/segment > maxSegments:
		return fmt.Errorf("%w: catalog record: store %q has a retention of %d ms in segments of %d ms", ErrCorrupt, s.GetName(), retention, segment)
	}
	return nil
}

func encodeCommit(p *progress) ([]byte, error) {
	m := &storepb.Commit{Version: commitVersion, Epoch: p.id.Epoch, Number: p.id.Number, CommittedMs: p.committed}
	if p.streamTime != NoStreamTime {
		m.StreamTimeMs = &p.streamTime
	}
	for _, x := range p.positions {
		m.Positions = append(m.Positions, &storepb.Position{Topic: x.Topic, Partition: x.Partition, Next: x.Next})
	}
	for _, id := range slices.Sorted(maps.Keys(p.stores)) {
		sp := p.stores[id]
		s := &storepb.StoreProgress{Id: id, Complete: sp.complete, Replaying: sp.replaying}
		switch sp.offset.state {
		case offsetUnknown:
			s.OffsetState = storepb.StoreProgress_CLEAN_UNKNOWN
		case offsetAt:
			s.OffsetState, s.Next = storepb.StoreProgress_AT, sp.offset.next
		}
		if clock := sp.recordedClock(); clock.Known {
			s.StreamTimeMs, s.Sequence = &clock.Time, clock.Sequence
		}
		m.Stores = append(m.Stores, s)
	}
	return proto.Marshal(m)
}

func decodeCommit(b []byte) (*progress, error) {
	var m storepb.Commit
	if err := unmarshal("commit", b, &m); err != nil {
		return nil, err
	}
	if err := checkVersion("commit", m.GetVersion(), commitVersion); err != nil {
		return nil, err
	}
	p := &progress{id: CommitID{m.GetEpoch(), m.GetNumber()}, streamTime: NoStreamTime, committed: m.GetCommittedMs(), stores: map[uint32]storeProgress{}}
	if m.StreamTimeMs != nil {
		p.streamTime = m.GetStreamTimeMs()
	}
	for _, x := range m.GetPositions() {
		p.positions = append(p.positions, Position{Topic: x.GetTopic(), Partition: x.GetPartition(), Next: x.GetNext()})
	}
	slices.SortFunc(p.positions, comparePositions)
	if err := (Progress{ID: p.id, Positions: p.positions}).validate(); err != nil {
		return nil, fmt.Errorf("%w: commit record: %w", ErrCorrupt, err)
	}
	for _, s := range m.GetStores() {
		o, err := decodeOffset(s)
		if err != nil {
			return nil, err
		}
		if s.GetStreamTimeMs() < 0 {
			return nil, fmt.Errorf("%w: commit record: store %d has the stream time %d", ErrCorrupt, s.GetId(), s.GetStreamTimeMs())
		}
		var clock kinds.Clock
		if s.StreamTimeMs != nil {
			clock = kinds.Clock{Known: true, Time: s.GetStreamTimeMs(), Sequence: s.GetSequence()}
		}
		p.stores[s.GetId()] = storeProgress{offset: o, complete: s.GetComplete(), replaying: s.GetReplaying() && !s.GetComplete(), clock: clock}
	}
	return p, nil
}

func decodeOffset(s *storepb.StoreProgress) (Offset, error) {
	switch s.GetOffsetState() {
	case storepb.StoreProgress_ABSENT:
		return Offset{}, nil
	case storepb.StoreProgress_CLEAN_UNKNOWN:
		return CleanUnknown(), nil
	case storepb.StoreProgress_AT:
		if s.GetNext() >= 0 {
			return At(s.GetNext()), nil
		}
	}
	return Offset{}, fmt.Errorf("%w: commit record: store %d has offset state %d, next %d", ErrCorrupt, s.GetId(), s.GetOffsetState(), s.GetNext())
}
