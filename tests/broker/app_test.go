package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testlog"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// clients are those that this build has; cgo_test.go adds its own.
var clients = []kafka.Client{franz.Client{}}

var guarantees = []streams.Guarantee{streams.AtLeastOnce, streams.ExactlyOnce}

const partitions = 2

// app is a word count on a broker.
type app struct {
	t         *testing.T
	addr      string
	client    kafka.Client
	guarantee streams.Guarantee

	id, in, out string
	state       string
	log         testlog.Log

	*streams.App // nil before run
	res          chan error
	began        time.Time
}

func newApp(t *testing.T, addr string, c kafka.Client, g streams.Guarantee) *app {
	t.Helper()
	b := testbroker.Broker{Addrs: []string{addr}}
	return &app{t: t, addr: addr, client: c, guarantee: g, id: b.Name(t, "app"), in: b.Name(t, "in"), out: b.Name(t, "out"), state: t.TempDir()}
}

// admin is a client for what the test itself does on the broker.
func admin(t *testing.T, addr string) (*kgo.Client, *kadm.Client) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl, kadm.NewClient(cl)
}

// createTopics makes the topics of the user, and waits until the broker shows them.
func (a *app) createTopics() {
	a.t.Helper()
	adm, err := a.client.NewAdmin(kafka.Settings{Brokers: []string{a.addr}})
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = adm.Close(bounded(a.t)) }()
	for _, topic := range []string{a.in, a.out} {
		if err := adm.CreateTopics(bounded(a.t), kafka.NewTopic{Name: topic, Partitions: partitions, Replication: 1}); err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a *app) config() streams.Config {
	return streams.Config{AppID: a.id, Brokers: []string{a.addr}, StateDir: a.state, Client: a.client, Guarantee: a.guarantee,
		SessionTimeout: 6 * time.Second, Logger: a.log.Logger()}
}

func (a *app) run(cfg streams.Config) {
	a.t.Helper()
	b := streams.NewBuilder()
	words := streams.FlatMapValues(streams.Stream(b, a.in, streams.With(serde.String, serde.String)), strings.Fields, serde.String)
	streams.GroupBy(words, func(_, w string) string { return w }, serde.String).
		Count(streams.Materialized{Name: "counts"}).ToStream().To(a.out)
	topology, err := b.Build()
	if err != nil {
		a.t.Fatal(err)
	}
	if a.App, err = streams.New(topology, cfg); err != nil {
		a.t.Fatal(err)
	}
	a.res, a.began = make(chan error, 1), time.Now()
	go func() { a.res <- a.Run(context.Background()) }() // ended by the Close below
	a.t.Cleanup(func() {
		_ = a.Close(bounded(a.t))
		if a.t.Failed() {
			a.t.Logf("log of %s:\n%s", a.id, a.log.String())
		}
	})
}

// fails waits for the end with an error of a class that contains all words.
func (a *app) fails(class kafka.ErrorClass, words ...string) error {
	a.t.Helper()
	select {
	case err := <-a.res:
		if err == nil {
			a.t.Fatal("closed without an error")
		}
		if !kafka.IsClass(err, class) {
			a.t.Errorf("class %v, want %v: %v", kafka.ClassOf(err), class, err)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				a.t.Errorf("error %q does not contain %q", err, w)
			}
		}
		return err
	case <-bounded(a.t).Done():
		a.t.Fatalf("it did not fail; state %v", a.State())
		return nil
	}
}

func (a *app) catchUp() {
	a.t.Helper()
	if err := a.CaughtUp(bounded(a.t)); err != nil {
		a.t.Fatal(err)
	}
}

// lines makes n records of three words each, and counts the words.
func (a *app) lines(n int, want map[string]int64) []*kgo.Record {
	var out []*kgo.Record
	for i := range n {
		var words []string
		for j := range 3 {
			w := fmt.Sprintf("w%d", (i*7+j*13)%37)
			words = append(words, w)
			want[w]++
		}
		out = append(out, &kgo.Record{Topic: a.in, Partition: int32(i % partitions), Value: []byte(strings.Join(words, " "))})
	}
	return out
}

// checkCounts compares the committed outputs with the words put in: under exactly-once every
// number of a word came once and in order; under at-least-once none is missing, and the last
// is right.
func (a *app) checkCounts(want map[string]int64) {
	a.t.Helper()
	got := map[string][]int64{}
	for _, r := range a.outputs() {
		got[string(r.Key)] = append(got[string(r.Key)], int64(binary.BigEndian.Uint64(r.Value)))
	}
	for w, n := range want {
		seen := map[int64]int{}
		for i, x := range got[w] {
			seen[x]++
			if a.guarantee == streams.ExactlyOnce && x != int64(i+1) {
				a.t.Errorf("%s: count %d comes as number %d", w, x, i+1)
				break
			}
		}
		if last := got[w]; len(last) == 0 || last[len(last)-1] != n || int64(len(seen)) != n {
			a.t.Errorf("%s: %d different counts, the last of %v, want %d", w, len(seen), last[max(0, len(last)-3):], n)
		}
	}
	if len(got) != len(want) {
		a.t.Errorf("%d words, want %d", len(got), len(want))
	}
}

// outputs gives all committed records of the output topic.
func (a *app) outputs() []*kgo.Record {
	a.t.Helper()
	return a.records(a.out)
}

// written gives the words that are in the input topic: what a producer was told that it wrote may
// be there twice when the broker was killed.
func (a *app) written() map[string]int64 {
	a.t.Helper()
	words := map[string]int64{}
	for _, r := range a.records(a.in) {
		for _, w := range strings.Fields(string(r.Value)) {
			words[w]++
		}
	}
	return words
}

// records gives all committed records of a topic, in order within a partition.
func (a *app) records(topic string) (out []*kgo.Record) {
	a.t.Helper()
	_, adm := admin(a.t, a.addr)
	ctx := bounded(a.t)
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		a.t.Fatal(err)
	}
	from, left := map[int32]kgo.Offset{}, map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			from[o.Partition], left[o.Partition] = kgo.NewOffset().AtStart(), o.Offset
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(a.addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		a.t.Fatal(err)
	}
	defer cl.Close()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			a.t.Fatalf("read %s: %v; left %v", topic, err, left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return out
}

// everyone runs a test with every client in every guarantee, at the same time.
func everyone(t *testing.T, test func(t *testing.T, c kafka.Client, g streams.Guarantee)) {
	for _, c := range clients {
		for _, g := range guarantees {
			t.Run(c.Name()+"/"+g.String(), func(t *testing.T) {
				t.Parallel()
				test(t, c, g)
			})
		}
	}
}

// lost waits for the end with an error of package task.
func (a *app) lost(want error) {
	a.t.Helper()
	select {
	case err := <-a.res:
		if !errors.Is(err, want) {
			a.t.Fatalf("ended with %v, want %v", err, want)
		}
	case <-bounded(a.t).Done():
		a.t.Fatalf("the application does not end:\n%s", a.log.String())
	}
}
