package streams_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

var guarantees = []streams.Guarantee{streams.AtLeastOnce, streams.ExactlyOnce}

func TestWordCount(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		for _, g := range guaranteesFor(t, e.client) {
			t.Run(g.String(), func(t *testing.T) {
				e := newEnv(t, e.b, e.client)
				in, want := lines(500)
				e.produce(in...)
				var s states
				cfg := e.config()
				cfg.Guarantee, cfg.Workers, cfg.StateListener = g, 2, s.listen
				app := e.start(e.wordCount(), cfg)
				app.catchUp()
				got, all := e.counts(e.out)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("counts: -want +got\n%s", diff)
				}
				for w, counts := range all {
					for i, n := range counts {
						if n != int64(i+1) {
							t.Fatalf("counts of %s: %v", w, counts)
						}
					}
				}
				app.close()
				if want := []string{"created>starting", "starting>restoring", "restoring>running", "running>closing", "closing>closed"}; !slices.Equal(s.seen, want) {
					t.Errorf("states %v, want %v", s.seen, want)
				}
			})
		}
	})
}

// A second run finds everything, restores nothing and counts on.
func TestRestartAfterCleanStop(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		in, want := lines(200)
		e.produce(in...)
		app := e.start(e.wordCount(), e.config())
		app.catchUp()
		app.close()
		e.produce(in...)
		app = e.start(e.wordCount(), e.config())
		app.catchUp()
		found := 0
		for _, w := range app.Status().Workers {
			for _, s := range w.Tasks {
				if s.ID.Subtopology == 1 && s.Found.Existing {
					found++
				}
				for _, r := range s.Restore {
					if r.Records > 0 {
						t.Errorf("task %v restored %d records after a clean stop", s.ID, r.Records)
					}
				}
			}
		}
		if found != 2 {
			t.Errorf("%d stores were found, want 2", found)
		}
		app.close()
		for w := range want {
			want[w] *= 2
		}
		got, _ := e.counts(e.out)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("counts: -want +got\n%s", diff)
		}
	})
}

// Without the state directory the state comes back from the changelog.
func TestStateDirectoryLost(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		in, want := lines(200)
		e.produce(in...)
		app := e.start(e.wordCount(), e.config())
		app.catchUp()
		app.close()
		if err := os.RemoveAll(e.dir); err != nil {
			t.Fatal(err)
		}
		e.produce(in...)
		app = e.start(e.wordCount(), e.config())
		app.catchUp()
		var restored int64
		for _, w := range app.Status().Workers {
			for _, s := range w.Tasks {
				for _, r := range s.Restore {
					restored += r.Records
				}
			}
		}
		if restored < int64(len(want)) {
			t.Errorf("%d records restored, want at least %d", restored, len(want))
		}
		app.close()
		for w := range want {
			want[w] *= 2
		}
		got, _ := e.counts(e.out)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("counts: -want +got\n%s", diff)
		}
	})
}

// The changelog is what Kafka Streams would write: one record per key and commit, key and
// value bytes and the value's timestamp; and one header of ours.
func TestChangelogRecords(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		e.produce("a b a")
		app := e.start(e.wordCount(), e.config())
		app.catchUp()
		app.close()
		got := map[string]string{}
		for _, r := range e.read(task.ChangelogTopic(e.app, "counts")) {
			n, err := serde.Int64.Decode(r.Value)
			if err != nil || r.Timestamp != 1000 {
				t.Errorf("record %v: value %v, %v, timestamp %d", r.Key, n, err, r.Timestamp)
			}
			h, ok, err := task.FindChangeHeader(r.Headers)
			if !ok || err != nil || len(r.Headers) != 1 || h.Kind != task.ChangeCommit || h.ID.Epoch < 1 || h.ID.Number < 1 {
				t.Errorf("header %+v, %v, %v", h, ok, err)
			}
			if p := kafka.Partition(r.Key, 2); p != r.Partition {
				t.Errorf("key %s is in partition %d, not in its task's %d", r.Key, r.Partition, p)
			}
			got[string(r.Key)] += string(rune('0' + n))
		}
		if want := map[string]string{"a": "2", "b": "1"}; cmp.Diff(want, got) != "" {
			t.Errorf("changelog %v, want %v", got, want)
		}
	})
}

// The ids in store, group metadata and changelog are the same one.
func TestCommitID(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		e.produce("a b c d e f g h")
		app := e.start(e.wordCount(), e.config())
		app.catchUp()
		app.close()
		store, err := statestore.Open(filepath.Join(e.dir, e.app, "1_0"), statestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		tp := kafka.TopicPartition{Topic: e.app + "-counts-repartition", Partition: 0}
		got, err := e.admin.CommittedOffsets(e.ctx(), e.app, tp)
		if err != nil {
			t.Fatal(err)
		}
		m, err := task.DecodeMetadata(got[tp].Metadata)
		if err != nil {
			t.Fatal(err)
		}
		if m.ID != store.CommitID() || m.ID.IsZero() {
			t.Errorf("group %v, store %v", m.ID, store.CommitID())
		}
		if p := store.Positions(); len(p) != 1 || p[0].Next != got[tp].Offset {
			t.Errorf("positions %v, group %v", p, got[tp])
		}
		if m.StreamTime != 1000 || store.StreamTime() != 1000 || m.PartitionTime != 1000 {
			t.Errorf("stream time %d in the group, %d in the store, partition time %d", m.StreamTime, store.StreamTime(), m.PartitionTime)
		}
	})
}

func TestStartPositions(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		for name, c := range map[string]struct {
			start streams.StartPosition
			want  map[string]int64
		}{
			"earliest": {streams.Earliest(), map[string]int64{"old": 1, "mid": 1, "new": 1}},
			"latest":   {streams.Latest(), map[string]int64{"new": 1}},
			"time":     {streams.StartAt(ms(1001)), map[string]int64{"mid": 1, "new": 1}},
		} {
			t.Run(name, func(t *testing.T) {
				e := newEnv(t, e.b, e.client)
				e.produceRecords(kafka.Record{Topic: e.in, Timestamp: 1000, Value: []byte("old")}, kafka.Record{Topic: e.in, Timestamp: 1001, Value: []byte("mid")})
				cfg := e.config()
				cfg.Start = c.start
				app := e.start(e.wordCount(), cfg)
				app.catchUp() // the start position is committed by then
				app.close()
				e.produceRecords(kafka.Record{Topic: e.in, Timestamp: 1002, Value: []byte("new")})
				app = e.start(e.wordCount(), cfg)
				app.catchUp()
				app.close()
				got, _ := e.counts(e.out)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		}
	})
}

// Close before Run, Run twice, Close twice: nothing hangs.
func TestLifecycle(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		app, err := streams.New(e.wordCount(), e.config())
		if err != nil {
			t.Fatal(err)
		}
		if app.State() != streams.Created {
			t.Errorf("state %v", app.State())
		}
		if err := app.Close(e.ctx()); err != nil {
			t.Error(err)
		}
		if err := app.Run(e.ctx()); err == nil || !strings.Contains(err.Error(), "Run was called before") {
			t.Errorf("Run after Close: %v", err)
		}
		r := e.start(e.wordCount(), e.config())
		r.catchUp()
		r.close()
		r.close()
		if err := r.CaughtUp(e.ctx()); err == nil {
			t.Error("CaughtUp of a closed app returned nil")
		}
	})
}
