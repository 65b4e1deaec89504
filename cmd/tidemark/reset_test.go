package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// Whose an internal topic is, is told by the longest application id that is known.
func TestResetPlan(t *testing.T) {
	topics := kadm.TopicDetails{}
	for _, name := range []string{"orders-counts-changelog", "orders-by-key-repartition", "orders-placement", "orders-lines", "orders",
		"orders-eu-counts-changelog", "orders-eu-placement", "orders-us-counts-changelog", "ordersx-counts-changelog", "changelog"} {
		topics[name] = kadm.TopicDetail{Topic: name, Partitions: kadm.PartitionDetails{0: {}}}
	}
	groups := kadm.ListedGroups{"orders": {Group: "orders"}, "orders-us": {Group: "orders-us"}}
	names := func(list []internalTopic) (out []string) {
		for _, x := range list {
			out = append(out, x.Name)
		}
		return out
	}
	p := newResetPlan("orders", topics, groups)
	if got, want := names(p.Topics), []string{"orders-by-key-repartition", "orders-counts-changelog", "orders-placement"}; !slices.Equal(got, want) {
		t.Errorf("topics %v, want %v", got, want)
	}
	if got, want := names(p.Others), []string{"orders-eu-counts-changelog", "orders-eu-placement", "orders-us-counts-changelog"}; !slices.Equal(got, want) {
		t.Errorf("topics of others %v, want %v", got, want)
	}
	if p := newResetPlan("orders-eu", topics, groups); len(p.Topics) != 2 || len(p.Others) != 0 {
		t.Errorf("of orders-eu: %+v", p)
	}
}

// counted is a word count that a test runs and resets.
type counted struct {
	t             *testing.T
	addr, app, in string
	out, state    string
	adm           *kadm.Client
}

func (c *counted) run() *streams.App {
	c.t.Helper()
	app := c.start()
	if err := app.CaughtUp(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return app
}

// fails runs it and gives the error with which it ends.
func (c *counted) fails() error {
	c.t.Helper()
	err := c.start().CaughtUp(c.t.Context())
	if !errors.Is(err, streams.ErrNotRunning) {
		c.t.Fatalf("it runs: %v", err)
	}
	return err
}

func (c *counted) start() *streams.App {
	c.t.Helper()
	b := streams.NewBuilder()
	words := streams.FlatMapValues(streams.Stream(b, c.in, streams.With(serde.String, serde.String)), strings.Fields, serde.String)
	streams.GroupBy(words, func(_, w string) string { return w }, serde.String).Count(streams.Materialized{Name: "counts"}).ToStream().To(c.out)
	topology, err := b.Build()
	if err != nil {
		c.t.Fatal(err)
	}
	app, err := streams.New(topology, streams.Config{AppID: c.app, Brokers: []string{c.addr}, StateDir: c.state, SessionTimeout: time.Second, Logger: quiet()})
	if err != nil {
		c.t.Fatal(err)
	}
	go func() { _ = app.Run(c.t.Context()) }() // ended by Close; CaughtUp tells its error
	c.t.Cleanup(func() { _ = app.Close(c.t.Context()) })
	return app
}

func (c *counted) reset(args ...string) (code int, stdout, stderr string) {
	var out, bad bytes.Buffer
	code = run(c.t.Context(), slices.Concat([]string{"reset", "--app", c.app, "--brokers", c.addr, "--state-dir", c.state}, args), &out, &bad)
	return code, out.String(), bad.String()
}

func newCounted(t *testing.T, b testbroker.Broker) *counted {
	t.Helper()
	cl, err := (&connection{brokers: b.Addrs[0]}).open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	c := &counted{t: t, addr: b.Addrs[0], app: b.Name(t, "app"), in: b.CreateTopic(t, "in", 2, nil), out: b.CreateTopic(t, "out", 2, nil), state: t.TempDir(), adm: kadm.NewClient(cl)}
	p, err := franz.Client{}.NewProducer(kafka.Settings{Brokers: b.Addrs, Logger: quiet()}, kafka.ProducerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	err = p.Send(t.Context(), []kafka.Record{{Topic: c.in, Timestamp: 1, Value: []byte("a b a")}, {Topic: c.in, Partition: 1, Timestamp: 2, Value: []byte("b")}}, func(d kafka.Delivery) { sent <- d.Err })
	if err := errors.Join(err, <-sent, p.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return c
}

// A reset refuses while somebody lives, says what it would do, does it, and finds nothing the
// next time; the application then counts everything again, once.
func TestReset(t *testing.T) {
	testbroker.Each(t, func(t *testing.T, b testbroker.Broker) {
		c := newCounted(t, b)
		app := c.run()
		if code, _, stderr := c.reset(); code != exitFailed || !strings.Contains(stderr, "already in use") {
			t.Fatalf("beside a running process: %d, %s", code, stderr)
		}
		elsewhere := &counted{t: t, addr: c.addr, app: c.app, state: t.TempDir()}
		if code, _, stderr := elsewhere.reset(); code != exitFailed || !strings.Contains(stderr, "has 1 member(s)") || !strings.Contains(stderr, "stop the application") {
			t.Fatalf("beside a member: %d, %s", code, stderr)
		}
		if err := app.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.awaitNoMembers()

		code, stdout, stderr := c.reset("--dry-run", "--json")
		var dry resetPlan
		if err := json.Unmarshal([]byte(stdout), &dry); code != exitOK || err != nil {
			t.Fatalf("dry run: %d, %v\n%s%s", code, err, stdout, stderr)
		}
		if len(dry.Topics) != 3 || len(dry.Directories) != 4 || !dry.Group || dry.Offsets != 4 || !dry.DryRun {
			t.Errorf("dry run: %+v", dry)
		}
		legacy := filepath.Join(c.state, c.app, "0_7", ".checkpoint")
		if err := errors.Join(os.MkdirAll(filepath.Dir(legacy), 0o700), os.WriteFile(legacy, []byte("0\n0\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"--dry-run"}, {}} { // the second finds the group and the topics still there
			if code, stdout, stderr = c.reset(args...); code != exitFailed || !strings.Contains(stderr, "nothing is removed") || !strings.Contains(stderr, "legacy state") {
				t.Fatalf("reset %q beside legacy state: %d\n%s%s", args, code, stdout, stderr)
			}
		}
		if err := os.RemoveAll(filepath.Dir(legacy)); err != nil {
			t.Fatal(err)
		}
		if code, stdout, stderr = c.reset(); code != exitOK || strings.Count(stdout, "deleted") != 8 {
			t.Fatalf("reset: %d\n%s%s", code, stdout, stderr)
		}
		if left, err := filepath.Glob(filepath.Join(c.state, c.app, "*_*")); err != nil || len(left) > 0 {
			t.Errorf("left over: %v, %v", left, err)
		}
		if _, err := os.Stat(filepath.Join(c.state, c.app, "process-id")); err != nil {
			t.Error(err)
		}
		if code, stdout, _ = c.reset(); code != exitOK || !strings.Contains(stdout, "nothing is there") {
			t.Errorf("a second time: %d\n%s", code, stdout)
		}
		app = c.run()
		if err := app.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := c.outputs(); n != 8 { // 4 words, counted in two lives
			t.Errorf("%d outputs", n)
		}
	})
}

// awaitNoMembers waits for the end of the session of a process that was closed.
func (c *counted) awaitNoMembers() {
	c.t.Helper()
	c.until("the group has no members", func() bool {
		g, err := c.adm.DescribeGroups(c.t.Context(), c.app)
		return err == nil && len(g[c.app].Members) == 0
	})
}

func (c *counted) until(what string, holds func() bool) {
	c.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			c.t.Fatalf("it does not become true that %s", what)
		case <-tick.C:
		}
	}
}

// last gives the last count of each word in the output topic, sorted.
func (c *counted) last(value serde.Serde[int64]) (words []string) {
	c.t.Helper()
	end, err := c.adm.ListEndOffsets(c.t.Context(), c.out)
	if err != nil {
		c.t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.addr), kgo.ConsumeTopics(c.out), kgo.KeepControlRecords())
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	left := map[int32]int64{}
	end.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	counts := map[string]int64{}
	for len(left) > 0 {
		fetches := cl.PollFetches(c.t.Context())
		if err := fetches.Err(); err != nil {
			c.t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			n, err := value.Decode(r.Value)
			if err != nil {
				c.t.Error(err)
			}
			counts[string(r.Key)] = n
		})
	}
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprint(w, " ", counts[w]))
	}
	return words
}

// outputs counts the records in the output topic.
func (c *counted) outputs() (n int64) {
	c.t.Helper()
	count := func(offsets kadm.ListedOffsets, err error) (sum int64) {
		if err != nil {
			c.t.Fatal(err)
		}
		offsets.Each(func(o kadm.ListedOffset) { sum += o.Offset })
		return sum
	}
	return count(c.adm.ListEndOffsets(c.t.Context(), c.out)) - count(c.adm.ListStartOffsets(c.t.Context(), c.out))
}

// What is wrong with the arguments is told.
func TestResetArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"--app":              {"--brokers", "127.0.0.1:1"},
		"--brokers":          {"--app", "a"},
		"SCRAM-SHA-512":      {"--app", "a", "--brokers", "127.0.0.1:1", "--sasl", "NONE"},
		"usage":              {"--app", "a", "--brokers", "127.0.0.1:1", "what"},
		"list groups":        {"--app", "a", "--brokers", "127.0.0.1:1", "--timeout", "100ms"},
		"\"a/b\" contains":   {"--app", "a/b", "--brokers", "127.0.0.1:1"},
		"flag provided but ": {"--no-such-flag"},
	} {
		var out, bad bytes.Buffer
		if code := run(t.Context(), append([]string{"reset"}, args...), &out, &bad); code != exitFailed || !strings.Contains(bad.String(), want) {
			t.Errorf("%v: %d, %q; want %q", args, code, bad.String(), want)
		}
	}
}
