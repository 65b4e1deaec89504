package streams_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// checkCached compares the outputs of a word count with caching with an independent count: the last of
// each word; under exactly-once also that its counts only grow: none is sent twice.
func (e *env) checkCached(g streams.Guarantee, want map[string]int64) (outputs int) {
	e.t.Helper()
	got, all := e.counts(e.out)
	if diff := cmp.Diff(want, got); diff != "" {
		e.t.Errorf("counts: -want +got\n%s", diff)
	}
	for w, counts := range all {
		outputs += len(counts)
		if unique := slices.Compact(slices.Clone(counts)); g == streams.ExactlyOnce && (!slices.IsSorted(counts) || len(unique) < len(counts)) {
			e.t.Errorf("counts of %s: %v", w, counts)
		}
	}
	return outputs
}

// Caching sends fewer updates, through two sub-topologies, and ends with the same counts; also when
// the state is lost, which then holds all that was sent.
func TestCaching(t *testing.T) {
	t.Parallel()
	b := testbroker.Kfake(t)
	for _, g := range guarantees {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, b, clients[0])
			cfg := e.config()
			cfg.Guarantee, cfg.Store.Caching = g, true
			in, want := lines(300)
			for range 2 {
				e.produce(in...)
				app := e.start(e.wordCount(), cfg)
				app.catchUp()
				app.close()
				if err := os.RemoveAll(e.dir); err != nil {
					t.Fatal(err)
				}
			}
			for w := range want {
				want[w] *= 2
			}
			// One update a record are 1,800; one a word and commit are 37.
			if n := e.checkCached(g, want); n > 900 {
				t.Errorf("%d outputs", n)
			}
		})
	}
}

// A commit that fails takes what was held back with it: the records are processed again.
func TestCachingAcrossFaults(t *testing.T) {
	t.Parallel()
	for _, g := range guarantees {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			random := testseed.New(t)
			b := testbroker.Kfake(t)
			e := newEnv(t, b, clients[0])
			cfg := e.config()
			cfg.Guarantee, cfg.CommitInterval, cfg.Store.Caching = g, 10*time.Millisecond, true
			cfg.Settings.RequestTimeout, cfg.TransactionTimeout = time.Second, 3*time.Second
			app := e.start(e.wordCount(), cfg)
			app.catchUp()
			want := map[string]int64{}
			for range 5 {
				in, counts := lines(200)
				e.produce(in...)
				for w, n := range counts {
					want[w] += n
				}
				wait(time.Duration(random.IntN(40)) * time.Millisecond)
				if random.IntN(2) == 0 {
					b.Network.Break()
				} else {
					b.Network.LoseAnswers()
					wait(time.Duration(random.IntN(200)) * time.Millisecond)
				}
				b.Network.Heal()
			}
			app.catchUp()
			app.close()
			e.checkCached(g, want)
		})
	}
}

// What fails behind a table at the commit ends the application with the task, the table, the key and
// the node; nothing of the interval is committed.
func TestCachedUpdateFails(t *testing.T) {
	b := testbroker.Kfake(t)
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("will not do") },
		"panic": func() error { panic("will not do") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, b, clients[0])
			both := streams.With(serde.String, serde.String)
			build := func(f work) *streams.Topology {
				builder := streams.NewBuilder()
				byValue := streams.Stream(builder, e.in, both)
				table := streams.SelectKey(byValue, func(_, v string) string { return v }, serde.String).
					ToTable(streams.Materialized{Name: "rows", Caching: true}, "rows-of-words")
				streams.Process(table.ToStream(), each(f), both.Named("picky")).To(e.out)
				topology, err := builder.Build()
				if err != nil {
					t.Fatal(err)
				}
				return topology
			}
			e.produce("good", "bad")
			app := e.start(build(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
				if r.Key == "bad" {
					return fail()
				}
				return ctx.Forward(r)
			}), e.config())
			app.fails("task 1_", "rows-of-words", `key "bad"`, "node picky", "will not do")
			// The record is still to be processed.
			app = e.start(build(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
				return ctx.Forward(r)
			}), e.config())
			app.catchUp()
			app.close()
			if got := strings.Join(slices.Compact(e.values()), " "); got != "bad good" {
				t.Errorf("outputs: %s", got)
			}
		})
	}
}
