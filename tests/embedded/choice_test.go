package embedded

import (
	"errors"
	"testing"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/task"
)

// What an operator has recorded for the next start (tidemark offsets) a host goes by, once.
func TestRecordedChoice(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		x := w.watch()
		w.produce(50)
		dir := w.t.TempDir()
		cfg := w.config(dir, embedded.ExactlyOnce)
		l := w.start(cfg)
		tp, next := w.processed(l, x)
		w.close(l)
		w.commitFromOutside(tp, next-1)
		choice := func(record string) string {
			w.t.Helper()
			d, err := statedir.Open(dir, w.app)
			if err != nil {
				w.t.Fatal(err)
			}
			if record != "" {
				err = d.RecordChoice(record)
			}
			got, cerr := d.Choice()
			if err := errors.Join(err, cerr, d.Close()); err != nil {
				w.t.Fatal(err)
			}
			return got
		}
		choice(task.UseStore.String())
		w.goesOn(cfg, x)
		if got := choice(""); got != "" {
			w.t.Errorf("%s is still recorded", got)
		}
	})
}
