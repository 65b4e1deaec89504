package main

import (
	"maps"
	"strings"
	"testing"
	"time"
)

const traces = `File: count
Type: cpu
Duration: 3.12s, Total samples = 1.71s (54.84%)
-----------+-------------------------------------------------------
      10ms   runtime.memmove
             github.com/cockroachdb/pebble/v2.(*Batch).Set (inline)
             github.com/tidemark-streams/tidemark/statestore.(*TaskStore).Commit
-----------+-------------------------------------------------------
     1.20s   runtime.scanObject
             runtime.gcDrain
             runtime.gcBgMarkWorker
-----------+-------------------------------------------------------
  compaction:  flush
      30ms   runtime.mallocgc
             github.com/twmb/franz-go/pkg/kgo.(*Client).Produce
             github.com/tidemark-streams/tidemark/kafka/franz.(*sender).send
-----------+-------------------------------------------------------
      20ms   main.topology.func1
             github.com/tidemark-streams/tidemark/streams.(*mapValues[go.shape.string]).Process
-----------+-------------------------------------------------------
      40ms   runtime.futex
             runtime.findRunnable
`

func TestShares(t *testing.T) {
	got, err := read(traces)
	if err != nil {
		t.Fatal(err)
	}
	const ms = time.Millisecond
	want := shares{"Pebble": 10 * ms, "garbage collector": 1200 * ms, "client (franz-go)": 30 * ms, "Tidemark": 20 * ms, "Go's runtime": 40 * ms}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var out strings.Builder
	got.print(&out)
	if first, _, _ := strings.Cut(out.String(), "\n"); first != "garbage collector      1.20 s  92.3 %" {
		t.Errorf("first line %q", first)
	}
}

func TestForeignText(t *testing.T) {
	if _, err := read("-----------+---\nfoo bar\n"); err == nil || !strings.Contains(err.Error(), "foo bar") {
		t.Errorf("got %v", err)
	}
}
