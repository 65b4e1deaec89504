// Command restart kills an application under load (kill -9) and measures how soon it goes on: the
// workload of command count, exactly-once.
//
//	restart -brokers 127.0.0.1:9092 -in 100k=in-100k -in 1m=in-1m -in 5m=in-5m
//
// Each input has to hold a few seconds of work. The application is a child of this process; it
// is killed when it has processed a part of the input (-kill-at), and started again on the same state.
//
// Two waits of a start are the broker's own: for a place in the group, and for the end of the
// transaction that the dead process left open. They are told apart from the rest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/scratch"
)

type options struct {
	child                     bool
	brokers, client, stateDir string
	inputs                    inputs
	interval                  time.Duration
	rounds                    int
	killAt                    int64

	in, out, appID string // of a child
}

// inputs are the names and topics of -in.
type inputs [][2]string

func (i *inputs) String() string { return fmt.Sprint(*i) }

// Set takes one NAME=TOPIC.
func (i *inputs) Set(s string) error {
	name, topic, ok := strings.Cut(s, "=")
	if !ok || name == "" || topic == "" {
		return errors.New("write NAME=TOPIC")
	}
	*i = append(*i, [2]string{name, topic})
	return nil
}

func main() {
	var o options
	flag.BoolVar(&o.child, "child", false, "be the application (for this program's own use)")
	flag.StringVar(&o.in, "child-in", "", "topic to count, of a child")
	flag.StringVar(&o.out, "child-out", "", "topic for the counts, of a child")
	flag.StringVar(&o.appID, "child-app-id", "", "application id, of a child")
	flag.StringVar(&o.brokers, "brokers", "", "host:port of the brokers, split by commas")
	flag.StringVar(&o.client, "client", "franz", "franz or confluent")
	flag.Var(&o.inputs, "in", "NAME=TOPIC: an input, loaded before; may be repeated")
	flag.StringVar(&o.stateDir, "state-dir", os.TempDir(), "folder for the state")
	flag.DurationVar(&o.interval, "commit-interval", 100*time.Millisecond, "time between two commits")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each application is killed")
	flag.Int64Var(&o.killAt, "kill-at", 60, "percent of the input after which it is killed first; the later kills share the rest")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	work := func() error { return run(ctx, o, os.Stdout) }
	if o.child {
		work = func() error { return child(ctx, o, os.Stdout) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "restart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	if o.brokers == "" || len(o.inputs) == 0 || o.rounds < 1 || o.killAt < 1 || o.killAt > 99 {
		return errors.New("-brokers and at least one -in are needed, -rounds must be at least 1, -kill-at between 1 and 99")
	}
	topics, err := scratch.Dial(o.brokers)
	if err != nil {
		return err
	}
	defer topics.Close()
	fmt.Fprintln(out, header)
	for _, in := range o.inputs {
		if err := input(ctx, o, topics, in[0], in[1], out); err != nil {
			return fmt.Errorf("%s: %w", in[1], err)
		}
	}
	return nil
}

// input runs one application on one input, and kills it again and again.
func input(ctx context.Context, o options, topics *scratch.Topics, name, in string, out io.Writer) (err error) {
	id := fmt.Sprintf("restart-%d-%s", os.Getpid(), name)
	defer func() { err = errors.Join(err, topics.DeleteAll(id)) }()
	if err := topics.Like(ctx, in, id+"-out"); err != nil {
		return err
	}
	total, err := topics.Records(ctx, in)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.stateDir, "restart-")
	if err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args := []string{"-child", "-brokers", o.brokers, "-client", o.client, "-commit-interval", o.interval.String(),
		"-state-dir", dir, "-child-in", in, "-child-out", id + "-out", "-child-app-id", id}
	first := total * o.killAt / 100
	before, err := life(ctx, args, first)
	if err != nil {
		return err
	}
	for range o.rounds {
		after, err := life(ctx, args, (total-first)*9/10/int64(o.rounds))
		if err != nil {
			return err
		}
		fmt.Fprintln(out, row(name, before, after))
		before = after
	}
	return nil
}
