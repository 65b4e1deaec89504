package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/examples/internal/topics"
	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
)

func TestMain(m *testing.M) {
	embeddedbroker.Main() // in the broker's child process this does not return
	os.Exit(m.Run())
}

func TestDedupe(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second run finds every id in the state
		var out strings.Builder
		if err := run(t.Context(), nil, dir, "", 200, &out); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), "200 events in") || !strings.Contains(out.String(), " 100 in dedupe-unique") {
			t.Errorf("it prints %q", out.String())
		}
	}
}

// A run that was killed after it had produced leaves events behind: the next one processes them too, and then its own.
func TestKilledRunLeavesEvents(t *testing.T) {
	dir, seeds, leave, err := topics.Place(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(produce(t.Context(), seeds, 300), leave()); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), nil, dir, "", 500, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "800 events in") || !strings.Contains(out.String(), " 250 in dedupe-unique") {
		t.Errorf("it prints %q", out.String())
	}
}

func TestStrayArguments(t *testing.T) {
	if err := run(t.Context(), []string{"localhost:9092"}, t.TempDir(), "", 1, io.Discard); err == nil || !strings.Contains(err.Error(), "localhost:9092") {
		t.Error(err)
	}
}
