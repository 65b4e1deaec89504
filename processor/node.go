package processor

import (
	"fmt"
	"slices"
	"time"
)

// processorNode runs one processor.
type processorNode[KIn, VIn, KOut, VOut any] struct {
	p   Processor[KIn, VIn, KOut, VOut]
	ctx nodeContext[KOut, VOut]
}

func newProcessorNode[KIn, VIn, KOut, VOut any](in *Instance, n *node, p Processor[KIn, VIn, KOut, VOut]) (any, error) {
	if p == nil {
		return nil, fmt.Errorf("the function that makes it gives nil")
	}
	stores := &Stores{owner: n.String(), clock: &in.clock, dropped: func(reason string) { in.drop(n.name, reason) }}
	for _, def := range in.sub.Stores {
		if !slices.Contains(n.stores, def.Name) {
			continue
		}
		if err := stores.add(in.env.Stores, def); err != nil {
			return nil, err
		}
	}
	r := &processorNode[KIn, VIn, KOut, VOut]{p: p}
	r.ctx = nodeContext[KOut, VOut]{in: in, name: n.name, number: in.number(n.name), stores: stores, children: receivers[KOut, VOut](in, n)}
	for _, c := range n.children {
		r.ctx.named = append(r.ctx.named, namedReceiver[KOut, VOut]{c.name, in.runtime[c].(receiver[KOut, VOut])})
	}
	return r, nil
}

// init comes before Close in any case: a processor whose Init failed half way has something
// to close.
func (n *processorNode[KIn, VIn, KOut, VOut]) init() error {
	if c, ok := n.p.(Closer); ok {
		n.ctx.in.closers = append(n.ctx.in.closers, closer{n.ctx.name, c})
	}
	if i, ok := n.p.(Initer[KOut, VOut]); ok {
		return i.Init(&n.ctx)
	}
	return nil
}

// receive lets stores see the record's own timestamp while the processor has it: a parent may
// have given it another one.
func (n *processorNode[KIn, VIn, KOut, VOut]) receive(r Record[KIn, VIn]) error {
	in := n.ctx.in
	was, from := in.clock.now, in.node
	in.clock.now, in.node = r.Timestamp.UnixMilli(), n.ctx.number
	err := n.p.Process(&n.ctx, r)
	in.clock.now = was
	if err == nil { // else in.node stays where it happened
		in.node = from
	}
	return err
}

// nodeContext is the context of one processor. It lives as long as the instance, so that
// handing it to the processor costs nothing.
type nodeContext[K, V any] struct {
	in       *Instance
	name     string
	number   int // of the instance's names
	stores   *Stores
	children []receiver[K, V]
	named    []namedReceiver[K, V] // the same by the names that the user gave
}

type namedReceiver[K, V any] struct {
	name string
	receiver[K, V]
}

func (c *nodeContext[K, V]) Stores() *Stores { return c.stores }

func (c *nodeContext[K, V]) Forward(r Record[K, V]) error {
	for _, child := range c.children {
		if err := child.receive(r); err != nil {
			return err
		}
	}
	return nil
}

func (c *nodeContext[K, V]) ForwardTo(child string, r Record[K, V]) error {
	for _, n := range c.named {
		if n.name == child {
			return n.receive(r)
		}
	}
	var names []string
	for _, n := range c.named {
		names = append(names, n.name)
	}
	return fmt.Errorf("processor %s has no child %s; its children are %v", c.name, child, names)
}

func (c *nodeContext[K, V]) Commit()               { c.in.env.Commit() }
func (c *nodeContext[K, V]) StreamTime() time.Time { return c.in.StreamTime() }
func (c *nodeContext[K, V]) Now() time.Time        { return c.in.env.Now() }
func (c *nodeContext[K, V]) TaskID() TaskID        { return c.in.env.TaskID }
func (c *nodeContext[K, V]) Replaying() bool       { return c.in.env.Replaying }

func (c *nodeContext[K, V]) Metadata() (RecordMetadata, bool) {
	if !c.in.inRecord {
		return RecordMetadata{}, false
	}
	return c.in.meta, true
}

func (c *nodeContext[K, V]) Schedule(interval time.Duration, by PunctuationType, f Punctuator) func() {
	var start int64
	if by == WallClockTime {
		start = c.in.env.Now().UnixMilli()
	}
	return c.in.punct.add(c.name, interval, by, start, f)
}

// Drop counts a record that an operator dropped, with the reason. It is for operators of the
// DSL; a processor of a user simply forwards nothing.
func Drop[K, V any](ctx Context[K, V], reason string) {
	if c, ok := ctx.(*nodeContext[K, V]); ok {
		c.in.drop(c.name, reason)
	}
}

func (in *Instance) drop(node, reason string) {
	if in.env.Dropped != nil {
		in.env.Dropped(node, reason)
	}
}
