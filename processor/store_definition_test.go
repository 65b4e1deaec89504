package processor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

func TestDefinitions(t *testing.T) {
	for want, def := range map[string]processor.StoreDef{
		"key-value[string, int64]": processor.KeyValue("s", serde.String, serde.Int64),
		"timestamped key-value[string, int64] of schema version 3 in memory": processor.TimestampedKeyValue("s", serde.String, serde.Int64).InMemory().SchemaVersion(3),
		"window[string, int64] of 1m0s kept 1h0m0s with duplicates":          processor.Window("s", serde.String, serde.Int64, time.Minute, time.Hour).RetainDuplicates(),
		"timestamped window[string, int64] of 1m0s kept 1h0m0s in memory":    processor.TimestampedWindow("s", serde.String, serde.Int64, time.Minute, time.Hour).InMemory(),
		"session[string, int64] kept 1h0m0s":                                 processor.Session("s", serde.String, serde.Int64, time.Hour),
		"versioned[string, int64] kept 1h0m0s of schema version 1":           processor.Versioned("s", serde.String, serde.Int64, time.Hour).SchemaVersion(1),
	} {
		if got := def.Definition().String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// An option makes another handle; the first stays as it was.
	h := processor.Window("s", serde.String, serde.Int64, time.Minute, time.Hour)
	other := h.InMemory().RetainDuplicates().SchemaVersion(2)
	want := statestore.Spec{Name: "s", Kind: statestore.KindWindow, KeySerde: "string", ValueSerde: "int64", WindowSize: time.Minute, Retention: time.Hour}
	if got := h.Definition().Spec(); got != want {
		t.Errorf("got %+v", got)
	}
	want.InMemory, want.RetainDuplicates, want.SchemaVersion = true, true, 2
	if got := other.Definition().Spec(); got != want {
		t.Errorf("got %+v", got)
	}
}

func TestBadDefinitions(t *testing.T) {
	for want, def := range map[string]processor.StoreDef{
		"its window size is 0": processor.Window("s", serde.String, serde.Int64, 0, time.Hour),
		"its window size is -1ms: it must be whole milliseconds": processor.TimestampedWindow("s", serde.String, serde.Int64, -time.Millisecond, time.Hour),
		"its window size is 1.5ms":                               processor.Window("s", serde.String, serde.Int64, 1500*time.Microsecond, time.Hour),
		"its retention 59s is shorter than its windows, 1m0s":    processor.TimestampedWindow("s", serde.String, serde.Int64, time.Minute, 59*time.Second),
		"its retention is 1ns: it must be whole":                 processor.Session("s", serde.String, serde.Int64, 1),
		"its retention is 0":                                     processor.Session("s", serde.String, serde.Int64, 0),
		"its retention is -1s":                                   processor.Versioned("s", serde.String, serde.Int64, -time.Second),
		"it is to be in memory and in a store of its own":        processor.KeyValue("s", serde.String, serde.Int64).InMemory().KeptIn(nowhere),
		"its migration has no function":                          processor.KeyValue("s", serde.String, serde.Int64).SchemaVersion(2).Migrate(nil),
		"its migration has no function, or no SchemaVersion":     processor.KeyValue("s", serde.String, serde.Int64).Migrate(func(uint32, string, []byte) (int64, error) { return 0, nil }),
	} {
		top := processor.NewTopology()
		source(top, "source", "in")
		processor.AddProcessor(top, "p", newEcho, []string{"source"}, def)
		err := top.Build()
		if err == nil || !strings.Contains(err.Error(), "processor p: store s: "+want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := processor.NewStores("host", nil, def); err == nil || !strings.Contains(err.Error(), "store s: "+want) {
			t.Errorf("embedded: got %v, want %s", err, want)
		}
	}
}

func nowhere(processor.StorePlace) (statestore.StateStore, error) { return nil, nil }

// Two processors that declare a store in different ways do not get one store.
func TestDefinitionsThatDiffer(t *testing.T) {
	h := processor.Window("s", serde.String, serde.Int64, time.Minute, time.Hour)
	for name, other := range map[string]processor.StoreDef{
		"kept 2h0m0s":     processor.Window("s", serde.String, serde.Int64, time.Minute, 2*time.Hour),
		"of 2m0s":         processor.Window("s", serde.String, serde.Int64, 2*time.Minute, time.Hour),
		"with duplicates": h.RetainDuplicates(),
		"in memory":       h.InMemory(),
		"of its own":      h.KeptIn(nowhere),
	} {
		top := processor.NewTopology()
		source(top, "source", "in")
		processor.AddProcessor(top, "p", newEcho, []string{"source"}, h)
		processor.AddProcessor(top, "q", newEcho, []string{"source"}, other)
		err := top.Build()
		if err == nil || !strings.Contains(err.Error(), "store s is declared twice") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
