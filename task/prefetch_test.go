package task

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// TestRowsAreReadAhead: the rows of a turn's records are read in one pass before the first of
// them is processed, of a store that is not in the cache as a whole.
func TestRowsAreReadAhead(t *testing.T) {
	counts := processor.KeyValue("counts", serde.String, serde.String)
	topology := processor.NewTopology()
	processor.AddSource(topology, "source", serde.String, serde.String, "a")
	processor.AddProcessor(topology, "count", func() processor.Processor[string, string, string, string] {
		return processor.Func[string, string, string, string](func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
			_, ok, err := counts.In(ctx).Get(r.Key)
			if err == nil && !ok {
				return fmt.Errorf("%s is not there", r.Key)
			}
			return err
		})
	}, []string{"source"}, counts)
	processor.ReadsByKey(topology, "count", "counts")
	if err := topology.Build(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := &Config{AppID: "app", Topology: topology, Topics: map[string]kafka.Topic{
		"a": {Name: "a", ID: kafka.TopicID{1}, Partitions: 1}, "app-counts-changelog": {Name: "app-counts-changelog", ID: kafka.TopicID{3}, Partitions: 1}},
		OpenStore: func(processor.TaskID) (*statestore.TaskStore, error) {
			return statestore.Open(dir, statestore.Options{})
		}}
	task, err := newTask(cfg, topology.Subtopologies()[0], processor.TaskID{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = task.close() }()
	w := &world{t, task, nil}
	var seen []string
	w.started(&seen)

	// 500 rows in the database, and nothing in the cache.
	var rows []statestore.RestoreRecord
	f := &kafka.Fetched{TopicPartition: inA, Next: 400}
	for i := range 500 {
		key := fmt.Append(nil, "key", i)
		rows = append(rows, statestore.RestoreRecord{Key: key, Value: []byte("v")})
		if i < 400 {
			f.Records = append(f.Records, kafka.Record{Topic: "a", Offset: int64(i), Timestamp: 1, Key: key, Value: []byte("v")})
		}
	}
	f.Records[7].Key = nil // a null key is nobody's row
	f.Records[7].Timestamp = -1
	if err := task.store.Restore("counts", rows, 500); err != nil {
		t.Fatal(err)
	}
	if err := task.store.Complete(statestore.Progress{ID: id(1, 1)}, nil); err != nil {
		t.Fatal(err)
	}
	task.queue(inA).offer(f)
	if n, err := task.process(turnRecords, time.UnixMilli(1_000_000)); n != 400 || err != nil {
		t.Fatalf("%d records, %v", n, err)
	}
	if _, err := task.store.Seal(statestore.Progress{ID: id(1, 2)}); err != nil {
		t.Fatal(err)
	}
	if c := task.store.CacheStats(); c.Misses != 0 || c.Hits != 399 {
		t.Errorf("%+v; want 399 reads that need no look into the database", c)
	}
	for _, key := range task.keys[:cap(task.keys)] {
		if key != nil {
			t.Fatal("a key of the turn is still held")
		}
	}
}
