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

func TestEnrich(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), nil, t.TempDir(), "", &out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"ada: an engine from England", "emmy: a ring from Germany", "sofia: a top from Russia", "mary: a comet from unknown"} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("%q is not in %q", line, out.String())
		}
	}
}

func TestStrayArguments(t *testing.T) {
	if err := run(t.Context(), []string{"localhost:9092"}, t.TempDir(), "", io.Discard); err == nil || !strings.Contains(err.Error(), "localhost:9092") {
		t.Error(err)
	}
}
