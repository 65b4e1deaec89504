package task

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore"
)

// Metadata stands in the metadata of every source offset that a task commits; see
// docs/format.md, "Offset metadata", for its bytes. It makes the group's offsets say which
// commit of which stores they belong to.
type Metadata struct {
	// PartitionTime is the largest timestamp processed of this one partition, in
	// milliseconds, -1 for none. It is the part that Kafka Streams reads.
	PartitionTime int64
	// ID is the commit these offsets belong to; all partitions of a task have the same.
	ID statestore.CommitID
	// StreamTime of the task in milliseconds, -1 for none.
	StreamTime int64
	// Sources and Stores are what the commit covered, sorted by Name.
	Sources, Stores []Covered
	// Starts says of each store without a changelog which record of this one partition was the first
	// that it could hold, sorted by Name. A store that is not in it began nobody knows where.
	Starts []StoreStart
}

// StoreStart is where a store without a changelog began in a source partition.
type StoreStart struct {
	// Name hashes the store's name.
	Name uint32
	// Offset of the first record.
	Offset int64
}

// Covered is a source topic or store, by four bytes of hash each.
type Covered struct {
	// Name hashes the topic's or the store's name.
	Name uint32
	// Topic hashes the UUID of the source topic, or of the store's changelog; 0 for none.
	Topic uint32
}

const (
	kafkaStreamsMagic = 1 // partition time, 8 bytes; Kafka Streams ignores what follows
	metadataMagic     = 'T'
	metadataVersion   = 1
	startsVersion     = 2    // 1 with Starts behind; written only where there are some
	maxMetadata       = 4096 // the broker's default offset.metadata.max.bytes
)

// ErrForeignMetadata marks offset metadata that Tidemark did not write.
var ErrForeignMetadata = errors.New("metadata of another program")

// HashName is the hash of [Covered].
func HashName(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

// HashTopicID is the hash of a topic's UUID; never 0 for one that is set.
func HashTopicID(id [16]byte) uint32 {
	if id == ([16]byte{}) {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write(id[:])
	return max(h.Sum32(), 1)
}

func compareCovered(a, b Covered) int {
	if a.Name < b.Name {
		return -1
	} else if a.Name > b.Name {
		return 1
	}
	return 0
}

// Encode gives the metadata as the text that is committed.
func (m Metadata) Encode() (string, error) {
	b := make([]byte, 0, 64)
	b = append(b, kafkaStreamsMagic)
	b = binary.BigEndian.AppendUint64(b, uint64(m.PartitionTime))
	version := byte(metadataVersion)
	if len(m.Starts) > 0 {
		version = startsVersion
	}
	b = append(b, metadataMagic, version)
	b = binary.AppendVarint(b, m.ID.Epoch)
	b = binary.AppendVarint(b, m.ID.Number)
	b = binary.AppendVarint(b, m.StreamTime)
	for _, list := range [][]Covered{m.Sources, m.Stores} {
		list = slices.SortedFunc(slices.Values(list), compareCovered)
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, c := range list {
			b = binary.BigEndian.AppendUint32(b, c.Name)
			b = binary.BigEndian.AppendUint32(b, c.Topic)
		}
	}
	if version == startsVersion {
		b = appendStarts(b, m.Starts)
	}
	s := base64.StdEncoding.EncodeToString(b)
	if len(s) > maxMetadata {
		return "", fmt.Errorf("the metadata of %d sources and %d stores needs %d bytes, the broker takes %d; divide the sub-topology", len(m.Sources), len(m.Stores), len(s), maxMetadata)
	}
	return s, nil
}

// DecodeMetadata reads committed metadata. Text that Tidemark did not write is
// ErrForeignMetadata; that of Kafka Streams still gives the partition time.
func DecodeMetadata(s string) (Metadata, error) {
	m := Metadata{PartitionTime: -1, StreamTime: -1}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b) < 9 || (b[0] != kafkaStreamsMagic && b[0] != 2) {
		return m, ErrForeignMetadata
	}
	m.PartitionTime = int64(binary.BigEndian.Uint64(b[1:]))
	kafkaStreams := b[0]
	b = b[9:]
	if kafkaStreams != kafkaStreamsMagic || len(b) < 2 || b[0] != metadataMagic {
		return m, ErrForeignMetadata
	}
	version := b[1]
	if version != metadataVersion && version != startsVersion {
		return m, fmt.Errorf("offset metadata has version %d, this program knows %d: a newer Tidemark wrote it", version, startsVersion)
	}
	d := decoder{b: b[2:]}
	m.ID.Epoch, m.ID.Number, m.StreamTime = d.varint(), d.varint(), d.varint()
	m.Sources, m.Stores = d.covered(), d.covered()
	if version == startsVersion {
		m.Starts = d.starts()
	}
	if d.bad || len(d.b) != 0 {
		return m, fmt.Errorf("offset metadata %q is damaged", s)
	}
	return m, nil
}

// decoder reads fields until one is not whole; then it stays bad.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) covered() []Covered {
	n, k := binary.Uvarint(d.b)
	if k <= 0 || n > uint64(len(d.b)-k)/8 {
		d.bad = true
		return nil
	}
	d.b = d.b[k:]
	var out []Covered
	for range n {
		out = append(out, Covered{binary.BigEndian.Uint32(d.b), binary.BigEndian.Uint32(d.b[4:])})
		d.b = d.b[8:]
	}
	return out
}
