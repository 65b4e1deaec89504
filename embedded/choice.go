package embedded

import (
	"fmt"

	"github.com/tidemark-streams/tidemark/task"
)

// startChoice is what holds for one start of a host: it is looked at once, before the first worker is made.
type startChoice struct {
	known bool
	// conflict is the operator's for stores and offsets that do not fit. One that was recorded for this start
	// (tidemark offsets) goes before the configuration's.
	conflict task.Conflict
	recorded bool
	// existing: this process had workers before, and was not reset since, so that its group is not new.
	existing bool
}

// choose finds out what holds for this start. h.preparing is held.
func (h *Host) choose() error {
	c := &h.choice
	if c.known {
		return nil
	}
	text, err := h.dir.Choice()
	if err != nil {
		return err
	}
	anew, err := h.dir.Anew()
	if err != nil {
		return err
	}
	c.conflict, c.existing = h.cfg.OnConflict, len(h.dir.TransactionalIDs()) > 0 && !anew
	if text != "" {
		if c.conflict, err = task.ParseConflict(text); err != nil {
			return fmt.Errorf("the choice recorded in %s: %w", h.dir.Path(), err)
		}
		c.recorded = true
		h.log.Warn("conflicts between stores and offsets are ended as an operator chose", "choice", c.conflict.String())
	}
	c.known = true
	return nil
}

// acted forgets a choice that was recorded for this start, once a take-over has come through. Later ones of this host still go by it.
// The lock is held.
func (h *Host) acted() {
	if !h.choice.recorded {
		return
	}
	h.choice.recorded = false
	if err := h.dir.ClearChoice(); err != nil {
		h.log.Warn("the operator's choice stays recorded for the next start", "error", err)
	}
}
