package serde_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/serde"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"
)

func equalProto[M proto.Message](a, b M) bool { return proto.Equal(a, b) }

func TestProtoContract(t *testing.T) {
	times := serde.Proto[*timestamppb.Timestamp]()
	blobs := serde.Proto[*wrapperspb.BytesValue]()
	structs := serde.Proto[*structpb.Struct]()
	rapid.Check(t, func(t *rapid.T) {
		checkContract(t, times, &timestamppb.Timestamp{Seconds: rapid.Int64().Draw(t, "s"), Nanos: rapid.Int32().Draw(t, "n")}, equalProto)
		// A bytes field is what a decoder is tempted to leave pointing into its input.
		checkContract(t, blobs, wrapperspb.Bytes(rapid.SliceOf(rapid.Byte()).Draw(t, "blob")), equalProto)
		fields := map[string]*structpb.Value{}
		for k, v := range rapid.MapOfN(rapid.String(), rapid.Float64(), 0, 9).Draw(t, "fields") {
			fields[k] = structpb.NewNumberValue(v)
		}
		checkContract(t, structs, &structpb.Struct{Fields: fields}, equalProto)
	})
	checkContract(t, times, &timestamppb.Timestamp{}, equalProto)
}

func TestProtoMapOrder(t *testing.T) {
	fields := map[string]*structpb.Value{}
	for i := range 20 {
		fields[fmt.Sprint("field ", i)] = structpb.NewBoolValue(true)
	}
	s := serde.Proto[*structpb.Struct]()
	first, err := s.Append(nil, &structpb.Struct{Fields: fields})
	for range 20 {
		b, err2 := s.Append(nil, &structpb.Struct{Fields: fields})
		if err != nil || err2 != nil || !bytes.Equal(first, b) {
			t.Fatalf("one message was written in two ways: %x and %x, %v %v", first, b, err, err2)
		}
	}
}

func TestProtoBytesAndName(t *testing.T) {
	s := serde.Proto[*wrapperspb.Int64Value]()
	b, err := s.Append(nil, wrapperspb.Int64(300))
	if got := hex.EncodeToString(b); got != "08ac02" || err != nil {
		t.Errorf("append gives %s, %v; want 08ac02", got, err)
	}
	if got := s.Name(); got != "proto:google.protobuf.Int64Value" {
		t.Errorf("name %q", got)
	}
	a, err := s.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Decode(b)
	if err != nil || a == c {
		t.Errorf("two decodes gave one message (%p, %p, %v)", a, c, err)
	}
}

func TestProtoErrors(t *testing.T) {
	s := serde.Proto[*wrapperspb.Int64Value]()
	if v, err := s.Decode([]byte{0x08}); err == nil || v != nil {
		t.Errorf("decode of half a field = %v, %v; want nil and an error", v, err)
	}
	if _, err := s.Append(nil, nil); err == nil {
		t.Error("a nil message was written: it would be read as an empty one")
	}
	part := serde.Proto[*descriptorpb.UninterpretedOption_NamePart]()
	if _, err := part.Append(nil, &descriptorpb.UninterpretedOption_NamePart{}); err == nil {
		t.Error("a message without its required fields was written")
	}
	if v, err := part.Decode(nil); err == nil || v != nil {
		t.Errorf("decode of a message without its required fields = %v, %v", v, err)
	}
}

// embedding types are messages to the compiler only.
type embedsPointer struct{ *wrapperspb.Int64Value }
type embedsValue struct{ wrapperspb.Int64Value }
type embedsInterface struct{ proto.Message }

func TestProtoOfUnfitTypes(t *testing.T) {
	unfit(t, serde.Proto[proto.Message](), "pointer to a struct")
	unfit(t, serde.Proto[*dynamicpb.Message](), "descriptor")
	unfit(t, serde.Proto[*embedsPointer](), "embeds")
	unfit(t, serde.Proto[embedsPointer](), "pointer to a struct")
	unfit(t, serde.Proto[*embedsValue](), "embeds")
	unfit(t, serde.Proto[*embedsInterface](), "embeds")
}

func unfit[M any](t *testing.T, s serde.Serde[M], why string) {
	t.Helper()
	var m M
	if !strings.HasPrefix(s.Name(), "proto:invalid:") {
		t.Errorf("name %q does not say that the type is unfit", s.Name())
	}
	if _, err := s.Append(nil, m); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: append error %v, want one about %q", s.Name(), err, why)
	}
	if _, err := s.Decode(nil); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: decode error %v, want one about %q", s.Name(), err, why)
	}
}

func TestProtoDecodeAllocatesTheMessage(t *testing.T) {
	s := serde.Proto[*wrapperspb.Int64Value]()
	b := []byte{0x08, 0xac, 0x02}
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Decode(b) }); n != 1 {
		t.Errorf("decode allocates %v times, want 1", n)
	}
	m, buf := wrapperspb.Int64(300), make([]byte, 0, 16)
	if n := testing.AllocsPerRun(100, func() { buf, _ = s.Append(buf[:0], m) }); n != 0 {
		t.Errorf("append allocates %v times", n)
	}
}
