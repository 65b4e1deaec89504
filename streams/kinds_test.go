package streams_test

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// shelf is a store of each kind, all with the same records.
type shelf struct {
	plain      processor.KeyValueHandle[string, string]
	windows    processor.WindowHandle[string, string]
	stamped    processor.TimestampedWindowHandle[string, string]
	duplicates processor.WindowHandle[string, string]
	sessions   processor.SessionHandle[string, string]
	versions   processor.VersionedHandle[string, string]
}

const (
	kept       = 3 * time.Minute
	windowSize = 10 * time.Second
	gap        = 4 * time.Second
)

func newShelf(prefix string) shelf {
	text := serde.String
	return shelf{processor.KeyValue(prefix+"plain", text, text), processor.Window(prefix+"windows", text, text, windowSize, kept),
		processor.TimestampedWindow(prefix+"stamped", text, text, windowSize, kept), processor.Window(prefix+"duplicates", text, text, windowSize, kept).RetainDuplicates(),
		processor.Session(prefix+"sessions", text, text, kept), processor.Versioned(prefix+"versions", text, text, kept)}
}

func (s shelf) inMemory() shelf {
	return shelf{s.plain.InMemory(), s.windows.InMemory(), s.stamped.InMemory(), s.duplicates.InMemory(), s.sessions.InMemory(), s.versions.InMemory()}
}

func (s shelf) defs() []processor.StoreDef {
	return []processor.StoreDef{s.plain, s.windows, s.stamped, s.duplicates, s.sessions, s.versions}
}

type (
	textContext = processor.Context[string, string]
	textRecord  = processor.Record[string, string]
)

// keep writes a record into all stores; a null deletes.
func (s shelf) keep(ctx textContext, r textRecord) error {
	start := time.UnixMilli(r.Timestamp.UnixMilli() / windowSize.Milliseconds() * windowSize.Milliseconds())
	err := s.session(ctx, r)
	if !r.HasValue() {
		_, _, err2 := s.plain.In(ctx).Delete(r.Key)
		_, _, err3 := s.versions.In(ctx).Delete(r.Key, r.Timestamp)
		return errors.Join(err, err2, err3, s.windows.In(ctx).Delete(r.Key, start), s.stamped.In(ctx).Delete(r.Key, start, r.Timestamp), s.duplicates.In(ctx).Delete(r.Key, start))
	}
	had, _, err2 := s.windows.In(ctx).Get(r.Key, start)
	_, err3 := s.versions.In(ctx).Put(r.Key, r.Value, r.Timestamp)
	return errors.Join(err, err2, err3, s.plain.In(ctx).Put(r.Key, r.Value), s.windows.In(ctx).Put(r.Key, had+"+"+r.Value, start),
		s.stamped.In(ctx).Put(r.Key, r.Value, start, r.Timestamp), s.duplicates.In(ctx).Put(r.Key, r.Value, start))
}

func (s shelf) session(ctx textContext, r textRecord) error {
	sessions, start, end, all := s.sessions.In(ctx), r.Timestamp, r.Timestamp, r.Value
	for x, err := range sessions.Find(r.Key, start.Add(-gap), end.Add(gap)) {
		if err != nil {
			return err
		}
		if x.Start.Before(start) {
			start = x.Start
		}
		if x.End.After(end) {
			end = x.End
		}
		all = x.Value + "+" + all
		if err := sessions.Remove(r.Key, x.Start, x.End); err != nil {
			return err
		}
	}
	if !r.HasValue() {
		return nil
	}
	return sessions.Put(r.Key, all, start, end)
}

// dump gives all that is in the stores as text, and what the searches of one key find.
func (s shelf) dump(ctx textContext) string {
	var none time.Time
	var b strings.Builder
	put(&b, "plain", s.plain.In(ctx).All())
	put(&b, "windows", s.windows.In(ctx).All())
	put(&b, "stamped", s.stamped.In(ctx).ReverseAll())
	put(&b, "duplicates", s.duplicates.In(ctx).All())
	put(&b, "sessions", s.sessions.In(ctx).All())
	put(&b, "versions", s.versions.In(ctx).All())
	for _, key := range []string{"a", "b"} {
		put(&b, "window of "+key, s.stamped.In(ctx).Fetch(key, none, none))
		put(&b, "duplicates of "+key, s.duplicates.In(ctx).ReverseFetch(key, none, none))
		put(&b, "sessions of "+key, s.sessions.In(ctx).Fetch(key))
		put(&b, "versions of "+key, s.versions.In(ctx).ReverseVersions(key, none, none))
	}
	return b.String()
}

func put[E any](b *strings.Builder, what string, entries iter.Seq2[E, error]) {
	for e, err := range entries {
		if err != nil {
			fmt.Fprintf(b, "%s: %v\n", what, err)
			continue
		}
		fmt.Fprintf(b, "%s: %v\n", what, e)
	}
}

// onShelves gives the topology that keeps every record on all shelves, and puts out what is on
// them for a record with the value "dump".
func (e *env) onShelves(shelves ...shelf) *processor.Topology {
	t := processor.NewTopology()
	processor.AddSource(t, "source", serde.String, serde.String, e.in)
	var defs []processor.StoreDef
	for _, s := range shelves {
		defs = append(defs, s.defs()...)
	}
	processor.AddProcessor(t, "keep", func() processor.Func[string, string, string, string] {
		return func(ctx textContext, r textRecord) error {
			var texts []string
			for _, s := range shelves {
				if r.Value != "dump" {
					if err := s.keep(ctx, r); err != nil {
						return err
					}
					continue
				}
				texts = append(texts, s.dump(ctx))
			}
			if r.Value != "dump" {
				return nil
			}
			return ctx.Forward(processor.WithValue(r, strings.Join(texts, "\f")))
		}
	}, []string{"source"}, defs...)
	processor.AddSink(t, "sink", e.out, serde.String, serde.String, "keep")
	return t
}

// story makes records for both partitions: times that go on, with late ones, some of which come
// too late, and now and then a jump that lets everything before expire, but not at the end.
type story struct {
	now  int64
	next func(n int) int
	n    int
}

func newStory(t *testing.T) *story {
	return &story{now: time.Now().Add(-24*time.Hour).UnixMilli() / 60_000 * 60_000, next: testseed.New(t).IntN}
}

func (s *story) records(topic string, n int) (out []kafka.Record) {
	for i := range n {
		s.n++
		s.now += int64(s.next(3000))
		if i < n/2 && s.next(50) == 0 {
			s.now += int64(s.next(300_000))
		}
		at := s.now
		switch s.next(10) {
		case 0, 1:
			at -= int64(s.next(60_000))
		case 2:
			at -= int64(s.next(400_000))
		}
		r := kafka.Record{Topic: topic, Partition: int32(s.next(2)), Timestamp: at, Key: []byte(string(rune('a' + s.next(5))))}
		if s.next(6) > 0 {
			r.Value = []byte(fmt.Sprint(s.n))
		}
		out = append(out, r)
	}
	return out
}

// dumps asks for what is on the shelves of both tasks: the same of all shelves.
func (r *running) dumps() map[string]string {
	e := r.env
	e.t.Helper()
	var ask []kafka.Record
	for p := range int32(2) {
		ask = append(ask, kafka.Record{Topic: e.in, Partition: p, Timestamp: 1, Key: []byte(fmt.Sprint("dump", p)), Value: []byte("dump")})
	}
	e.produceRecords(ask...)
	r.catchUp()
	out := map[string]string{}
	for _, rec := range e.read(e.out) {
		shelves := strings.Split(string(rec.Value), "\f")
		for _, other := range shelves[1:] {
			if diff := cmp.Diff(shelves[0], other); diff != "" {
				e.t.Errorf("%s: two shelves differ:\n%s", rec.Key, diff)
			}
		}
		out[string(rec.Key)] = shelves[0]
	}
	if len(out) != 2 || strings.Count(out["dump0"], "\n") < 30 {
		e.t.Errorf("hardly anything is kept: %v", out)
	}
	return out
}

func (r *running) same(what string, want map[string]string) {
	r.env.t.Helper()
	if diff := cmp.Diff(want, r.dumps()); diff != "" {
		r.env.t.Errorf("%s: -want +got\n%s", what, diff)
	}
}

// restoredStores gives the stores into which the last take-over restored records.
func (r *running) restoredStores() (stores []string) {
	for _, w := range r.Status().Workers {
		for _, t := range w.Tasks {
			for _, s := range t.Restore {
				if s.Records > 0 && !slices.Contains(stores, s.Store) {
					stores = append(stores, s.Store)
				}
			}
		}
	}
	return stores
}

// Stores of every kind, on the disk and in memory, are the same after a restart, after the disk
// was lost, and in the process that takes over.
func TestKindsSurvive(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		for _, g := range guaranteesFor(t, e.client) {
			t.Run(g.String(), func(t *testing.T) {
				t.Parallel()
				kindsSurvive(newEnv(t, e.b, e.client), g)
			})
		}
	})
}

func kindsSurvive(e *env, g streams.Guarantee) {
	t, s := e.t, newStory(e.t)
	start := func(id, dir string) *running {
		cfg := e.config()
		cfg.Guarantee, cfg.StateDir, cfg.InstanceID, cfg.SessionTimeout = g, dir, id, 3*time.Second
		return e.start(e.onShelves(newShelf(""), newShelf("memory-").inMemory()), cfg)
	}
	e.produceRecords(s.records(e.in, 500)...)
	app := start("one", e.dir)
	app.catchUp()
	want := app.dumps()
	app.close()

	app = start("one", e.dir)
	app.same("after a restart", want)
	for _, store := range app.restoredStores() {
		if !strings.HasPrefix(store, "memory-") {
			t.Errorf("%s was restored after a clean stop", store)
		}
	}
	e.produceRecords(s.records(e.in, 300)...)
	want = app.dumps()
	app.close()

	if err := os.RemoveAll(e.dir); err != nil {
		t.Fatal(err)
	}
	app = start("one", e.dir)
	app.same("without the disk", want)
	if n := len(app.restoredStores()); n != 12 {
		t.Errorf("%d stores were restored, want all 12", n)
	}
	e.produceRecords(s.records(e.in, 300)...)
	want = app.dumps()

	other := start("other", t.TempDir())
	app.close()
	other.same("in another process", want)
	other.close()
}

// Every third commit fails: what the interval wrote is dropped, with the times and numbers that
// the stores keep of themselves, and written again.
func TestKindsWhenCommitsFail(t *testing.T) {
	t.Parallel()
	b := testbroker.Kfake(t)
	for _, g := range guarantees {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			var parts [][]kafka.Record
			for range 8 {
				parts = append(parts, s.records("", 60))
			}
			run := func(failing bool) map[string]string {
				e := newEnv(t, b, clients[0])
				cfg := e.config()
				cfg.Guarantee, cfg.CommitInterval, cfg.Limits.CommitRecords = g, 5*time.Millisecond, 7
				var commits atomic.Int64
				if failing {
					cfg.Client = hooked{e.client, func() error {
						if commits.Add(1)%3 == 0 {
							return &kafka.Error{Class: kafka.ClassAbortable, Op: "send offsets", Err: errors.New("refused")}
						}
						return nil
					}}
				}
				app := e.start(e.onShelves(newShelf(""), newShelf("memory-").inMemory()), cfg)
				for _, records := range parts {
					for i := range records {
						records[i].Topic = e.in
					}
					e.produceRecords(records...)
					app.catchUp()
				}
				got := app.dumps()
				app.close()
				if failing && commits.Load() < 6 {
					t.Errorf("only %d commits", commits.Load())
				}
				return got
			}
			if diff := cmp.Diff(run(false), run(true)); diff != "" {
				t.Errorf("-without failures +with them\n%s", diff)
			}
		})
	}
}
