package task

import (
	"context"
	"fmt"
)

// resolve ends the doubt about a transaction that got no answer: the id in the group's
// metadata says whether it was committed.
func (w *Worker) resolve(ctx context.Context, res commitResult) commitResult {
	w.log.Warn("commit in doubt", "error", res.err)
	err := w.retry(ctx, "end the doubt about a commit", w.txn.Init)
	if err != nil {
		res.err = err
		return res
	}
	var committed bool
	err = w.retry(ctx, "read the group's offsets", func(ctx context.Context) (err error) {
		committed, err = w.groupHas(ctx, res.interval)
		return err
	})
	switch m := w.cfg.Member(); {
	case err != nil:
		res.err = err
	case !m.Same(w.cfg.Started): // what the group says is another's by now
		res.err = fmt.Errorf("%w: member %q is now %q: %w", ErrLost, w.cfg.Started.ID, m.ID, res.err)
	case committed && res.interval.changes.failed() == nil:
		w.log.Info("the commit in doubt was committed")
		res.transacted, res.err = true, apply(res.interval)
	}
	return res
}

// groupHas tells whether the group's offsets are those of the sealed interval: its ids, and its
// positions too, though no two commits should have the same id (commitEpochs).
func (w *Worker) groupHas(ctx context.Context, iv *interval) (bool, error) {
	for _, s := range iv.tasks {
		got, err := w.cfg.Admin.CommittedOffsets(ctx, w.cfg.group(), s.task.partitions()...)
		if err != nil {
			return false, err
		}
		for _, o := range s.offsets {
			is := got[o.TopicPartition]
			m, err := DecodeMetadata(is.Metadata)
			if err != nil || m.ID != s.progress.ID || is.Offset != o.Offset {
				return false, nil //nolint:nilerr // metadata that cannot be read is not this commit's
			}
		}
	}
	return len(iv.tasks) > 0, nil
}
