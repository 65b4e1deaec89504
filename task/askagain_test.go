package task

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// forgetful is a coordinator that answers with nothing, or with less than it has, for so many times.
type forgetful struct {
	kafka.Admin
	w       *world
	empty   int
	forgets []kafka.TopicPartition // nil: all
	asked   int
	ends    map[kafka.TopicPartition]int64
}

func (a *forgetful) CommittedOffsets(context.Context, string, ...kafka.TopicPartition) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
	got := map[kafka.TopicPartition]kafka.CommittedOffset{}
	for tp, o := range a.w.group {
		got[tp] = o
	}
	if a.asked++; a.asked <= a.empty {
		for _, tp := range a.forgets {
			delete(got, tp)
		}
		if a.forgets == nil {
			clear(got)
		}
	}
	return got, nil
}

func (a *forgetful) ListOffsets(_ context.Context, _ kafka.OffsetSpec, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	got := map[kafka.TopicPartition]int64{}
	for _, tp := range tps {
		got[tp] = a.ends[tp]
	}
	return got, nil
}

// A coordinator in trouble answers without offsets. Who has any trace of an earlier life asks again; a group that is
// new costs no second question.
func TestEmptyAnswerIsAskedAgain(t *testing.T) {
	log := kafka.TopicPartition{Topic: "app-counts-changelog"}
	ours := func(w *world) { w.commit(id(2, 3), nil, inA, inB) }
	for name, c := range map[string]struct {
		prepare func(r *restoringWorker, a *forgetful)
		empty   int
		asked   int
		offsets int
	}{
		"new group":                        {func(*restoringWorker, *forgetful) {}, 0, 1, 0},
		"store with a commit":              {func(r *restoringWorker, _ *forgetful) { ours(r.world); r.apply(id(2, 3)) }, 2, 3, 2},
		"nothing but a changelog":          {func(r *restoringWorker, a *forgetful) { ours(r.world); a.ends[log] = 7 }, 2, 3, 2},
		"application known to have run":    {func(r *restoringWorker, _ *forgetful) { ours(r.world); r.w.cfg.Existing = true }, 2, 3, 2},
		"one partition of the task":        {func(r *restoringWorker, a *forgetful) { ours(r.world); a.forgets = []kafka.TopicPartition{inB} }, 2, 3, 2},
		"really lost":                      {func(r *restoringWorker, _ *forgetful) { r.apply(id(2, 3)) }, 0, 1 + len(emptyWaits), 0},
		"another task's, of a former life": {func(r *restoringWorker, _ *forgetful) { r.other(2) }, 0, 1 + len(emptyWaits), 1},
		"another task's, of this life":     {func(r *restoringWorker, _ *forgetful) { r.other(1) }, 0, 1, 1},
		"input that is new": {func(r *restoringWorker, _ *forgetful) {
			r.world.commit(id(2, 3), func(m *Metadata) { m.Sources = r.task.covered.sources[:1] }, inA)
		}, 0, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, a := newForgetful(t)
			c.prepare(r, a)
			a.empty = c.empty
			log := &bytes.Buffer{}
			r.w.log = slog.New(slog.NewTextHandler(log, nil))
			for range 2 { // steps 2 and 4: it waits in one of them only
				got, err := r.w.groupOffsets(t.Context(), []*Task{r.task})
				if err != nil || len(got) != c.offsets {
					t.Errorf("%v, %v", got, err)
				}
			}
			if a.asked != c.asked+1 {
				t.Errorf("asked %d times, and %d more; want %d", c.asked, a.asked-c.asked, c.asked+1)
			}
			told := 0
			if c.asked > 1 {
				told = 1
			}
			if n, again := strings.Count(log.String(), "\n"), strings.Count(log.String(), "level=INFO msg=\"the group has no offsets"); n != told || again != told {
				t.Errorf("want %d line in the log:\n%s", told, log)
			}
		})
	}
}

// other lets the group have an offset of another task.
func (r *restoringWorker) other(epoch int64) {
	r.world.commit(id(epoch, 0), nil, kafka.TopicPartition{Topic: "a", Partition: 1})
}

func newForgetful(t *testing.T) (*restoringWorker, *forgetful) {
	r := newRestoring(t)
	fresh := newWorld(t)
	fresh.task.cfg = r.task.cfg
	r.world = fresh
	a := &forgetful{w: fresh, ends: map[kafka.TopicPartition]int64{}}
	r.w.cfg.Admin, r.w.emptyWaits = a, make([]time.Duration, len(emptyWaits))
	return r, a
}

// A stop does not make an empty answer believed.
func TestStopWhileAskingAgain(t *testing.T) {
	r, a := newForgetful(t)
	r.apply(id(2, 3))
	a.empty = 100
	r.w.emptyWaits = []time.Duration{time.Hour}
	r.w.Stop()
	if _, err := r.w.groupOffsets(t.Context(), []*Task{r.task}); !errors.Is(err, errStopped) {
		t.Errorf("%v", err)
	}
}

// Where records of an input were deleted before they were read the task stops, or goes on at the start of the log.
func TestInputBeginsBehindTheOffset(t *testing.T) {
	for choice, want := range map[Conflict]string{Stop: "choose accept-reset", UseStore: "use-store is not possible", AcceptReset: ""} {
		t.Run(choice.String(), func(t *testing.T) {
			r, a := newForgetful(t)
			r.world.commit(id(2, 3), nil, inA, inB)
			r.apply(id(2, 3))
			r.w.cfg.OnConflict = choice
			a.ends = map[kafka.TopicPartition]int64{inA: 130, inB: 100}
			plans, err := r.w.survey(t.Context(), []*Task{r.task})
			if want != "" {
				if !errors.Is(err, ErrRecordsGone) || disposition(err) != FailTask || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a-0: 30 records are gone") || strings.Contains(err.Error(), "b-0") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			plans[0].position(nil)
			if a, b := r.task.queue(inA).position, r.task.queue(inB).position; a != 130 || b != 100 || len(plans[0].stores) != 0 {
				t.Errorf("goes on at %d and %d, restores %v", a, b, plans[0].stores)
			}
		})
	}
}

// They may also be deleted while the task reads.
func TestInputDeletedWhileItIsRead(t *testing.T) {
	gone := &kafka.Error{Class: kafka.ClassOffsetOutOfRange, Op: "fetch"}
	for choice, want := range map[Conflict]int64{Stop: 100, UseStore: 100, AcceptReset: 130} {
		r, a := newForgetful(t)
		r.w.cfg.WhileRunning = choice
		if choice == Stop {
			r.w.cfg.OnConflict = AcceptReset // recorded for the start alone
		}
		r.w.tasks = []*Task{r.task}
		a.ends = map[kafka.TopicPartition]int64{inA: 130}
		q := r.task.queue(inA)
		q.position, q.fetched = 100, 100
		err := r.w.partitionError(t.Context(), q, gone)
		if (err == nil) != (choice == AcceptReset) || err != nil && !errors.Is(err, ErrRecordsGone) || q.position != want {
			t.Errorf("%v: %v, goes on at %d", choice, err, q.position)
		}
		if from, assigned := r.feed.from[inA]; assigned != (choice == AcceptReset) || assigned && from != 130 {
			t.Errorf("%v: assigned at %d, %v", choice, from, assigned)
		}
	}
}
