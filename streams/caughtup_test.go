package streams_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/streams"
)

// Whoever waits for an application that fails hears why.
func TestCaughtUpTellsTheReason(t *testing.T) {
	b := testbroker.Kfake(t)
	cause := errors.New("user error")
	for range 5 { // the moment is another each time
		e := newEnv(t, b, clients[0])
		e.produce("x")
		app := e.start(e.one(each(func(processor.Context[string, string], processor.Record[string, string]) error { return cause })), e.config())
		errs := make(chan error, 3)
		var all sync.WaitGroup
		for range cap(errs) {
			all.Go(func() { errs <- app.CaughtUp(e.ctx()) })
		}
		all.Wait()
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, streams.ErrNotRunning) || !errors.Is(err, cause) {
				t.Errorf("%v", err)
			}
		}
	}
}

// Before Run it waits, as long as its context lets it; when the application is closed it ends.
func TestCaughtUpWithoutRun(t *testing.T) {
	app, err := streams.New(emptyTopology(t), streams.Config{AppID: "app", Brokers: []string{"127.0.0.1:1"}, StateDir: t.TempDir(), Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := app.CaughtUp(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.CaughtUp(t.Context()) }()
	if err := app.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, streams.ErrNotRunning) {
		t.Errorf("%v", err)
	}
}

// A listener may ask the application about itself.
func TestStateListenerAsks(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	var app *running
	ready := make(chan struct{})
	var mu sync.Mutex
	told := map[streams.State]bool{}
	cfg := e.config()
	cfg.Workers = 3
	cfg.StateListener = func(_, to streams.State) {
		<-ready
		mu.Lock()
		defer mu.Unlock()
		told[to] = true
		app.Status()
		if is := app.State(); is != to {
			t.Errorf("told of %v in state %v", to, is)
		}
	}
	app = e.start(e.wordCount(), cfg)
	close(ready)
	app.catchUp()
	kafkatest.Eventually(t, time.Minute, "running", func() bool { return app.State() == streams.Running })
	app.close()
	mu.Lock()
	defer mu.Unlock()
	for _, s := range []streams.State{streams.Starting, streams.Restoring, streams.Running, streams.Closing, streams.Closed} {
		if !told[s] {
			t.Errorf("not told of %v", s)
		}
	}
}
