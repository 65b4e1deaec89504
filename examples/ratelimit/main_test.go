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

func TestRatelimit(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), nil, t.TempDir(), "", &out); err != nil {
		t.Fatal(err)
	}
	// Of 200 requests in ten seconds: the 10 of the full bucket, and 5 a second from then on.
	want := "ada ratelimit-admitted: 20\nemmy ratelimit-admitted: 59\nemmy ratelimit-throttled: 141\n"
	if out.String() != want {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
}

func TestStrayArguments(t *testing.T) {
	if err := run(t.Context(), []string{"localhost:9092"}, t.TempDir(), "", io.Discard); err == nil || !strings.Contains(err.Error(), "localhost:9092") {
		t.Error(err)
	}
}
