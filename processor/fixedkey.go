package processor

import "errors"

// AddFixedKeyProcessor adds a processor that cannot change keys: what it forwards gets the key
// of the record in process, so records stay in the partition of their key. It can forward only
// while it processes a record. Everything else is as with [AddProcessor].
func AddFixedKeyProcessor[K, VIn, VOut any, P Processor[K, VIn, K, VOut]](t *Topology, name string, newProcessor func() P, parents []string, stores ...StoreDef) {
	addProcessor(t, name, newProcessor, func(p P) Processor[K, VIn, K, VOut] {
		if any(p) == nil {
			return nil
		}
		return &fixedKey[K, VIn, VOut]{p: p}
	}, parents, stores)
}

type fixedKey[K, VIn, VOut any] struct {
	p   Processor[K, VIn, K, VOut]
	ctx keyContext[K, VOut]
}

func (f *fixedKey[K, VIn, VOut]) Init(ctx Context[K, VOut]) error {
	f.ctx.Context = ctx
	if i, ok := f.p.(Initer[K, VOut]); ok {
		return i.Init(&f.ctx)
	}
	return nil
}

func (f *fixedKey[K, VIn, VOut]) Process(_ Context[K, VOut], r Record[K, VIn]) error {
	f.ctx.key, f.ctx.null, f.ctx.open = r.Key, r.NullKey, true
	err := f.p.Process(&f.ctx, r)
	f.ctx.open = false
	return err
}

func (f *fixedKey[K, VIn, VOut]) Close() error {
	if c, ok := f.p.(Closer); ok {
		return c.Close()
	}
	return nil
}

// keyContext is a context that keeps the key of the record in process.
type keyContext[K, V any] struct {
	Context[K, V]
	key  K
	null bool
	open bool // a record is in process
}

var errNoKey = errors.New("a processor of values can forward only while it processes a record: there is no key to forward with")

func (c *keyContext[K, V]) Forward(r Record[K, V]) error {
	if !c.open {
		return errNoKey
	}
	r.Key, r.NullKey = c.key, c.null
	return c.Context.Forward(r)
}

func (c *keyContext[K, V]) ForwardTo(child string, r Record[K, V]) error {
	if !c.open {
		return errNoKey
	}
	r.Key, r.NullKey = c.key, c.null
	return c.Context.ForwardTo(child, r)
}
