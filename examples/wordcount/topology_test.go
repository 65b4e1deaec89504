package main

import (
	"maps"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams/streamstest"
)

func TestTopologyCountsWords(t *testing.T) {
	topology, err := topology(topics{lines: "lines", counts: "counts"})
	if err != nil {
		t.Fatal(err)
	}
	d := streamstest.New(t, topology, streamstest.Config{})
	lines := streamstest.Input(d, "lines", serde.String, serde.String)
	lines.PipeValue("To be, or not to be:", time.UnixMilli(1))
	lines.PipeValue("that is -- the question.", time.UnixMilli(2))
	want := map[string]int64{"to": 2, "be": 2, "or": 1, "not": 1, "that": 1, "is": 1, "the": 1, "question": 1}
	if got := streamstest.Map(streamstest.Output(d, "counts", serde.String, serde.Int64)); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
