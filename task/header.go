package task

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// HeaderKey is the key of the one header of a changelog record. Kafka Streams' own keys there
// are "v" and "c"; it ignores others.
const HeaderKey = "tm"

// A header that says which schema version the value has is one of version 2.
const (
	headerVersion       = 1
	schemaHeaderVersion = 2
)

// ChangeKind says why a changelog record was written.
type ChangeKind uint8

const (
	// ChangeCommit is a write of a processor, committed with the offsets of what caused it.
	ChangeCommit ChangeKind = 1
	// ChangeSeed is a row of a store that was complete when its changelog had lost it. The id is that of the commit
	// at which the store stood.
	ChangeSeed ChangeKind = 2
)

// ChangeHeader is the content of that header; see docs/format.md, "Changelog header". All
// records of a task's commit share one (but for the schema version): the source position is the one the commit brings
// the task to, since a record stands for all writes of its key in the interval.
type ChangeHeader struct {
	Kind ChangeKind
	ID   statestore.CommitID
	// Source hashes the name of the task's first source topic, Position is the next offset
	// of its partition.
	Source   uint32
	Position int64
	// Schema is the schema version of the record's value; 0 = the store does not count.
	Schema uint32
}

// Append appends the header's bytes.
func (h ChangeHeader) Append(b []byte) []byte {
	version := byte(headerVersion)
	if h.Schema > 0 {
		version = schemaHeaderVersion
	}
	b = append(b, version, byte(h.Kind))
	b = binary.AppendVarint(b, h.ID.Epoch)
	b = binary.AppendVarint(b, h.ID.Number)
	b = binary.BigEndian.AppendUint32(b, h.Source)
	b = binary.AppendVarint(b, h.Position)
	if h.Schema > 0 {
		b = binary.AppendUvarint(b, uint64(h.Schema))
	}
	return b
}

// FindChangeHeader gives the header of a changelog record; ok is false when it has none,
// because another program wrote it.
func FindChangeHeader(headers []kafka.Header) (h ChangeHeader, ok bool, err error) {
	for _, x := range headers {
		if x.Key == HeaderKey {
			h, err = decodeChangeHeader(x.Value)
			return h, err == nil, err
		}
	}
	return h, false, nil
}

func decodeChangeHeader(b []byte) (h ChangeHeader, err error) {
	if len(b) < 2 {
		return h, fmt.Errorf("changelog header of %d bytes is damaged", len(b))
	}
	if b[0] != headerVersion && b[0] != schemaHeaderVersion {
		return h, fmt.Errorf("changelog header has version %d, this program knows up to %d: a newer Tidemark wrote it", b[0], schemaHeaderVersion)
	}
	h.Kind = ChangeKind(b[1])
	d := decoder{b: b[2:]}
	h.ID.Epoch, h.ID.Number = d.varint(), d.varint()
	if d.bad || len(d.b) < 4 {
		return h, fmt.Errorf("changelog header %x is damaged", b)
	}
	h.Source = binary.BigEndian.Uint32(d.b)
	d.b = d.b[4:]
	h.Position = d.varint()
	if b[0] == schemaHeaderVersion {
		schema, n := binary.Uvarint(d.b)
		if h.Schema = uint32(schema); n <= 0 || schema == 0 || uint64(h.Schema) != schema {
			return h, fmt.Errorf("changelog header %x is damaged", b)
		}
		d.b = d.b[n:]
	}
	if d.bad || len(d.b) != 0 {
		return h, fmt.Errorf("changelog header %x is damaged", b)
	}
	return h, nil
}
