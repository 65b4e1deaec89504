package processor

// Pass is a processor that forwards everything: a node that only names a stream, or only
// joins several. It costs nothing, because records go past it.
type Pass[K, V any] struct{}

// Process forwards r.
func (Pass[K, V]) Process(ctx Context[K, V], r Record[K, V]) error { return ctx.Forward(r) }

// passing is a node that may be a Pass: then what stands behind it takes what goes into it.
type passing[K, V any] interface {
	passes() bool
	behind() []receiver[K, V]
}

func (n *processorNode[KIn, VIn, KOut, VOut]) passes() bool {
	_, ok := any(n.p).(Pass[KOut, VOut])
	return ok
}

func (n *processorNode[KIn, VIn, KOut, VOut]) behind() []receiver[KOut, VOut] { return n.ctx.children }
