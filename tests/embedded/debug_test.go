package embedded

import (
	"context"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// debugLoop is a loop in debug mode with n records of one key to come.
func debugLoop(t *testing.T, n int, stores ...processor.StoreDef) (*world, loop) {
	w := newWorld(t, doors[0])
	w.produce(10*n - 9)
	cfg := w.config(t.TempDir(), embedded.AtLeastOnce)
	cfg.Debug, cfg.Stores = true, append(cfg.Stores, stores...)
	return w, w.start(cfg)
}

// In debug mode a store is used in the Process that opened it, on that goroutine, or says why not.
func TestDebugStores(t *testing.T) {
	t.Parallel()
	window := processor.Window("window", serde.String, serde.Int64, time.Second, time.Hour)
	w, l := debugLoop(t, 4, window)
	var kept *processor.KeyValueStore[string, int64]
	var next func() (processor.Entry[string, int64], error, bool)
	var stop func()
	got := 0
	f := func(task *embedded.Task, r record) error {
		if r.key != key(0) {
			return nil
		}
		got++
		s, win := counts.In(task), window.In(task)
		if s != counts.In(task) {
			t.Error("a store is opened anew at each use")
		}
		elsewhere := make(chan error, 4)
		go func() {
			elsewhere <- s.Put("wrong", 1)
			elsewhere <- win.Put("wrong", 1, time.UnixMilli(1))
			_, err := s.ApproximateCount()
			elsewhere <- err
			for _, err := range s.All() {
				elsewhere <- err
			}
		}()
		for range 4 {
			wants(t, <-elsewhere, "store ", "another goroutine")
		}
		if kept != nil {
			wants(t, kept.Put("wrong", 1), "store counts", "an earlier Process")
			_, err, ok := next()
			wants(t, err, "an earlier Process")
			if !ok {
				t.Error("the iteration has ended without its error")
			}
			stop()
		}
		if err := s.Put("a", int64(got)); err != nil {
			return err
		}
		if err := s.Put("b", int64(got)); err != nil {
			return err
		}
		// A coroutine is another goroutine that is none: it runs while this one waits for it.
		kept = s
		next, stop = iter.Pull2(s.All())
		if e, err, ok := next(); !ok || err != nil || e.Key != "a" {
			t.Errorf("pulled %v, %v, %v", e, err, ok)
		}
		return nil
	}
	w.until(l, f, "all came", func() bool { return got >= 4 })
	wants(t, kept.Put("wrong", 1), "store counts", "Process has returned")
	_, _, err := kept.Get("a")
	wants(t, err, "store counts", "Process has returned")
	_, err, _ = next()
	wants(t, err, "Process has returned")
	stop()
	if len(w.told) > 0 {
		t.Error(w.told)
	}
	if err := l.Commit(context.Background()); err != nil {
		t.Error(err)
	}
	w.close(l)
	wants(t, kept.Put("wrong", 1), "Process has returned")
}

// A goroutine that outlives its Process, and uses what it was given there, is told so, and is no data race.
func TestDebugLeakedGoroutine(t *testing.T) {
	t.Parallel()
	timed := processor.TimestampedKeyValue("timed", serde.String, serde.Int64)
	window := processor.Window("window", serde.String, serde.Int64, time.Second, time.Hour)
	session := processor.Session("session", serde.String, serde.Int64, time.Hour)
	versioned := processor.Versioned("versioned", serde.String, serde.Int64, time.Hour)
	w, l := debugLoop(t, 20, timed, window, session, versioned)
	at := time.UnixMilli(1000)
	use := func(task *embedded.Task) (uses []func() error) {
		s, tkv, win, ses, ver := counts.In(task), timed.In(task), window.In(task), session.In(task), versioned.In(task)
		return []func() error{
			func() error { return s.Put("a", 1) },
			func() error { _, _, err := s.Get("a"); return err },
			func() error { return s.PutAll(processor.Entry[string, int64]{Key: "a", Value: 2}) },
			func() error { return tkv.Put("a", 1, at) },
			func() error { return win.Put("a", 1, at) },
			func() error { return ses.Put("a", 1, at, at) },
			func() error { _, err := ver.Put("a", 1, at); return err },
			func() error { _, _, err := ver.Delete("b", at); return err },
			func() error { _, _, err := counts.In(task).Get("a"); return err },
		}
	}
	var wrong atomic.Int64
	leave, left := make(chan struct{}), make(chan struct{})
	got := 0
	f := func(task *embedded.Task, r record) error {
		uses := use(task)
		if got++; got == 1 {
			go func() { // ended below
				defer close(left)
				for {
					select {
					case <-leave:
						return
					default:
					}
					for i, f := range append(uses, func() error { return task.Send(w.out, nil, nil) }) {
						if f() == nil {
							t.Errorf("use %d on another goroutine was let through", i)
							return
						}
						wrong.Add(1)
					}
					runtime.Gosched()
				}
			}()
		}
		for _, f := range uses {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
	w.until(l, f, "all came, and the other goroutine has gone on meanwhile", func() bool { return got >= w.seq && wrong.Load() > 100 })
	close(leave)
	<-left
	if len(w.told) > 0 {
		t.Error(w.told)
	}
	w.close(l)
}
