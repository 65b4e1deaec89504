package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/franz"
	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/kafka"
	franzclient "github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// host is what both doors of the embedded form have.
type host interface {
	Err() error
	Ready() []kafka.TopicPartition
	Status() task.Status
	Close(ctx context.Context) error
}

// function is what a consumer program does with a message.
type function func(t *embedded.Task, key, value []byte, at time.Time) error

// doors open a host for the group and the input of the application, by the name of the client. Then
// turn polls once and processes what came.
var doors = map[string]func(e *env, cfg embedded.Config, f function) (h host, turn func(context.Context) error, err error){(franzclient.Client{}).Name(): openFranz}

func openFranz(e *env, cfg embedded.Config, f function) (host, func(context.Context) error, error) {
	h, err := franz.Open(context.Background(), []kgo.Opt{kgo.SeedBrokers(e.b.Addrs...), kgo.ConsumerGroup(e.app), kgo.ConsumeTopics(e.pairs)}, cfg)
	if err != nil {
		return nil, nil, err
	}
	return h, func(ctx context.Context) error {
		wait, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // a host that has failed wakes nobody
		defer cancel()
		fetches := h.Client().PollFetches(wait)
		var errs []error
		if err := fetches.Err(); wait.Err() == nil {
			errs = append(errs, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			errs = append(errs, h.Process(r, func(t *embedded.Task) error { return f(t, r.Key, r.Value, r.Timestamp) }))
		})
		return errors.Join(errs...)
	}, nil
}

// keepPair does with a message what the application does with a pair.
func (e *env) keepPair(t *embedded.Task, key, value []byte, at time.Time) error {
	r := textRecord{Key: string(key), Value: string(value), NullValue: value == nil, Timestamp: at}
	history, err := historyOf(t, r)
	if err != nil {
		return err
	}
	said, err := kindsOf(t, r)
	if err != nil {
		return err
	}
	var out []byte
	if history != nil {
		out = []byte(*history)
	}
	return errors.Join(t.Send(e.histories, key, out), t.Send(e.kinds, key, []byte(said)))
}

// consumer is a consumer program with the state of the application, in its group.
type consumer struct {
	host
	e    *env
	stop context.CancelFunc
	res  chan error
}

func (e *env) embeddedConfig(state string) embedded.Config {
	cfg := embedded.Config{App: e.app, StateDir: state, Outputs: []string{e.histories, e.kinds}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Stores: []processor.StoreDef{plain, stamped, windows, stampedWindows, duplicates, sessions, versions}}
	if e.guarantee == streams.ExactlyOnce {
		cfg.Guarantee = embedded.ExactlyOnce
	}
	return cfg
}

func (e *env) consumer(state string) *consumer {
	e.t.Helper()
	h, turn, err := doors[e.client.Name()](e, e.embeddedConfig(state), e.keepPair)
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &consumer{h, e, stop, make(chan error, 1)}
	go func() { // ended by stop
		var err error
		for ctx.Err() == nil && err == nil && h.Err() == nil {
			err = turn(ctx)
		}
		if herr := h.Err(); herr != nil {
			err = herr
		}
		c.res <- errors.Join(err, h.Close(e.ctx()))
		close(c.res)
	}()
	e.t.Cleanup(func() {
		stop()
		if err := <-c.res; err != nil { // closed: it was looked at
			e.t.Logf("the consumer program: %v", err)
		}
	})
	return c
}

// close waits until all is processed, and ends it.
func (c *consumer) close() {
	c.e.t.Helper()
	c.e.awaitCommitted()
	c.stop()
	if err := <-c.res; err != nil {
		c.e.t.Fatal(err)
	}
}

// fails waits for the end with an error that contains all words.
func (c *consumer) fails(words ...string) {
	c.e.t.Helper()
	select {
	case err := <-c.res:
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				c.e.t.Errorf("error %v does not contain %q", err, w)
			}
		}
	case <-c.e.ctx().Done():
		c.e.t.Fatal("it did not fail")
	}
}

// awaitCommitted waits until the group has read the input to its end.
func (e *env) awaitCommitted() {
	e.t.Helper()
	ends, err := e.adm.ListEndOffsets(e.ctx(), e.pairs)
	if err != nil {
		e.t.Fatal(err)
	}
	e.until("the group has read its input", func() (missing string) {
		offsets, err := e.adm.FetchOffsets(e.ctx(), e.app)
		if err != nil {
			return err.Error()
		}
		ends.Each(func(end kadm.ListedOffset) {
			if o, ok := offsets.Lookup(end.Topic, end.Partition); !ok || o.At != end.Offset {
				missing += fmt.Sprintf("%s/%d: %d of %d\n", end.Topic, end.Partition, o.At, end.Offset)
			}
		})
		return missing
	})
}

// onlyPairs makes the application one with one kind of task.
func (e *env) onlyPairs() { e.half, e.shift = true, 0 }

// Kafka Streams keeps the state, a consumer program takes over with nothing but the changelogs, and Kafka
// Streams takes it back with the state directory that it left.
func TestKafkaStreamsThenEmbedded(t *testing.T) {
	t.Parallel()
	each(t, streams.ExactlyOnce, func(t *testing.T, e *env) {
		e.onlyPairs()
		random := testseed.New(t)
		java := e.dir("java")
		e.produce(newInput(random, 0))
		ks := e.kafkaStreams(java)
		e.awaitOutputs()
		ks.close("leave")
		e.checkChangelogs()
		e.checkMetadata(true)

		e.awaitEmptyGroup()
		e.produce(newInput(random, 1))
		c := e.consumer(e.dir("embedded"))
		e.awaitOutputs()
		for _, store := range allStores[1:] {
			if c.restored()[store] == 0 {
				t.Errorf("nothing was restored into %s", store)
			}
		}
		c.close()
		e.checkChangelogs()
		e.checkMetadata(false)

		e.awaitEmptyGroup()
		e.produce(newInput(random, 2))
		ks = e.kafkaStreams(java)
		e.awaitOutputs()
		ks.close("leave")
		e.checkChangelogs()
		e.checkOutputs()
	})
}

// A consumer program keeps the state, Kafka Streams takes over with nothing but the changelogs, and a consumer
// program takes it back.
func TestEmbeddedThenKafkaStreams(t *testing.T) {
	t.Parallel()
	each(t, streams.AtLeastOnce, func(t *testing.T, e *env) {
		e.onlyPairs()
		random := testseed.New(t)
		state := e.dir("embedded")
		e.produce(newInput(random, 0))
		e.consumer(state).close()
		e.checkChangelogs()
		times := maps.Clone(e.times)

		e.awaitEmptyGroup()
		e.produce(newInput(random, 1))
		ks := e.kafkaStreams(e.dir("java"), "isolation.level=read_committed")
		e.awaitOutputs()
		for tp, known := range ks.firstTimes() {
			if known != times[tp] {
				t.Errorf("Kafka Streams begins %v with the time %d, want %d", tp, known, times[tp])
			}
		}
		ks.close("leave")
		for _, store := range allStores[1:] {
			if ks.restored()[store] == 0 {
				t.Errorf("Kafka Streams restored nothing into %s", store)
			}
		}
		e.checkChangelogs()

		e.produce(newInput(random, 2))
		// As with an App: what it knew is older than what Kafka Streams committed.
		e.consumer(state).fails("not all committed by Tidemark", "delete the task's directory")
		e.awaitEmptyGroup()
		e.consumer(e.dir("new")).close()
		e.checkChangelogs()
		e.checkOutputs()
	})
}

// A consumer program takes over one half of an application, in the state directory that Kafka Streams left, where the task
// of its number is the other half's. It restores from the changelogs all the same, and what it finds there stays, for the
// way back.
func TestEmbeddedOnKafkaStreamsDirectory(t *testing.T) {
	t.Parallel()
	e := newEnv(t, franzclient.Client{}, streams.ExactlyOnce)
	e.shift = 0
	random := testseed.New(t)
	dir := e.dir("shared")
	e.produce(newInput(random, 0))
	ks := e.kafkaStreams(dir)
	e.awaitOutputs()
	ks.close("leave")
	e.awaitEmptyGroup()
	e.checkChangelogs()
	left := filesIn(t, dir)

	e.half = true
	e.produce(newInput(random, 1))
	c := e.consumer(dir)
	e.awaitOutputs()
	for _, store := range allStores[1:] {
		if c.restored()[store] == 0 {
			t.Errorf("nothing was restored into %s", store)
		}
	}
	c.close()
	e.checkChangelogs()
	e.checkOutputs()
	now := filesIn(t, dir)
	for path := range left {
		if !now[path] && !now[path+".migrated"] {
			t.Errorf("%s is gone", path)
		}
	}

	// Offsets that are lost are no new group.
	e.awaitEmptyGroup()
	if _, err := e.adm.DeleteGroups(e.ctx(), e.app); err != nil {
		t.Fatal(err)
	}
	e.consumer(e.dir("other")).fails("the group has no offsets, but there is state")
}

func filesIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[path] = true
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in %s: %v", len(files), dir, err)
	}
	return files
}

// restored gives how many records were restored into each store.
func (c *consumer) restored() map[string]int {
	out := map[string]int{}
	for _, task := range c.Status().Tasks {
		for _, s := range task.Restore {
			out[s.Store] += int(s.Records)
		}
	}
	return out
}
