package streams

import "github.com/tidemark-streams/tidemark/processor"

// Filter keeps the records for which keep is true. A record that keep cannot be called with,
// because its value is a null of a type without nil, is kept.
func (s *KStream[K, V]) Filter(keep func(K, V) bool, named ...Named) *KStream[K, V] {
	return s.filter(keep, true, named)
}

// FilterNot keeps the records for which drop is false. A record that drop cannot be called
// with, because its value is a null of a type without nil, is kept.
func (s *KStream[K, V]) FilterNot(drop func(K, V) bool, named ...Named) *KStream[K, V] {
	return s.filter(drop, false, named)
}

func (s *KStream[K, V]) filter(f func(K, V) bool, want bool, named []Named) *KStream[K, V] {
	name := s.b.nodeName("KSTREAM-FILTER-", named)
	s.b.checkFunction(name, f == nil)
	return s.then(hangProcessor(s.b, name, func() *filter[K, V] { return &filter[K, V]{f, want} }, []*graphNode{s.node}))
}

type filter[K, V any] struct {
	f    func(K, V) bool
	want bool
}

// Process forwards r if f says so.
func (p *filter[K, V]) Process(ctx processor.Context[K, V], r processor.Record[K, V]) error {
	if missing(&r) == "" && p.f(r.Key, r.Value) != p.want {
		return nil
	}
	return ctx.Forward(r)
}

// Peek calls look with every record and gives the records on unchanged. Records that look
// cannot be called with, because their value is a null of a type without nil, pass by.
func (s *KStream[K, V]) Peek(look func(K, V), named ...Named) *KStream[K, V] {
	return s.then(s.peek("KSTREAM-PEEK-", look, true, named))
}

// Foreach calls f with every record, and is the end of the stream. Records that f cannot be
// called with, because their value is a null of a type without nil, are dropped and
// counted.
func (s *KStream[K, V]) Foreach(f func(K, V), named ...Named) {
	s.peek("KSTREAM-FOREACH-", f, false, named)
}

func (s *KStream[K, V]) peek(prefix string, f func(K, V), forward bool, named []Named) *graphNode {
	name := s.b.nodeName(prefix, named)
	s.b.checkFunction(name, f == nil)
	return hangProcessor(s.b, name, func() *peek[K, V] { return &peek[K, V]{f, forward} }, []*graphNode{s.node})
}

type peek[K, V any] struct {
	f       func(K, V)
	forward bool
}

// Process calls f.
func (p *peek[K, V]) Process(ctx processor.Context[K, V], r processor.Record[K, V]) error {
	reason := missing(&r)
	if reason == "" {
		p.f(r.Key, r.Value)
	}
	if p.forward {
		return ctx.Forward(r)
	}
	if reason != "" {
		processor.Drop(ctx, reason)
	}
	return nil
}

func (b *Builder) checkFunction(node string, isNil bool) {
	if isNil {
		b.problem("%s: its function is nil", node)
	}
}
