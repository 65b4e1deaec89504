package embedded

import (
	"log/slog"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/statedir"
)

// A host that has had workers takes its group for one that is not new, unless all was reset since: then the first start
// believes at once that there are no offsets.
func TestResetHostBeginsAnew(t *testing.T) {
	root := t.TempDir()
	for i, step := range []struct {
		reset, existing bool
	}{{false, false}, {false, true}, {true, false}, {false, true}} {
		d, err := statedir.Open(root, "app")
		if err != nil {
			t.Fatal(err)
		}
		if step.reset {
			if err := d.BeginAnew(); err != nil {
				t.Fatal(err)
			}
		}
		h := &Host{dir: d, log: slog.New(slog.DiscardHandler)}
		if err := h.choose(); err != nil || h.choice.existing != step.existing {
			t.Errorf("start %d: existing %v, %v; want %v", i+1, h.choice.existing, err, step.existing)
		}
		if err := d.RecordTransactionalID("app-0"); err != nil { // as a worker does
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
