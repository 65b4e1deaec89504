package streams

import "github.com/tidemark-streams/tidemark/processor"

// Process runs the records through a processor, which reaches the stores whose handles are
// named here. newProcessor makes one for each task:
//
//	unique := streams.Process(in, newDedupe, streams.With(serde.String, serde.String), seen)
//
// It is also called, and what it gives thrown away, when the topology is built. The processor
// may change keys; it is given nulls as they are: see [processor.Record].
func Process[KIn, VIn, KOut, VOut any, P processor.Processor[KIn, VIn, KOut, VOut]](in *KStream[KIn, VIn], newProcessor func() P, out Serdes[KOut, VOut], stores ...processor.StoreDef) *KStream[KOut, VOut] {
	const prefix = "KSTREAM-PROCESSOR-"
	name := in.b.given(prefix, out.name) // a given name does not move the counter here
	if name == "" {
		name = in.b.generated(prefix)
	}
	node := hangProcessor(in.b, name, newProcessor, []*graphNode{in.node}, stores...)
	return &KStream[KOut, VOut]{b: in.b, node: node, key: out.key, value: out.value, rekeyed: true}
}

// ProcessValues is [Process] for a processor that cannot change keys: what it forwards gets the
// key of the record in process, so that no repartition is needed behind it. It can forward only
// while it processes a record, not in a punctuation.
func ProcessValues[K, VIn, VOut any, P processor.Processor[K, VIn, K, VOut]](in *KStream[K, VIn], newProcessor func() P, out Serdes[K, VOut], stores ...processor.StoreDef) *KStream[K, VOut] {
	const prefix = "KSTREAM-PROCESSVALUES-"
	name := in.b.given(prefix, out.name) // a given name does not move the counter here
	if name == "" {
		name = in.b.generated(prefix)
	}
	node := in.b.hang(&graphNode{name: name, write: func(t *processor.Topology, parents []string) {
		processor.AddFixedKeyProcessor(t, name, newProcessor, parents, stores...)
	}}, in.node)
	return &KStream[K, VOut]{b: in.b, node: node, key: out.key, value: out.value, rekeyed: in.rekeyed}
}
