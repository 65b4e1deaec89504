package processor

import (
	"fmt"
	"slices"
)

// Guarded gives the same stores for as long as check allows it: it is asked before each use of a store
// that is opened from what it gives, and before each entry of an iteration, on the goroutine that does that. Its error is the
// use's. For the debug mode of the embedded form; stores that nobody guards pay a comparison.
func (s *Stores) Guarded(check func() error) *Stores {
	g := &Stores{owner: s.owner, clock: s.clock, dropped: s.dropped, open: slices.Clone(s.open), guard: check}
	for i := range g.open {
		g.open[i].typed = nil // a view has buffers, and what guards it
	}
	return g
}

// usable tells why a store cannot be used, here or at all. It comes before buffers are touched.
func (a *access) usable() error {
	if a.stores.guard != nil {
		return a.guarded()
	}
	return a.err
}

func (a *access) guarded() error {
	if err := a.stores.guard(); err != nil {
		return fmt.Errorf("store %s: %w", a.name, err)
	}
	return a.err
}
