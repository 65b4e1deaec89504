package processor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

var prefetched = processor.KeyValue("counts", serde.String, serde.String)

// readingTopology counts the keys of "in" and "twin", behind a node in between, and not those of
// "other".
func readingTopology() *processor.Topology {
	top := processor.NewTopology()
	processor.AddSource(top, "source", serde.String, serde.String, "in", "twin")
	processor.AddSource(top, "aside", serde.String, serde.String, "other")
	processor.AddProcessor(top, "pass", func() processor.Processor[string, string, string, string] {
		return processor.Func[string, string, string, string](func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
			return ctx.Forward(r)
		})
	}, []string{"source"})
	processor.AddProcessor(top, "count", func() processor.Processor[string, string, string, string] {
		return processor.Func[string, string, string, string](func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
			_, _, err := prefetched.In(ctx).Get(r.Key)
			return err
		})
	}, []string{"pass"}, prefetched)
	processor.ReadsByKey(top, "count", "counts")
	processor.AddProcessor(top, "use aside", func() processor.Processor[string, string, string, string] {
		return processor.Func[string, string, string, string](func(processor.Context[string, string], processor.Record[string, string]) error { return nil })
	}, []string{"aside"}, prefetched)
	return top
}

func TestPrefetchReadsAhead(t *testing.T) {
	top := readingTopology()
	if err := top.Build(); err != nil {
		t.Fatal(err)
	}
	sub := top.Subtopologies()[0]
	dir := t.TempDir()
	open := func() *statestore.TaskStore {
		s, err := statestore.Open(dir, statestore.Options{})
		if err == nil {
			err = s.Register(sub.Stores[0].Spec())
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	instance := func(s *statestore.TaskStore) *processor.Instance {
		in, err := sub.NewInstance(processor.Env{Stores: s, Now: time.Now}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	s := open()
	kv, err := s.KeyValue("counts")
	if err != nil {
		t.Fatal(err)
	}
	var keys [][]byte
	for i := range 200 {
		keys = append(keys, fmt.Append(nil, "key", i))
		if err := kv.Put(keys[i], []byte("v"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if instance(s).WantsKeys("in") {
		t.Error("keys are wanted of a store that is in the cache as a whole")
	}
	x, err := s.Seal(statestore.Progress{})
	if err == nil {
		err = s.Commit(x, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Release(x)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open()
	in := instance(s)
	for topic, want := range map[string]bool{"in": true, "twin": true, "other": false, "unknown": false} {
		if in.WantsKeys(topic) != want {
			t.Errorf("keys of %s are wanted: %v; want %v", topic, !want, want)
		}
	}
	if err := in.Prefetch("in", keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if err := in.Process("in", &kafka.Record{Topic: "in", Key: key, Value: []byte("v")}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	// The counts are published when an interval is sealed.
	if _, err := s.Seal(statestore.Progress{}); err != nil {
		t.Fatal(err)
	}
	if c := s.CacheStats(); c.Misses != 0 || c.Hits != 200 {
		t.Errorf("%+v; want every read to hit what was read ahead", c)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestReadsByKeyNeedsTheStore(t *testing.T) {
	for _, name := range []string{"pass", "nobody"} {
		top := readingTopology()
		processor.ReadsByKey(top, name, "counts")
		if err := top.Build(); err == nil || !strings.Contains(err.Error(), "in processor "+name+", which does not have it") {
			t.Errorf("%v; want it to name processor %s", err, name)
		}
	}
}
