package statestore

import (
	"errors"
	"fmt"
	"iter"

	"github.com/tidemark-streams/tidemark/statestore/internal/checkpoint"
	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// storePlaces checks where the rows of a store whose entries expire lie.
type storePlaces struct {
	spec    Spec
	layout  kinds.Layout
	clock   kinds.Clock
	overlap kinds.Overlap
}

// placesOf gives nil for a store whose rows may lie anywhere, or of which nobody knows at what
// time they were written.
func (v *View) placesOf(id uint32) *storePlaces {
	spec := v.meta.catalog.specs[id]
	sp, known := v.meta.progress.stores[id]
	if !spec.Kind.expiring() || spec.place() != inDatabase || !known || !sp.complete && !sp.clock.Known {
		return nil
	}
	p := &storePlaces{spec: spec, layout: spec.layout(), clock: sp.clock}
	p.overlap = kinds.Overlap{Layout: p.layout, Clock: &p.clock, Scan: func(g kinds.Range) iter.Seq2[kinds.Row, error] {
		return func(yield func(kinds.Row, error) bool) {
			for r, err := range v.Rows(spec.Name, g.From, g.To) {
				if err != nil {
					yield(kinds.Row{}, err)
					return
				}
				row, err := versionRow(r)
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}}
	return p
}

// check takes a row that decodes. what names the problem, for many rows; the error tells of this one. [kinds.ErrDropped] is
// none: reads do not show what has expired, and it is removed with the next interval.
func (p *storePlaces) check(r Row) (what string, err error) {
	defer func() {
		for _, known := range []error{kinds.ErrSegment, kinds.ErrTooLate, kinds.ErrLogged, kinds.ErrSequence} {
			if errors.Is(err, known) {
				what = known.Error()
			}
		}
	}()
	if p.spec.Kind == KindVersioned {
		return p.checkVersion(r)
	}
	e, _, err := splitRow(p.spec.Kind, r)
	if err != nil {
		return "damaged", err
	}
	if e.Sequence != 0 && !p.spec.RetainDuplicates {
		return "", fmt.Errorf("%w: %d", kinds.ErrSequence, e.Sequence)
	}
	segment, _, err := kinds.SplitSegment(r.Key)
	if err != nil {
		return "damaged", err
	}
	at := e.Start
	if p.spec.Kind == KindSession {
		at = e.End
	}
	return "", p.layout.Placed(segment, at, &p.clock)
}

func (p *storePlaces) checkVersion(r Row) (what string, err error) {
	row, err := versionRow(r)
	if err == nil {
		err = p.layout.PlacedVersion(row, &p.clock)
	}
	if err != nil {
		return "damaged", err
	}
	with, overlaps, err := p.overlap.Check(row)
	if err != nil {
		return "damaged", err
	}
	if overlaps {
		return "overlapping another version of its key", fmt.Errorf("from %d; the other from %d to %d", row.Timestamp, with.From, with.To)
	}
	return "", nil
}

// checkCheckpoint looks at the file of a store of the program's own that keeps no offsets. That
// it is of another topic, or further on, is no problem: a crash may leave it so, and the store is
// then restored.
func (c *verifier) checkCheckpoint(spec Spec) {
	if _, _, err := checkpoint.Read(c.v.fs, checkpoint.Path(c.v.fs, c.v.dir, spec.Name)); err != nil {
		c.problem("store %q: %v; the store will be restored from the start of its changelog", spec.Name, err)
	}
}
