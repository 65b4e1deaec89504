package streams

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/processor"
)

// A recorded choice is over with the start that all tasks came through; while one has failed alone it stays.
func TestChoiceStaysWhileATaskHasFailed(t *testing.T) {
	d, err := statedir.Open(t.TempDir(), "app")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := d.RecordChoice("use-store"); err != nil {
		t.Fatal(err)
	}
	r := &rounds{app: &App{log: slog.New(slog.DiscardHandler)}, dir: d}
	for _, c := range []struct {
		fails bool
		want  string
	}{{true, "use-store"}, {false, ""}} {
		r.failures = newTaskFailures(2)
		if c.fails {
			r.failures.add(processor.TaskID{Partition: 1}, errors.New("it failed"))
		}
		r.acted()
		if got, err := d.Choice(); got != c.want || err != nil {
			t.Errorf("a task failed: %v; the choice is %q, %v, want %q", c.fails, got, err, c.want)
		}
	}
}
