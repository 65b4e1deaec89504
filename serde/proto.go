package serde

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

// Proto gives the serde of a generated protobuf message, in the wire format:
//
//	orders := serde.Proto[*shoppb.Order]()
//
// M is the pointer to the generated struct; every Decode gives a new message that shares
// nothing with the bytes. Fields unknown to M are kept. Maps are written in the order of their
// keys, so that equal messages have equal bytes in one program; protobuf does not promise as
// much across its releases and languages, so prefer a plain key to a message.
//
// Its name is "proto:" and the full name of the message, for example "proto:shop.Order". A
// message type without a descriptor of its own (the interface [proto.Message], dynamicpb)
// gives an error from every Append and Decode.
func Proto[M proto.Message]() Serde[M] {
	return newProto(func(m M) proto.Message { return m })
}

// ProtoV1 is [Proto] for messages that were generated for the old module
// github.com/golang/protobuf and do not have the method ProtoReflect. Bytes and name are the
// same as after generating the code anew and changing to Proto. Give the message the proto
// name it has in other languages (generated code registers it with init); the name of one
// that is not registered is made from the Go type.
func ProtoV1[M protoadapt.MessageV1]() Serde[M] {
	return newProto(func(m M) proto.Message { return protoadapt.MessageV2Of(m) })
}

// protoSerde writes messages of the pointer type M through view, which gives the same
// message in the current interface.
type protoSerde[M any] struct {
	view func(M) proto.Message
	// identify gives the name, and why M cannot be served. It is asked at the first use, not
	// when the serde is made: that is often in a package's variables, which are set before the
	// init functions that give the generated messages of the same package their descriptors.
	identify func() (name string, err error)
}

// newProto never fails by itself: serdes are made in variable declarations, where an error has
// no place to go. It fails in the first use instead, with a name that says so.
func newProto[M any](view func(M) proto.Message) Serde[M] {
	return protoSerde[M]{view: view, identify: sync.OnceValues(func() (string, error) { return identify(view) })}
}

func identify[M any](view func(M) proto.Message) (name string, err error) {
	t := reflect.TypeFor[M]()
	unfit := func(why string) (string, error) {
		return "proto:invalid:" + t.String(),
			fmt.Errorf("%s cannot be a protobuf message type here: %s; use the pointer to a generated struct", t, why)
	}
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return unfit("it is not a pointer to a struct")
	}
	if embedsMessage(t.Elem()) {
		return unfit("it only embeds a message")
	}
	d := view(newMessage[M]()).ProtoReflect().Descriptor()
	if d == nil {
		return unfit("it has no descriptor of its own")
	}
	return "proto:" + string(d.FullName()), nil
}

// embedsMessage finds structs that are messages only by an embedded one: protobuf would read
// and write that one, or fail on its nil, and lose the fields around it.
func embedsMessage(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && (f.Type.Implements(reflect.TypeFor[proto.Message]()) || f.Type.Implements(reflect.TypeFor[protoadapt.MessageV1]()) ||
			reflect.PointerTo(f.Type).Implements(reflect.TypeFor[proto.Message]())) {
			return true
		}
	}
	return false
}

var errNilMessage = errors.New("a nil message is null, and null has no encoding")

func (s protoSerde[M]) Name() string {
	name, _ := s.identify()
	return name
}

func (s protoSerde[M]) Append(dst []byte, v M) ([]byte, error) {
	if _, err := s.identify(); err != nil {
		return nil, err
	}
	if IsNil(&v) {
		return nil, errNilMessage
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(notNil(dst), s.view(v))
}

func (s protoSerde[M]) Decode(b []byte) (M, error) {
	var none M
	if _, err := s.identify(); err != nil {
		return none, err
	}
	m := newMessage[M]()
	if err := proto.Unmarshal(b, s.view(m)); err != nil {
		return none, err
	}
	return m, nil
}

// newMessage goes through reflect, so that old messages, which protobuf can only make behind
// its wrapper, take the same way as new ones. It costs the one allocation of the message.
func newMessage[M any]() M { return reflect.New(reflect.TypeFor[M]().Elem()).Interface().(M) }
