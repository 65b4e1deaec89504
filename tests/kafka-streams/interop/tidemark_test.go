package interop

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

var (
	plain   = processor.KeyValue("plain", serde.String, serde.Nullable(serde.String))
	stamped = processor.TimestampedKeyValue("stamped", serde.String, serde.String)
)

// topology is that of Interop.java.
func (e *env) topology() *streams.Topology {
	e.t.Helper()
	b := streams.NewBuilder()
	words := streams.FlatMapValues(streams.Stream(b, e.words, streams.With(serde.String, serde.String)), strings.Fields, serde.String)
	streams.GroupBy(words, func(_, w string) string { return w }, serde.String).
		Count(streams.Materialized{Name: "counts"}).ToStream().To(e.counts)
	text := streams.With(serde.String, serde.String)
	pairs := streams.Process(streams.Stream(b, e.pairs, text), func() step { return shift }, text)
	streams.Process(pairs, func() step { return history }, text, plain, stamped).To(e.histories)
	streams.Process(pairs, func() step { return kinds }, text, windows, stampedWindows, duplicates, sessions, versions).To(e.kinds)
	topology, err := b.Build()
	if err != nil {
		e.t.Fatal(err)
	}
	return topology
}

// shiftBy is by how much, in milliseconds.
const shiftBy = 500

type step = processor.Func[string, string, string, string]

// shift gives the records another timestamp than those of the topic have.
func shift(ctx processor.Context[string, string], r processor.Record[string, string]) error {
	r.Timestamp = r.Timestamp.Add(-shiftBy * time.Millisecond)
	return ctx.Forward(r)
}

// history appends each value to what the key has had since its last null, which deletes it.
func history(ctx textContext, r textRecord) error {
	text, err := historyOf(ctx, r)
	switch {
	case err != nil:
		return err
	case text == nil:
		return ctx.Forward(r)
	}
	return ctx.Forward(processor.WithValue(r, *text))
}

// historyOf gives what history puts out, nil for a null.
func historyOf(ctx processor.StoreContext, r textRecord) (*string, error) {
	plain, stamped := plain.In(ctx), stamped.In(ctx)
	if !r.HasValue() {
		// Not Delete, which leaves a key that is not there alone: Kafka Streams logs it again.
		if err := plain.Put(r.Key, nil); err != nil {
			return nil, err
		}
		return nil, stamped.Delete(r.Key, r.Timestamp)
	}
	had, ok, err := plain.Get(r.Key)
	if err != nil {
		return nil, err
	}
	other, at, otherOK, err := stamped.Get(r.Key)
	if err != nil {
		return nil, err
	}
	if ok != otherOK || (ok && *had != other) {
		return nil, fmt.Errorf("the stores differ at %s: %v, %q", r.Key, had, other)
	}
	text, stamp := r.Value, time.UnixMilli(r.Timestamp.UnixMilli()/2)
	if ok {
		text, stamp = *had+","+text, at.Add(time.Millisecond)
	}
	if err := plain.Put(r.Key, &text); err != nil {
		return nil, err
	}
	if err := stamped.Put(r.Key, text, stamp); err != nil {
		return nil, err
	}
	out := fmt.Sprintf("%s@%d", text, stamp.UnixMilli())
	return &out, nil
}

// tidemark is a running application.
type tidemark struct {
	*streams.App
	e   *env
	res chan error
}

func (e *env) config(state string) streams.Config {
	return streams.Config{AppID: e.app, Brokers: e.b.Addrs, StateDir: state, Client: e.client, Guarantee: e.guarantee, SessionTimeout: 3 * time.Second,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

func (e *env) tidemark(state string) *tidemark {
	e.t.Helper()
	return e.run(e.config(state))
}

func (e *env) run(cfg streams.Config) *tidemark {
	e.t.Helper()
	app, err := streams.New(e.topology(), cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	r := &tidemark{app, e, make(chan error, 1)}
	go func() { r.res <- app.Run(context.Background()) }() // ended by the Close below
	e.t.Cleanup(func() { _ = app.Close(e.ctx()) })
	return r
}

// close waits until all is counted, and ends it.
func (r *tidemark) close() {
	r.e.t.Helper()
	if err := r.CaughtUp(r.e.ctx()); err != nil {
		r.e.t.Fatal(err)
	}
	if err := r.Close(r.e.ctx()); err != nil {
		r.e.t.Fatal(err)
	}
}

// fails waits for the end with an error that contains all words.
func (r *tidemark) fails(words ...string) {
	r.e.t.Helper()
	select {
	case err := <-r.res:
		if err == nil {
			r.e.t.Fatalf("closed without an error; want one with %q", words)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				r.e.t.Errorf("error %q does not contain %q", err, w)
			}
		}
	case <-r.e.ctx().Done():
		r.e.t.Fatalf("it did not fail; state %v", r.State())
	}
}

// restored gives how many records were restored into each store.
func (r *tidemark) restored() map[string]int {
	out := map[string]int{}
	for _, w := range r.Status().Workers {
		for _, task := range w.Tasks {
			for _, s := range task.Restore {
				out[s.Store] += int(s.Records)
			}
		}
	}
	return out
}

// each runs a test in both guarantees; with clients beside the first only in one, because
// what they do differently is joining the group.
func each(t *testing.T, others streams.Guarantee, test func(t *testing.T, e *env)) {
	for i, c := range clients {
		for _, g := range guarantees {
			if i > 0 && g != others {
				continue
			}
			t.Run(c.Name()+"/"+g.String(), func(t *testing.T) {
				t.Parallel()
				test(t, newEnv(t, c, g))
			})
		}
	}
}
