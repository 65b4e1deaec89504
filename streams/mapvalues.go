package streams

import (
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// MapValues gives every record another value. A null value of a type without nil stays null,
// and f is not called.
func MapValues[K, V, V2 any](in *KStream[K, V], f func(V) V2, value serde.Serde[V2], named ...Named) *KStream[K, V2] {
	name := in.b.nodeName("KSTREAM-MAPVALUES-", named)
	in.b.checkFunction(name, f == nil)
	node := hangProcessor(in.b, name, func() *mapValues[K, V, V2] { return &mapValues[K, V, V2]{f} }, []*graphNode{in.node})
	return &KStream[K, V2]{b: in.b, node: node, key: in.key, value: value, rekeyed: in.rekeyed}
}

type mapValues[K, V, V2 any] struct{ f func(V) V2 }

// Process forwards r with another value.
func (p *mapValues[K, V, V2]) Process(ctx processor.Context[K, V2], r processor.Record[K, V]) error {
	if missingValue(&r) {
		return ctx.Forward(processor.WithNullValue[V2](r))
	}
	return ctx.Forward(processor.WithValue(r, p.f(r.Value)))
}

// MapValuesWithKey is [MapValues] with a function that looks at the key too. A null key is
// given as the zero value.
func MapValuesWithKey[K, V, V2 any](in *KStream[K, V], f func(K, V) V2, value serde.Serde[V2], named ...Named) *KStream[K, V2] {
	name := in.b.nodeName("KSTREAM-MAPVALUES-", named)
	in.b.checkFunction(name, f == nil)
	node := hangProcessor(in.b, name, func() *mapValuesWithKey[K, V, V2] { return &mapValuesWithKey[K, V, V2]{f} }, []*graphNode{in.node})
	return &KStream[K, V2]{b: in.b, node: node, key: in.key, value: value, rekeyed: in.rekeyed}
}

type mapValuesWithKey[K, V, V2 any] struct{ f func(K, V) V2 }

// Process forwards r with another value.
func (p *mapValuesWithKey[K, V, V2]) Process(ctx processor.Context[K, V2], r processor.Record[K, V]) error {
	if missingValue(&r) {
		return ctx.Forward(processor.WithNullValue[V2](r))
	}
	return ctx.Forward(processor.WithValue(r, p.f(r.Key, r.Value)))
}

// FlatMapValues gives a record for each value that f makes out of one, with the key,
// timestamp and headers of the original. A null value of a type without nil gives one record
// with a null value, and f is not called.
func FlatMapValues[K, V, V2 any](in *KStream[K, V], f func(V) []V2, value serde.Serde[V2], named ...Named) *KStream[K, V2] {
	name := in.b.nodeName("KSTREAM-FLATMAPVALUES-", named)
	in.b.checkFunction(name, f == nil)
	node := hangProcessor(in.b, name, func() *flatMapValues[K, V, V2] { return &flatMapValues[K, V, V2]{f} }, []*graphNode{in.node})
	return &KStream[K, V2]{b: in.b, node: node, key: in.key, value: value, rekeyed: in.rekeyed}
}

type flatMapValues[K, V, V2 any] struct{ f func(V) []V2 }

// Process forwards a record for each new value.
func (p *flatMapValues[K, V, V2]) Process(ctx processor.Context[K, V2], r processor.Record[K, V]) error {
	if missingValue(&r) {
		return ctx.Forward(processor.WithNullValue[V2](r))
	}
	for _, v := range p.f(r.Value) {
		if err := ctx.Forward(processor.WithValue(r, v)); err != nil {
			return err
		}
	}
	return nil
}
