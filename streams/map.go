package streams

import (
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// KeyValue is what a function for [FlatMap] makes.
type KeyValue[K, V any] struct {
	Key   K
	Value V
}

// Map gives every record another key and value. A record that f cannot be called with,
// because its value is a null of a type without nil, is dropped and counted.
func Map[K, V, K2, V2 any](in *KStream[K, V], f func(K, V) (K2, V2), with Serdes[K2, V2]) *KStream[K2, V2] {
	name := in.b.nodeName("KSTREAM-MAP-", with.name)
	in.b.checkFunction(name, f == nil)
	node := hangProcessor(in.b, name, func() *mapBoth[K, V, K2, V2] { return &mapBoth[K, V, K2, V2]{f} }, []*graphNode{in.node})
	return &KStream[K2, V2]{b: in.b, node: node, key: with.key, value: with.value, rekeyed: true}
}

type mapBoth[K, V, K2, V2 any] struct{ f func(K, V) (K2, V2) }

// Process forwards r with another key and value.
func (p *mapBoth[K, V, K2, V2]) Process(ctx processor.Context[K2, V2], r processor.Record[K, V]) error {
	if reason := missing(&r); reason != "" {
		processor.Drop(ctx, reason)
		return nil
	}
	key, value := p.f(r.Key, r.Value)
	return ctx.Forward(processor.Record[K2, V2]{Key: key, Value: value, Timestamp: r.Timestamp, Headers: r.Headers})
}

// FlatMap gives a record for each pair that f makes out of one, with the timestamp and headers
// of the original. A record that f cannot be called with, because its value is a null
// of a type without nil, is dropped and counted.
func FlatMap[K, V, K2, V2 any](in *KStream[K, V], f func(K, V) []KeyValue[K2, V2], with Serdes[K2, V2]) *KStream[K2, V2] {
	name := in.b.nodeName("KSTREAM-FLATMAP-", with.name)
	in.b.checkFunction(name, f == nil)
	node := hangProcessor(in.b, name, func() *flatMap[K, V, K2, V2] { return &flatMap[K, V, K2, V2]{f} }, []*graphNode{in.node})
	return &KStream[K2, V2]{b: in.b, node: node, key: with.key, value: with.value, rekeyed: true}
}

type flatMap[K, V, K2, V2 any] struct {
	f func(K, V) []KeyValue[K2, V2]
}

// Process forwards a record for each new pair.
func (p *flatMap[K, V, K2, V2]) Process(ctx processor.Context[K2, V2], r processor.Record[K, V]) error {
	if reason := missing(&r); reason != "" {
		processor.Drop(ctx, reason)
		return nil
	}
	for _, kv := range p.f(r.Key, r.Value) {
		if err := ctx.Forward(processor.Record[K2, V2]{Key: kv.Key, Value: kv.Value, Timestamp: r.Timestamp, Headers: r.Headers}); err != nil {
			return err
		}
	}
	return nil
}

// SelectKey gives every record another key. A record that f cannot be called with, because its
// value is a null of a type without nil, is dropped and counted.
func SelectKey[K, V, K2 any](in *KStream[K, V], f func(K, V) K2, key serde.Serde[K2], named ...Named) *KStream[K2, V] {
	name := in.b.nodeName("KSTREAM-KEY-SELECT-", named)
	return &KStream[K2, V]{b: in.b, node: hangSelectKey(in, name, f), key: key, value: in.value, rekeyed: true}
}

func hangSelectKey[K, V, K2 any](in *KStream[K, V], name string, f func(K, V) K2) *graphNode {
	in.b.checkFunction(name, f == nil)
	return hangProcessor(in.b, name, func() *selectKey[K, V, K2] { return &selectKey[K, V, K2]{f} }, []*graphNode{in.node})
}

type selectKey[K, V, K2 any] struct{ f func(K, V) K2 }

// Process forwards r with another key.
func (p *selectKey[K, V, K2]) Process(ctx processor.Context[K2, V], r processor.Record[K, V]) error {
	if reason := missing(&r); reason != "" {
		processor.Drop(ctx, reason)
		return nil
	}
	return ctx.Forward(processor.WithKey(r, p.f(r.Key, r.Value)))
}
