package task

import (
	"log/slog"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// tellMigrations has the log say how far a migration is, now and then: a big store takes its time,
// and its task processes nothing meanwhile.
func tellMigrations(log *slog.Logger, id processor.TaskID, specs []statestore.Spec) {
	for i := range specs {
		if specs[i].Migrate == nil {
			continue
		}
		m := *specs[i].Migrate // the handle's own is shared by all tasks
		var told time.Time
		m.Progress = func(store string, rows int64) {
			if time.Since(told) >= 5*time.Second {
				told = time.Now()
				log.Info("migrating", "task", id.String(), "store", store, "rows", rows)
			}
		}
		specs[i].Migrate = &m
	}
}
