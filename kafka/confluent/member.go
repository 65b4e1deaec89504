//go:build cgo

package confluent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// identity is what a serialised group metadata says.
type identity struct {
	group, member string
	generation    int32
}

var errMetadata = errors.New("librdkafka's group metadata has an unknown form")

// identify reads generation and member id out of librdkafka's group metadata, which the
// binding keeps opaque. The form (rd_kafka_consumer_group_metadata_write) is
//
//	"CGMDv2:" generation(int32, host order) group "\0" member "\0" noInstance(int8) [instance "\0"]
//
// Another form is an error, never a guess.
func identify(md *ck.ConsumerGroupMetadata) (identity, error) {
	v := reflect.ValueOf(md).Elem()
	if v.NumField() != 1 || v.Field(0).Kind() != reflect.Slice || v.Field(0).Type().Elem().Kind() != reflect.Uint8 {
		return identity{}, errMetadata
	}
	return parseMetadata(v.Field(0).Bytes())
}

func parseMetadata(b []byte) (identity, error) {
	rest, ok := bytes.CutPrefix(b, []byte("CGMDv2:"))
	if !ok || len(rest) < 4 {
		return identity{}, errMetadata
	}
	generation := int32(binary.NativeEndian.Uint32(rest))
	group, rest, ok := bytes.Cut(rest[4:], []byte{0})
	if !ok {
		return identity{}, errMetadata
	}
	member, rest, ok := bytes.Cut(rest, []byte{0})
	if !ok || len(rest) == 0 {
		return identity{}, errMetadata
	}
	return identity{group: string(group), member: string(member), generation: generation}, nil
}

// snapshot is what Member.Native holds.
type snapshot struct {
	md *ck.ConsumerGroupMetadata
	of *membership // nil: of a consumer that is not this package's
}

// nativeOf gives the metadata snapshot of a member, after checking that it says what the
// member says. One without a member id is refused: brokers take offsets in a transaction
// from nobody, without any fence. So is one that the membership itself knows to be old:
// the broker would say the same, but to librdkafka that is the end of the transaction.
func nativeOf(m kafka.Member) (*ck.ConsumerGroupMetadata, error) {
	const op = "send offsets to transaction"
	if m.ID == "" && !m.Standalone {
		return nil, &kafka.Error{Class: kafka.ClassUnknownMember, Op: op, On: m.Group,
			Err: errors.New("no member id: the process is not a member of the group")}
	}
	snap, ok := m.Native.(*snapshot)
	if !ok || snap == nil {
		return nil, invalid(op, "the member of group %s is a snapshot of another client (%T)", m.Group, m.Native)
	}
	is, err := identify(snap.md)
	if err != nil {
		return nil, invalid(op, "%w", err)
	}
	if is != (identity{group: m.Group, member: m.ID, generation: m.Generation}) {
		return nil, invalid(op, "%w", fmt.Errorf("the member (%s, %s, generation %d) does not match its native snapshot (%s, %s, generation %d)",
			m.Group, m.ID, m.Generation, is.group, is.member, is.generation))
	}
	if snap.of == nil {
		return snap.md, nil
	}
	if now := snap.of.State().Member; now.Same(m) && now.Generation > m.Generation {
		return nil, &kafka.Error{Class: kafka.ClassIllegalGeneration, Op: op, On: m.Group,
			Err: fmt.Errorf("the member's generation is %d by now, not %d", now.Generation, m.Generation)}
	}
	return snap.md, nil
}
