package serde_test

import (
	"errors"
	"reflect"
	"testing"
	"unsafe"

	"github.com/tidemark-streams/tidemark/serde"
)

type (
	namedSlice   []int
	namedMap     map[string]int
	namedPointer *int
	emptyStruct  struct{}
	onePointer   struct{ p *int }
)

// nilCase checks one type with its zero value and values that are not nil.
func nilCase[T any](t *testing.T, hasNil bool, notNil ...T) {
	t.Helper()
	var zero T
	name := reflect.TypeFor[T]().String()
	if got := serde.HasNil[T](); got != hasNil {
		t.Errorf("HasNil[%s]() = %v, want %v", name, got, hasNil)
	}
	if got := serde.IsNil(&zero); got != hasNil {
		t.Errorf("IsNil of the zero %s = %v, want %v", name, got, hasNil)
	}
	for _, v := range notNil {
		if serde.IsNil(&v) {
			t.Errorf("IsNil of the %s %#v = true", name, v)
		}
	}
}

func TestNil(t *testing.T) {
	one := 1
	empty := make([]byte, 5)[5:]
	nilCase(t, true, &one)
	nilCase(t, true, namedPointer(&one))
	nilCase(t, true, []byte{}, []byte{1}, make([]byte, 0, 4), empty, empty[:0:0])
	nilCase(t, true, namedSlice{})
	nilCase(t, true, []emptyStruct{}, make([]emptyStruct, 3))
	nilCase(t, true, map[string]int{})
	nilCase(t, true, namedMap{})
	nilCase(t, true, make(chan int))
	nilCase(t, true, func() {})
	nilCase(t, true, unsafe.Pointer(&one))
	// An interface with a nil inside is not a nil interface, as in the language.
	nilCase[any](t, true, 0, "", struct{}{}, (*int)(nil), []byte(nil))
	nilCase[error](t, true, errors.New("x"), (*serde.Error)(nil))

	nilCase(t, false, "", "x")
	nilCase(t, false, 0, 1)
	nilCase(t, false, false)
	nilCase(t, false, 0.0)
	nilCase(t, false, emptyStruct{})
	nilCase(t, false, onePointer{}, onePointer{&one})
	nilCase(t, false, [1]*int{})
	nilCase(t, false, [0]*int{})
}

func TestNilAllocates0(t *testing.T) {
	var slice []byte
	var text string
	var number int64
	var e error
	if n := testing.AllocsPerRun(100, func() {
		if !serde.IsNil(&slice) || serde.IsNil(&text) || serde.IsNil(&number) || !serde.IsNil(&e) {
			t.Error("wrong answer")
		}
	}); n != 0 {
		t.Errorf("IsNil allocates %v times", n)
	}
}

var sink bool

// BenchmarkIsNil compares with the same test by reflect, both behind a call, as in generic code.
func BenchmarkIsNil(b *testing.B) {
	s := []byte{1}
	b.Run("first word", func(b *testing.B) {
		for b.Loop() {
			sink = firstWord(&s)
		}
	})
	b.Run("reflect", func(b *testing.B) {
		for b.Loop() {
			sink = byReflect(&s)
		}
	})
}

//go:noinline
func firstWord[T any](v *T) bool { return serde.IsNil(v) }

//go:noinline
func byReflect[T any](v *T) bool { return serde.HasNil[T]() && reflect.ValueOf(v).Elem().IsNil() }
