//go:build cgo

package confluent

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testlog"
	"github.com/tidemark-streams/tidemark/kafka"
)

// everyPart makes each part of a client with a broker that nobody is, uses it a little and
// closes it.
func everyPart(t *testing.T, s kafka.Settings) {
	c := Client{Config: map[string]any{"fetch.min.bytes": 1}} // producers do not know it: CONFWARN
	a, err := c.NewAdmin(s)
	must(t, err)
	_, err = a.Topics(within(t, 300*time.Millisecond), "x")
	if !kafka.IsClass(err, kafka.ClassUnreachable) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the error does not give the reason: %v", err)
	}
	p, err := c.NewProducer(s, kafka.ProducerConfig{})
	must(t, err)
	x, err := c.NewTransactional(s, kafka.TransactionalConfig{ID: "x"})
	must(t, err)
	err = x.Init(within(t, 300*time.Millisecond))
	if !kafka.IsClass(err, kafka.ClassUnreachable) {
		t.Error(err)
	}
	k, err := c.NewConsumer(s, kafka.ConsumerConfig{})
	must(t, err)
	var poll kafka.Poll
	must(t, k.Poll(within(t, 300*time.Millisecond), &poll))
	m, err := c.NewMembership(s, kafka.MembershipConfig{Group: "g", Topic: "t"})
	must(t, err)
	for _, part := range []kafka.Closer{a, p, x, k, m} {
		closed(t, part)
	}
}

func TestLogLinesGoToTheLoggerOnly(t *testing.T) {
	t.Parallel()
	if os.Getenv("TIDEMARK_TEST_CHILD") == "log" {
		var log testlog.Log
		everyPart(t, kafka.Settings{Brokers: []string{"127.0.0.1:1"}, Logger: log.Logger()})
		if text := log.String(); !strings.Contains(text, "refused") || !strings.Contains(text, "tag=FAIL") || !strings.Contains(text, "level=WARN") {
			t.Errorf("the logger got %q", text)
		} else if strings.Contains(text, "CONFWARN") {
			t.Errorf("a setting that concerns another part is a warning: %q", text)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLogLinesGoToTheLoggerOnly$")
	cmd.Env = append(os.Environ(), "TIDEMARK_TEST_CHILD=log")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, &out, &errs)
	}
	if errs.Len() > 0 {
		t.Errorf("librdkafka wrote to standard error: %s", &errs)
	}
}

func TestDefaultLoggerDropsInformation(t *testing.T) {
	var b bytes.Buffer
	l := slog.New(warnings{slog.NewTextHandler(&b, nil)}).With("k", 1).WithGroup("g")
	l.Info("information")
	l.Warn("warning")
	if strings.Contains(b.String(), "information") || !strings.Contains(b.String(), "warning") {
		t.Errorf("got %q", b.String())
	}
}
