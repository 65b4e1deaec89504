package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

// TestTable measures a small topic, which has to be read more than once.
func TestTable(t *testing.T) {
	b := testbroker.Kfake(t)
	in := b.CreateTopic(t, "in", 2, nil)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs...), kgo.DefaultProduceTopic(in))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for i := range 120_000 {
		cl.Produce(t.Context(), &kgo.Record{Key: fmt.Appendf(nil, "%d", i%100), Value: []byte("v")}, nil)
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	o := options{brokers: strings.Join(b.Addrs, ","), client: "franz", guarantees: "at-least-once,exactly-once", stateDir: t.TempDir(),
		inputs: inputs{{"few", in}}, interval: 2 * time.Millisecond, commits: 5}
	if err := run(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	for _, guarantee := range []string{"at-least-once", "exactly-once", "no commits"} {
		if !regexp.MustCompile(`\| few \| ` + guarantee + ` \| franz \| [1-9]\d* \| \d+ \| \d+\.\d\d ms \| \*\*\d+\.\d\d ms\*\* \| \d+\.\d\d ms \|`).MatchString(out.String()) {
			t.Errorf("no line of %s in\n%s", guarantee, &out)
		}
	}
}

func TestFlags(t *testing.T) {
	good := options{brokers: "b", client: "franz", guarantees: "exactly-once", inputs: inputs{{"a", "b"}}, commits: 1}
	for name, spoil := range map[string]func(*options){
		"brokers":   func(o *options) { o.brokers = "" },
		"-in":       func(o *options) { o.inputs = nil },
		"-commits":  func(o *options) { o.commits = 0 },
		"-client":   func(o *options) { o.client = "sarama" },
		"guarantee": func(o *options) { o.guarantees = "exactly-once,never" },
	} {
		o := good
		spoil(&o)
		if err := run(t.Context(), o, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
