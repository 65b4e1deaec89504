package task

import (
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// outlived tells whether a changelog with the configuration of ChangelogConfigs keeps nothing of what is written at a stream
// time: the broker deletes by its own clock what the records' timestamps say is over.
func outlived(def processor.Definition, streamTime int64, now time.Time) bool {
	switch def.Kind {
	case statestore.KindWindow, statestore.KindTimestampedWindow, statestore.KindSession:
	default:
		return false
	}
	keep := now.Add(-ChangelogSlack).Add(-def.Retention)
	return !def.Unlogged && streamTime >= 0 && time.UnixMilli(streamTime).Before(keep)
}

// tellOutlived warns, once for each store, of old records in a window or session store: what was restored from its changelog would
// lack them, and nothing else says so.
func (w *Worker) tellOutlived(t *Task) {
	for _, def := range t.sub.Stores {
		if t.outlived[def.Name] || !outlived(def, t.streamTime, w.now()) {
			continue
		}
		if t.outlived == nil {
			t.outlived = map[string]bool{}
		}
		t.outlived[def.Name] = true
		tp := t.changelog(def.Name)
		w.log.Warn("the records are older than the store's changelog keeps by the broker's clock: a lost disk would not come back whole; raise retention.ms of the topic while old records are processed",
			"task", t.id.String(), "store", def.Name, "changelog", tp.Topic, "stream-time", time.UnixMilli(t.streamTime).UTC(), "kept", def.Retention+ChangelogSlack)
	}
}
