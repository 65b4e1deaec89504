package embedded

import (
	"slices"
	"time"
)

// watchInputs tells of input topics that do not exist: a consumer that is subscribed to one waits for it without a word.
func (h *Host) watchInputs() {
	told := map[string]time.Time{}
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-h.well.Done():
			timer.Stop()
			return
		}
		for _, name := range h.missing() {
			if at, ok := told[name]; ok && time.Since(at) < time.Minute {
				continue
			}
			told[name] = time.Now()
			h.log.Warn("an input topic does not exist, or not yet: none of its partitions can be assigned; is its name misspelt?", "topic", name, "group", h.consumer.Group)
		}
	}
}

// missing gives the input topics that do not exist: those that the configuration names, and that the consumer is subscribed to.
func (h *Host) missing() (names []string) {
	all := slices.Clone(h.cfg.Topics)
	if h.consumer.Topics != nil {
		all = append(all, h.consumer.Topics()...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) == 0 {
		return nil
	}
	have, err := h.admin.Topics(h.well, all...)
	if err != nil {
		h.log.Debug("look whether the input topics exist", "error", err) // a broker that is away is others' business
		return nil
	}
	return slices.DeleteFunc(all, func(name string) bool { _, ok := have[name]; return ok })
}
