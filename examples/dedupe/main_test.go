package main

import (
	"io"
	"os"
	"strings"
	"testing"

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

func TestStrayArguments(t *testing.T) {
	if err := run(t.Context(), []string{"localhost:9092"}, t.TempDir(), "", 1, io.Discard); err == nil || !strings.Contains(err.Error(), "localhost:9092") {
		t.Error(err)
	}
}
