package embedded

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	kafkafranz "github.com/tidemark-streams/tidemark/kafka/franz"
)

func numbered(key string, i int) string { return fmt.Sprintf("%s number %d", key, i) }

// A changelog that was lost is written again from the store, piece by piece: between two of them others have the
// host. A disk that is lost after that comes back whole.
func TestLostChangelogIsWrittenAgain(t *testing.T) {
	many := 15_000 // keys of each record: more than a piece
	if testing.Short() {
		many = 5_000 // of a task's two or three
	}
	everywhere(t, func(w *world) {
		x, dir := w.watch(), w.t.TempDir()
		f := func(t *embedded.Task, r record) error {
			s := counts.In(t)
			for i := range many {
				if err := s.Put(numbered(r.key, i), int64(i)); err != nil {
					return err
				}
			}
			return count(t, r.key, w.out)
		}
		run := func(beside func(l loop, ended <-chan struct{})) {
			w.t.Helper()
			w.produce(10)
			l, ended := w.start(w.config(dir, embedded.ExactlyOnce)), make(chan struct{})
			end := sync.OnceFunc(func() { close(ended) })
			var all sync.WaitGroup
			defer all.Wait()
			defer end()
			if beside != nil {
				all.Go(func() { beside(l, ended) })
			}
			w.until(l, f, "all records are counted", func() bool { return x.reached(w.seq) })
			end()
			all.Wait()
			w.close(l)
		}
		written := func(l loop) (text string) {
			for _, s := range l.Status().Tasks {
				for _, r := range s.Repaired {
					text += fmt.Sprintf("%v: %s, %d records\n", s.ID, r.Action, r.Records)
				}
			}
			return text
		}
		run(nil)
		admin, err := kafkafranz.Client{}.NewAdmin(w.b.Settings())
		if err != nil {
			w.t.Fatal(err)
		}
		testbroker.RemoveTopic(w.t, admin, w.app+"-counts-changelog")
		_ = admin.Close(context.Background())
		commits, last := 0, ""
		run(func(l loop, ended <-chan struct{}) {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for over := false; !over; {
				select {
				case <-ended:
					over = true
				case <-tick.C:
				}
				// A piece that the group has refused (the broker has raised the member's epoch, and the member has not heard of it)
				// takes the running interval with it.
				err := l.Commit(context.Background())
				if err != nil && !strings.Contains(err.Error(), "come again") {
					w.t.Error(err)
				}
				if last = written(l); err == nil && strings.Contains(last, "being written") {
					commits++
				}
			}
		})
		if commits == 0 || strings.Contains(last, "being written") || !strings.Contains(last, "written to the changelog again") {
			w.t.Errorf("%d commits meanwhile; in the end %q", commits, last)
		}
		if err := os.RemoveAll(dir); err != nil {
			w.t.Fatal(err)
		}
		lost := make(chan error, 40)
		w.produce(10)
		l := w.start(w.config(dir, embedded.ExactlyOnce))
		w.until(l, func(t *embedded.Task, r record) error {
			n, ok, err := counts.In(t).Get(numbered(r.key, many-1))
			if n != int64(many-1) || !ok || err != nil {
				lost <- fmt.Errorf("%s: %d, %v, %w", r.key, n, ok, err)
			}
			return count(t, r.key, w.out)
		}, "all records are counted", func() bool { return x.reached(w.seq) || len(lost) > 0 })
		w.close(l)
		select {
		case err := <-lost:
			w.t.Error("after the disk was lost:", err)
		default:
		}
		x.check(w.t, w.seq, embedded.ExactlyOnce)
	})
}
