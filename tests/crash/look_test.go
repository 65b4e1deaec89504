package crash

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// readStores reads the counts out of the databases of all tasks, while the program is not
// running.
func (w *world) readStores() map[string]int64 {
	w.t.Helper()
	counts := map[string]int64{}
	dirs, err := filepath.Glob(filepath.Join(w.stateDir(), w.app, "*_*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, dir := range dirs {
		w.readStore(dir, counts)
	}
	return counts
}

func (w *world) readStore(dir string, counts map[string]int64) {
	w.t.Helper()
	s, err := statestore.Open(dir, statestore.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			w.t.Errorf("close %s: %v", dir, err)
		}
	}()
	states, err := s.Stores()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, state := range states {
		if !state.Complete {
			w.t.Errorf("%s: store %s is not complete", dir, state.Spec.Name)
		}
		if err := s.Register(state.Recorded); err != nil {
			w.t.Fatal(err)
		}
		kv, err := s.KeyValue(state.Recorded.Name)
		if err != nil {
			w.t.Fatal(err)
		}
		for e, err := range kv.All() {
			if err != nil {
				w.t.Fatal(err)
			}
			word := string(e.Key)
			if _, twice := counts[word]; twice {
				w.t.Errorf("%q is in the stores of two tasks", word)
			}
			counts[word] = int64(binary.BigEndian.Uint64(e.Value))
		}
	}
}

// connect gives the settings of the world's broker; an embedded one runs until the test calls
// the function.
func (w *world) connect(ctx context.Context) (kafka.Settings, func()) {
	w.t.Helper()
	if len(w.brokers) > 0 {
		return kafka.Settings{Brokers: w.brokers}, func() {}
	}
	b, err := embeddedbroker.Start(ctx, embeddedbroker.Options{Dir: filepath.Join(w.data, "broker")})
	if err != nil {
		w.t.Fatal(err)
	}
	if b.Unclean() {
		w.t.Error("the embedded broker's log was not closed")
	}
	return kafka.Settings{Brokers: []string{b.Addr()}}, func() {
		if err := b.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// checkOutputs reads the output topic as a reader of committed records does. Each word has
// the counts 1 to n: under exactly-once each once and in order; under at-least-once a crash
// may repeat some, so that the count goes back and comes again, but none is left out and the
// true one is the last.
func (w *world) checkOutputs(want map[string]int64) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	settings, disconnect := w.connect(ctx)
	defer disconnect()
	last := map[string]int64{}
	repeated, wrong := 0, 0
	read(ctx, w.t, settings, w.topic("counts"), func(r *kafka.Record) {
		n, err := serde.Int64.Decode(r.Value)
		if err != nil {
			w.t.Fatal(err)
		}
		word := string(r.Key)
		before := last[word]
		last[word] = n
		switch {
		case n == before+1:
		case n >= 1 && n <= before && w.guarantee == "at-least-once":
			repeated++
		default:
			if wrong++; wrong <= 3 {
				w.t.Errorf("output %v@%d: count %d of %q comes after %d", r.TopicPartition(), r.Offset, n, word, before)
			}
		}
	})
	if d := difference(last, want); d != "" {
		w.t.Errorf("last counts in the output topic: %s", d)
	}
	w.t.Logf("outputs: %d wrong, %d repeated", wrong, repeated)
}

// read gives visit all committed records of a topic.
func read(ctx context.Context, t *testing.T, settings kafka.Settings, topic string, visit func(*kafka.Record)) {
	t.Helper()
	admin, err := franz.Client{}.NewAdmin(settings)
	must(t, err)
	defer closeClient(t, admin)
	topics, err := admin.Topics(ctx, topic)
	must(t, err)
	var all []kafka.TopicPartition
	for n := range topics[topic].Partitions {
		all = append(all, kafka.TopicPartition{Topic: topic, Partition: n})
	}
	from, err := admin.ListOffsets(ctx, kafka.Earliest, all...)
	must(t, err)
	end, err := admin.ListOffsets(ctx, kafka.HighWatermark, all...)
	must(t, err)
	consumer, err := franz.Client{}.NewConsumer(settings, kafka.ConsumerConfig{})
	must(t, err)
	defer closeClient(t, consumer)
	must(t, consumer.Assign(ctx, from))
	var poll kafka.Poll
	for {
		for tp, n := range end {
			if from[tp] >= n {
				delete(end, tp)
			}
		}
		if len(end) == 0 {
			return
		}
		must(t, consumer.Poll(ctx, &poll))
		must(t, ctx.Err())
		for i := range poll.Partitions {
			f := &poll.Partitions[i]
			must(t, f.Err)
			for j := range f.Records {
				visit(&f.Records[j])
			}
			from[f.TopicPartition] = f.Next
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func closeClient(t *testing.T, c kafka.Closer) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

// deleteTopics leaves a real broker as it was found.
func (w *world) deleteTopics() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	admin, err := franz.Client{}.NewAdmin(kafka.Settings{Brokers: w.brokers})
	if err != nil {
		w.t.Error(err)
		return
	}
	defer closeClient(w.t, admin)
	if err := admin.DeleteTopics(ctx, w.topic("lines"), w.topic("counts"), w.app+"-counts-changelog", w.app+"-counts-repartition", w.app+"-placement"); err != nil {
		w.t.Error(err)
	}
}

// removeTasks removes the state of all tasks, but not the process id.
func (w *world) removeTasks() {
	w.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(w.stateDir(), w.app, "*_*"))
	must(w.t, err)
	for _, dir := range dirs {
		must(w.t, os.RemoveAll(dir))
	}
}
