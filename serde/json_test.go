package serde_test

import (
	"reflect"
	"testing"

	"github.com/tidemark-streams/tidemark/serde"
)

type pair[A, B any] struct {
	First  A
	Second B
}

func TestJSONNames(t *testing.T) {
	for got, want := range map[string]string{
		serde.JSON[order]().Name():             "json:serde_test.order",
		serde.JSON[*order]().Name():            "json:serde_test.order",
		serde.JSON[[]order]().Name():           "json:[]serde_test.order",
		serde.JSON[map[string]int]().Name():    "json:map[string]int",
		serde.JSON[int]().Name():               "json:int",
		serde.JSON[pair[string, int]]().Name(): "json:serde_test.pair[string,int]",
	} {
		if got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
}

func TestJSONBytes(t *testing.T) {
	s := serde.JSON[order]()
	for range 20 { // map order is random from one loop to the next
		b, err := s.Append(nil, order{ID: "<a&b>", Counts: map[string]int64{"b": 2, "c": 3, "a": 1}})
		if want := `{"id":"<a&b>","amount":0,"counts":{"a":1,"b":2,"c":3}}`; string(b) != want || err != nil {
			t.Fatalf("append gives %s, %v; want %s", b, err, want)
		}
	}
}

func TestJSONErrors(t *testing.T) {
	s := serde.JSON[order]()
	for _, text := range []string{"", "{", `{"id":1}`, `{"id":"x"} trailing`, "[]", "\xff"} {
		if v, err := s.Decode([]byte(text)); err == nil || !reflect.DeepEqual(v, order{}) {
			t.Errorf("decode of %q = %v, %v; want an error and the zero value", text, v, err)
		}
	}
	if _, err := serde.JSON[func()]().Append(nil, nil); err == nil {
		t.Error("a function was encoded")
	}
	if v, err := serde.JSON[*order]().Decode([]byte("null")); v != nil || err != nil {
		t.Errorf("decode of null = %v, %v; want nil", v, err)
	}
}
