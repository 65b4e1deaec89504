package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/report"
)

// result is one run.
type result struct {
	Program   string       `json:"program"`
	Input     string       `json:"input"`
	Guarantee string       `json:"guarantee"`
	Client    string       `json:"client"`
	Final     report.Final `json:"final"`
	// BrokerPerMillion are the CPU seconds of the broker for a million records.
	BrokerPerMillion float64 `json:"broker_cpu_s_per_million"`
	// Other is the CPU time that everything else took, as a share of the run's time.
	Other float64 `json:"other_cpu_share"`
}

func (r result) disturbed() bool { return r.Other > maxOther }

func (r result) String() string {
	s := fmt.Sprintf("%-5s %-4s %-13s %-9s %8.0f records/s %6.2f CPU s/M, broker %.2f, others %2.0f %%", r.Program, r.Input, r.Guarantee, r.Client,
		r.Final.RecordsPerSec, r.Final.CPUPerMillion, r.BrokerPerMillion, 100*r.Other)
	if r.disturbed() {
		s += " (disturbed)"
	}
	return s
}

// bench runs the programs against one broker.
type bench struct {
	cl  *kgo.Client
	adm *kadm.Client
	n   int // runs so far: each has names of its own
}

func dial(o options) (*bench, error) {
	// With the default age topics are listed from a cache, which does not know the last run's.
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(o.brokers, ",")...), kgo.DisableClientMetrics(), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("open client: %w", err)
	}
	return &bench{cl: cl, adm: kadm.NewClient(cl)}, nil
}

func (b *bench) close() { b.cl.Close() }

// runClean repeats a run that was disturbed; the least disturbed one counts.
func (b *bench) runClean(ctx context.Context, o options, s setting, program string) (best result, err error) {
	for try := range o.retries + 1 {
		if !o.anyLoad {
			if err := awaitQuiet(ctx, o.brokerPID); err != nil {
				return best, err
			}
		}
		r, err := b.run(ctx, o, s, program)
		if err != nil {
			return best, err
		}
		if try == 0 || r.Other < best.Other {
			best = r
		}
		if !best.disturbed() || o.anyLoad {
			break
		}
	}
	return best, nil
}

// run makes one run with topics of its own.
func (b *bench) run(ctx context.Context, o options, s setting, program string) (r result, err error) {
	b.n++
	id := fmt.Sprintf("compare-%d-%d", os.Getpid(), b.n)
	if err := b.createTopics(ctx, s.input.topic, id); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.deleteTopics(id)) }()
	args := []string{"-brokers", o.brokers, "-client", s.client, "-in", s.input.topic, "-out", id + "-out", "-guarantee", s.guarantee,
		"-commit-interval", o.interval.String(), "-until", fmt.Sprint(o.records)}
	if program == "bare" {
		args = append(args, "-changelog", id+"-changes", "-group", id)
	} else {
		dir, err := os.MkdirTemp(o.stateDir, "compare-")
		if err != nil {
			return r, fmt.Errorf("make state directory: %w", err)
		}
		defer os.RemoveAll(dir)
		args = append(args, "-app-id", id, "-state-dir", dir, "-workers", fmt.Sprint(o.workers))
	}
	r = result{Program: program, Input: s.input.name, Guarantee: s.guarantee, Client: s.client}
	before, start := look(o.brokerPID), time.Now()
	if r.Final, err = execute(ctx, filepath.Join(o.programs, program), args); err != nil {
		return r, err
	}
	if r.Final.Processed < o.records {
		return r, fmt.Errorf("it processed only %d of %d records", r.Final.Processed, o.records)
	}
	spent := look(o.brokerPID).since(before)
	r.BrokerPerMillion = spent.broker.Seconds() / float64(r.Final.Processed) * 1e6
	r.Other = max(0, spent.all.Seconds()-spent.broker.Seconds()-r.Final.CPUSeconds) / time.Since(start).Seconds()
	return r, nil
}

// runTimeout bounds one run.
const runTimeout = 10 * time.Minute

// execute runs a program and reads the last line of its standard output.
func execute(ctx context.Context, program string, args []string) (f report.Final, err error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it says where it hangs
	cmd.WaitDelay = 30 * time.Second
	var progress bytes.Buffer
	cmd.Stderr = &progress
	out, err := cmd.Output()
	if err != nil {
		return f, fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, progress.Bytes())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &f); err != nil {
		return f, fmt.Errorf("%s: its last line is no result: %w", program, err)
	}
	return f, nil
}

func (b *bench) createTopics(ctx context.Context, in, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	topics, err := b.adm.ListTopics(ctx, in)
	if err == nil {
		err = topics[in].Err
	}
	if err != nil {
		return fmt.Errorf("look up topic %s: %w", in, err)
	}
	n := int32(len(topics[in].Partitions))
	if _, err := b.adm.CreateTopic(ctx, n, -1, nil, id+"-out"); err != nil {
		return fmt.Errorf("create output topic: %w", err)
	}
	compact := "compact"
	if _, err := b.adm.CreateTopic(ctx, n, -1, map[string]*string{"cleanup.policy": &compact}, id+"-changes"); err != nil {
		return fmt.Errorf("create changelog topic: %w", err)
	}
	return b.awaitTopics(ctx, id+"-out", id+"-changes")
}

// awaitTopics waits until the broker, and not only its controller, knows the topics.
func (b *bench) awaitTopics(ctx context.Context, names ...string) error {
	for {
		topics, err := b.adm.ListTopics(ctx, names...)
		if err == nil && topics.Error() == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait for the topics %v: %w", names, errors.Join(ctx.Err(), err, topics.Error()))
		}
	}
}

// deleteTopics deletes everything that begins with the run's id, count's own topics included.
func (b *bench) deleteTopics(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	mine, err := b.topics(ctx, id+"-")
	if err != nil {
		return err
	}
	if _, err := b.adm.DeleteTopics(ctx, mine...); err != nil {
		return fmt.Errorf("delete topics: %w", err)
	}
	return nil
}

func (b *bench) topics(ctx context.Context, prefix string) (names []string, err error) {
	all, err := b.adm.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	for _, name := range all.Names() {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names, nil
}
