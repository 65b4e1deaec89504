package streams

import "github.com/tidemark-streams/tidemark/serde"

// change is what a table sends for the update of a row: its new value and, if somebody behind
// the table needs it, the old one. A value that is not there is null.
type change[V any] struct {
	new, old       V
	hasNew, hasOld bool
	// late: a versioned table has a newer row for the key.
	late bool
}

// setNew and setOld take values; nil is none.
func (c *change[V]) setNew(v V) { c.new, c.hasNew = v, !serde.IsNil(&v) }

func (c *change[V]) setOld(v V) { c.old, c.hasOld = v, !serde.IsNil(&v) }

// oldValues is how a table is told to send old values too. Whether it does decides which deletes
// go downstream; the rules are Kafka Streams'.
type oldValues interface {
	// sendOld asks for them. With force a table that would need a store of its own for them
	// gets one. It tells whether they will come.
	sendOld(force bool) bool
}

// aggregated is a table that keeps its rows anyway.
type aggregated struct{ old bool }

func (a *aggregated) sendOld(bool) bool {
	a.old = true
	return true
}

// sourced is a table that keeps its rows if they are needed; a versioned one also keeps old ones.
type sourced struct{ stored, old, versioned bool }

func (s *sourced) sendOld(force bool) bool {
	if !s.stored && !force {
		return false
	}
	s.stored, s.old = true, true
	return true
}

// joined is a table of two others, which both have to keep their rows anyway.
type joined struct {
	left, right oldValues
	old         bool
}

func (j *joined) sendOld(bool) bool {
	j.left.sendOld(true)
	j.right.sendOld(true)
	j.old = true
	return true
}

// derived is a table whose rows follow from those of another, and that may keep them.
type derived struct {
	from      oldValues
	stored    bool
	old       bool
	versioned bool // what it is derived from is
}

func (d *derived) sendOld(force bool) bool {
	if d.stored || d.from.sendOld(force) {
		d.old = true
	}
	return d.old
}
