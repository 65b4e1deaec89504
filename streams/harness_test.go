package streams_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// clients are those that this build has; confluent_test.go adds its own.
var clients = []kafka.Client{franz.Client{}}

// everywhere makes a test parallel and runs it with every client, on every broker or on one of them (testbroker.Takes).
func everywhere(t *testing.T, test func(t *testing.T, e *env)) {
	t.Parallel() // most of the time is waiting
	for i, c := range clients {
		for j, b := range testbroker.Kinds {
			if !testbroker.Takes(t, i, j) {
				continue
			}
			t.Run(c.Name()+"/"+b.Name, func(t *testing.T) {
				t.Parallel()
				test(t, newEnv(t, b.Get(t), c))
			})
		}
	}
}

// guaranteesFor are those that a test takes a client through: with -short one, and the other one with the next client.
func guaranteesFor(t *testing.T, client kafka.Client) []streams.Guarantee {
	if !testing.Short() {
		return guarantees
	}
	n := slices.IndexFunc(clients, func(c kafka.Client) bool { return c.Name() == client.Name() })
	return guarantees[(testbroker.Turn(t)/2+n)%2:][:1] // not the bit that chooses the brokers
}

// env is a broker, a client and the names of one test on it.
type env struct {
	t      *testing.T
	b      testbroker.Broker
	client kafka.Client
	admin  kafka.Admin
	app    string
	in     string
	out    string
	dir    string
	// padding makes the keys of produceKeys longer.
	padding string
}

func newEnv(t *testing.T, b testbroker.Broker, c kafka.Client) *env {
	e := &env{t: t, b: b, client: c, app: b.Name(t, "app"), in: b.Name(t, "in"), out: b.Name(t, "out"), dir: t.TempDir()}
	admin, err := c.NewAdmin(kafka.Settings{Brokers: b.Addrs, Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
	e.admin = admin
	t.Cleanup(func() { _ = admin.Close(t.Context()) })
	e.create(e.in, 2)
	e.create(e.out, 2)
	return e
}

var discard = slog.New(slog.NewTextHandler(io.Discard, nil))

func (e *env) create(topic string, partitions int32) {
	e.t.Helper()
	if err := e.admin.CreateTopics(e.ctx(), kafka.NewTopic{Name: topic, Partitions: partitions, Replication: 1}); err != nil {
		e.t.Fatal(err)
	}
}

// ctx bounds every wait of a test.
func (e *env) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	e.t.Cleanup(cancel)
	return ctx
}

func (e *env) config() streams.Config {
	return streams.Config{AppID: e.app, Brokers: e.b.Addrs, StateDir: e.dir, Client: e.client, CommitInterval: 50 * time.Millisecond, SessionTimeout: 6 * time.Second, Logger: discard}
}

// produce writes values to the input topic, partition by partition in turn.
func (e *env) produce(values ...string) {
	e.t.Helper()
	var records []kafka.Record
	for i, v := range values {
		records = append(records, kafka.Record{Topic: e.in, Partition: int32(i % 2), Timestamp: int64(1000 + i), Value: []byte(v)})
	}
	e.produceRecords(records...)
}

func (e *env) produceRecords(records ...kafka.Record) {
	e.t.Helper()
	p, err := e.client.NewProducer(kafka.Settings{Brokers: e.b.Addrs, Logger: discard}, kafka.ProducerConfig{})
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = p.Close(e.ctx()) }()
	sent := make(chan error, 1)
	if err := p.Send(e.ctx(), records, func(d kafka.Delivery) { sent <- d.Err }); err != nil {
		e.t.Fatal(err)
	}
	if err := <-sent; err != nil {
		e.t.Fatal(err)
	}
}

// read gives all committed records of a topic, in order within a partition.
func (e *env) read(topic string) []kafka.Record {
	e.t.Helper()
	c, err := e.client.NewConsumer(kafka.Settings{Brokers: e.b.Addrs, Logger: discard}, kafka.ConsumerConfig{})
	if err != nil {
		e.t.Fatal(err)
	}
	ctx := e.ctx()
	defer func() { _ = c.Close(ctx) }()
	topics, err := e.admin.Topics(ctx, topic)
	if err != nil {
		e.t.Fatal(err)
	}
	var tps []kafka.TopicPartition
	for p := range topics[topic].Partitions {
		tps = append(tps, kafka.TopicPartition{Topic: topic, Partition: p})
	}
	from, err := e.admin.ListOffsets(ctx, kafka.Earliest, tps...)
	if err != nil {
		e.t.Fatal(err)
	}
	left, err := e.admin.ListOffsets(ctx, kafka.HighWatermark, tps...)
	if err != nil {
		e.t.Fatal(err)
	}
	for tp, end := range left {
		if end <= from[tp] {
			delete(left, tp)
		}
	}
	if err := c.Assign(ctx, from); err != nil {
		e.t.Fatal(err)
	}
	var out []kafka.Record
	var poll kafka.Poll
	for len(left) > 0 {
		if err := c.Poll(ctx, &poll); err != nil || ctx.Err() != nil {
			e.t.Fatalf("read %s: %v, %v; left %v", topic, err, ctx.Err(), left)
		}
		for _, f := range poll.Partitions {
			if f.Err != nil {
				e.t.Fatal(f.Err)
			}
			for _, r := range f.Records {
				r.Headers = slices.Clone(r.Headers) // they are the poll's own
				out = append(out, r)
			}
			if f.Next >= left[f.TopicPartition] {
				delete(left, f.TopicPartition)
			}
		}
	}
	return out
}

// running is an app that runs in the background of a test.
type running struct {
	*streams.App
	env *env
	res chan error
}

func (e *env) start(topology *streams.Topology, cfg streams.Config) *running {
	e.t.Helper()
	app, err := streams.New(topology, cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	r := &running{app, e, make(chan error, 1)}
	go func() { r.res <- app.Run(context.Background()) }()
	e.t.Cleanup(func() { _ = app.Close(e.ctx()) })
	return r
}

// catchUp waits until everything is processed and committed.
func (r *running) catchUp() {
	r.env.t.Helper()
	if err := r.CaughtUp(r.env.ctx()); err != nil {
		r.env.t.Fatal(err)
	}
}

func (r *running) close() {
	r.env.t.Helper()
	if err := r.Close(r.env.ctx()); err != nil {
		r.env.t.Fatal(err)
	}
}

// fails waits for the app to end with an error that contains all words.
func (r *running) fails(words ...string) {
	r.env.t.Helper()
	contains(r.env.t, r.failure(), words...)
}

// failure waits for the app to fail, and gives the error.
func (r *running) failure() error {
	r.env.t.Helper()
	select {
	case err := <-r.res:
		if r.State() != streams.Failed {
			r.env.t.Errorf("state %v", r.State())
		}
		return err
	case <-r.env.ctx().Done():
		r.env.t.Fatalf("the app did not fail; state %v", r.State())
		return nil
	}
}

func contains(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not contain %q", err, w)
		}
	}
}

// wordCount is the topology of most tests.
func (e *env) wordCount() *streams.Topology {
	e.t.Helper()
	b := streams.NewBuilder()
	lines := streams.Stream(b, e.in, streams.With(serde.String, serde.String))
	words := streams.FlatMapValues(lines, strings.Fields, serde.String)
	counts := streams.GroupBy(words, func(_, w string) string { return w }, serde.String).
		Count(streams.Materialized{Name: "counts"})
	counts.ToStream().To(e.out)
	topology, err := b.Build()
	if err != nil {
		e.t.Fatal(err)
	}
	return topology
}

// counts reads the output topic: the last count of each word, and every count seen of it.
func (e *env) counts(topic string) (last map[string]int64, all map[string][]int64) {
	e.t.Helper()
	last, all = map[string]int64{}, map[string][]int64{}
	for _, r := range e.read(topic) {
		n, err := serde.Int64.Decode(r.Value)
		if err != nil {
			e.t.Fatal(err)
		}
		last[string(r.Key)] = n
		all[string(r.Key)] = append(all[string(r.Key)], n)
	}
	return last, all
}

// lines makes n lines of three words each out of a few, and counts them.
func lines(n int) (lines []string, want map[string]int64) {
	want = map[string]int64{}
	for i := range n {
		var words []string
		for j := range 3 {
			w := fmt.Sprintf("w%d", (i*7+j*13)%37)
			words = append(words, w)
			want[w]++
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines, want
}

// states collects a listener's calls.
type states struct {
	mu   sync.Mutex
	seen []string
}

func (s *states) listen(from, to streams.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, from.String()+">"+to.String())
}

func ms(n int64) time.Time { return time.UnixMilli(n) }
