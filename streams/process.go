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
