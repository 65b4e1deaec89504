package serde_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/golang/protobuf/proto" //nolint:staticcheck // the old module is what is tested
	"github.com/tidemark-streams/tidemark/serde"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"
)

// oldOrder is what protoc-gen-go of github.com/golang/protobuf 1.3 generates: struct tags,
// three methods, no ProtoReflect.
type oldOrder struct {
	Id                   string           `protobuf:"bytes,1,opt,name=id,proto3" json:"id,omitempty"`
	Amount               int64            `protobuf:"varint,2,opt,name=amount,proto3" json:"amount,omitempty"`
	Blob                 []byte           `protobuf:"bytes,3,opt,name=blob,proto3" json:"blob,omitempty"`
	Counts               map[string]int64 `protobuf:"bytes,4,rep,name=counts,proto3" json:"counts,omitempty" protobuf_key:"bytes,1,opt,name=key,proto3" protobuf_val:"varint,2,opt,name=value,proto3"`
	Next                 *oldOrder        `protobuf:"bytes,5,opt,name=next,proto3" json:"next,omitempty"`
	XXX_NoUnkeyedLiteral struct{}         `json:"-"`
	XXX_unrecognized     []byte           `json:"-"`
	XXX_sizecache        int32            `json:"-"`
}

func (m *oldOrder) Reset()         { *m = oldOrder{} }
func (m *oldOrder) String() string { return proto.CompactTextString(m) }
func (*oldOrder) ProtoMessage()    {}

// madeEarly is made before the init function below has run, as in a program whose serdes are
// variables of the package that holds the generated code.
var madeEarly = serde.ProtoV1[*oldOrder]()

//nolint:staticcheck // what old generated code does is what is tested
func init() { proto.RegisterType((*oldOrder)(nil), "tidemark.test.OldOrder") }

// unregistered is an old message whose generated init was left out.
type unregistered struct {
	Id string `protobuf:"bytes,1,opt,name=id,proto3"`
}

func (m *unregistered) Reset()         { *m = unregistered{} }
func (m *unregistered) String() string { return m.Id }
func (*unregistered) ProtoMessage()    {}

func equalOld(a, b *oldOrder) bool { return proto.Equal(a, b) }

func TestProtoV1Contract(t *testing.T) {
	s := serde.ProtoV1[*oldOrder]()
	if got := s.Name(); got != "proto:tidemark.test.OldOrder" {
		t.Errorf("name %q", got)
	}
	if got := madeEarly.Name(); got != s.Name() {
		t.Errorf("name %q of the serde that was made before the message was registered", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		o := &oldOrder{Id: rapid.String().Draw(t, "id"), Amount: rapid.Int64().Draw(t, "amount"),
			Blob: rapid.SliceOf(rapid.Byte()).Draw(t, "blob"), Counts: rapid.MapOfN(rapid.String(), rapid.Int64(), 0, 5).Draw(t, "counts")}
		if rapid.Bool().Draw(t, "nested") {
			o.Next = &oldOrder{Blob: rapid.SliceOf(rapid.Byte()).Draw(t, "next")}
		}
		checkContract(t, s, o, equalOld)
		b, err := s.Append(nil, o)
		if err != nil {
			t.Fatal(err)
		}
		var read oldOrder
		if err := proto.Unmarshal(b, &read); err != nil || !proto.Equal(&read, o) {
			t.Fatalf("the old module reads %v, %v; want %v", &read, err, o)
		}
	})
	checkContract(t, s, &oldOrder{}, equalOld)
}

func TestProtoV1Bytes(t *testing.T) {
	s := serde.ProtoV1[*oldOrder]()
	counts := map[string]int64{}
	for i := range 20 {
		counts[fmt.Sprint(i)] = int64(i)
	}
	first, err := s.Append(nil, &oldOrder{Counts: counts})
	for range 20 {
		b, err2 := s.Append(nil, &oldOrder{Counts: counts})
		if err != nil || err2 != nil || !bytes.Equal(first, b) {
			t.Fatalf("one message was written in two ways: %x and %x, %v %v", first, b, err, err2)
		}
	}
	b, err := s.Append(nil, &oldOrder{Id: "a", Amount: 300})
	if got := hex.EncodeToString(b); got != "0a016110ac02" || err != nil {
		t.Errorf("append gives %s, %v; want 0a016110ac02", got, err)
	}
	// Field 9 is not known to the struct: it must come out again.
	unknown := []byte{0x0a, 0x01, 'a', 0x48, 0x07}
	o, err := s.Decode(unknown)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := s.Append(nil, o); !bytes.Equal(b, unknown) || err != nil {
		t.Errorf("the unknown field did not survive: %x, %v; want %x", b, err, unknown)
	}
}

func TestProtoV1Errors(t *testing.T) {
	s := serde.ProtoV1[*oldOrder]()
	if v, err := s.Decode([]byte{0x0a}); err == nil || v != nil {
		t.Errorf("decode of half a field = %v, %v; want nil and an error", v, err)
	}
	if _, err := s.Append(nil, nil); err == nil {
		t.Error("a nil message was written: it would be read as an empty one")
	}
	unfit(t, serde.ProtoV1[protoadapt.MessageV1](), "pointer to a struct")
}

func TestProtoV1OfOtherMessages(t *testing.T) {
	// Code that was generated anew still has the old methods.
	now, old := serde.Proto[*wrapperspb.Int64Value](), serde.ProtoV1[*wrapperspb.Int64Value]()
	if now.Name() != old.Name() {
		t.Errorf("names %q and %q of one message", now.Name(), old.Name())
	}
	b, err := now.Append(nil, wrapperspb.Int64(7))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := old.Decode(b); err != nil || v.GetValue() != 7 {
		t.Errorf("decode = %v, %v", v, err)
	}
	s := serde.ProtoV1[*unregistered]()
	if a, b := s.Name(), serde.ProtoV1[*unregistered]().Name(); a != b || a == "proto:" {
		t.Errorf("names %q and %q of an unregistered message", a, b)
	}
	checkContract(t, s, &unregistered{Id: "x"}, func(a, b *unregistered) bool { return a.Id == b.Id })
}
