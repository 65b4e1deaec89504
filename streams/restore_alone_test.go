package streams_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// A task that fails while it is restored beside the others fails alone: the others that are restored with it come to
// run, and those that run already are not taken over again.
func TestOneRestoreFailsAlone(t *testing.T) {
	const keys = 20_000
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	e.in += "-4"
	e.create(e.in, 4)
	e.produceKeys(0, 2000)
	e.produceKeys(1, keys)
	e.produceKeys(2, keys)
	e.produceKeys(3, 10)
	app := e.start(e.perKey(), e.config())
	app.catchUp()
	app.close()
	for _, name := range []string{"0_0", "0_1", "0_2"} {
		must(t, os.RemoveAll(filepath.Join(e.dir, e.app, name)))
	}
	e.produceRecords(kafka.Record{Topic: e.app + "-counts-changelog", Partition: 0, Timestamp: 1, Key: []byte("k"), Value: []byte("v"),
		Headers: []kafka.Header{{Key: task.HeaderKey, Value: []byte("of somebody else")}}})

	type failure struct {
		id  processor.TaskID
		err error
	}
	failures := make(chan failure, 10)
	gate := &gated{e.client, kafka.TopicPartition{Topic: e.app + "-counts-changelog", Partition: 1}, make(chan struct{}, 1), make(chan struct{})}
	cfg := e.config()
	cfg.Client, cfg.OnTaskFailure, cfg.Limits.ShortRestore, cfg.Limits.LargeRestore = gate, streams.KeepOthers, 100, 10_000
	cfg.TaskFailureListener = func(id processor.TaskID, err error) { failures <- failure{id, err} }
	var reloads atomic.Bool
	cfg.Logger = slog.New(noticing{discard.Handler(), "reload tasks", &reloads})
	app = e.start(e.perKey(), cfg)
	e.produceKeys(3, 10)
	kafkatest.Eventually(t, 90*time.Second, "the counts of the task that runs", func() bool { return e.count("p3-9") == 2 })
	gate.open()
	select {
	case f := <-failures:
		if f.id != (processor.TaskID{}) {
			t.Errorf("task %v failed", f.id)
		}
		contains(t, f.err, "task 0_0", "restore store counts", "-counts-changelog-0@")
	case err := <-app.res:
		t.Fatalf("the application ended: %v", err)
	case <-e.ctx().Done():
		t.Fatal("no task failed")
	}
	for p := range int32(4) {
		e.produceKeys(p, 1)
	}
	app.catchUp()
	if failed := failedTasks(app); failed != 1 || app.State() != streams.Running || reloads.Load() {
		t.Errorf("%d tasks failed, state %v, reloaded: %v", failed, app.State(), reloads.Load())
	}
	for key, want := range map[string]int64{"p0-0": 1, "p1-0": 2, "p2-0": 2, "p3-0": 3} {
		if got := e.count(key); got != want {
			t.Errorf("count of %s: %d, want %d", key, got, want)
		}
	}
	contains(t, app.Close(e.ctx()), "task 0_0", "restore store counts")
	if len(failures) > 0 {
		t.Errorf("another failure: %v", <-failures)
	}
}
