// Command compare runs bare and count in turn on one broker, for each input, guarantee and
// client, and prints a Markdown table of medians and ratios.
//
//	compare -brokers 127.0.0.1:9092 -programs DIR -in 10k=in-10k -in 1m=in-1m -records 2000000 -rounds 3
//
// DIR holds the two programs, built. Each run gets topics of its own, which are deleted after
// it. Where the system tells how busy the machine is (Linux), a run begins only when the
// machine is quiet, and one that had to share it is repeated, and marked if that did not help:
// its numbers say little.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type options struct {
	brokers, programs, stateDir string
	inputs                      inputs
	guarantees, clients         string
	records                     int64
	interval                    time.Duration
	rounds, retries, workers    int
	brokerPID                   int
	json, only                  string
	anyLoad                     bool
}

// input is a loaded topic and the name it has in the table.
type input struct{ name, topic string }

type inputs []input

func (i *inputs) String() string { return fmt.Sprint(*i) }

// Set takes one NAME=TOPIC.
func (i *inputs) Set(s string) error {
	name, topic, ok := strings.Cut(s, "=")
	if !ok || name == "" || topic == "" {
		return fmt.Errorf("write NAME=TOPIC")
	}
	*i = append(*i, input{name, topic})
	return nil
}

func main() {
	var o options
	flag.StringVar(&o.brokers, "brokers", "", "host:port of the brokers, split by commas")
	flag.StringVar(&o.programs, "programs", "", "folder with the programs bare and count")
	flag.StringVar(&o.stateDir, "state-dir", os.TempDir(), "folder for the state of count")
	flag.Var(&o.inputs, "in", "NAME=TOPIC: an input, loaded before; may be repeated")
	flag.StringVar(&o.guarantees, "guarantees", "at-least-once,exactly-once", "which, split by commas")
	flag.StringVar(&o.clients, "clients", "franz,confluent", "which, split by commas")
	flag.Int64Var(&o.records, "records", 2_000_000, "records to count in each run")
	flag.DurationVar(&o.interval, "commit-interval", 100*time.Millisecond, "time between two commits")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each run is made")
	flag.IntVar(&o.retries, "retries", 2, "how often a disturbed run is repeated")
	flag.IntVar(&o.workers, "workers", 1, "workers of count")
	flag.IntVar(&o.brokerPID, "broker-pid", 0, "process id of a broker on this machine, to measure its CPU time")
	flag.StringVar(&o.only, "only", "", "bare or count: run only that program, and print no table")
	flag.StringVar(&o.json, "json", "", "also write every run to this file, a JSON line each")
	flag.BoolVar(&o.anyLoad, "any-load", false, "do not wait until the machine is quiet, and repeat no run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out, log io.Writer) (err error) {
	if o.brokers == "" || o.programs == "" || len(o.inputs) == 0 {
		return errors.New("-brokers, -programs and at least one -in are needed")
	}
	b, err := dial(o)
	if err != nil {
		return err
	}
	defer b.close()
	var raw *json.Encoder
	if o.json != "" {
		file, err := os.Create(o.json)
		if err != nil {
			return fmt.Errorf("create result file: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		raw = json.NewEncoder(file)
	}
	var all []result
	for round := range o.rounds {
		for _, s := range o.settings() {
			for _, program := range order(round) {
				if o.only != "" && o.only != program {
					continue
				}
				r, err := b.runClean(ctx, o, s, program)
				if err != nil {
					return fmt.Errorf("%s on %s, %s, %s: %w", program, s.input.topic, s.guarantee, s.client, err)
				}
				all = append(all, r)
				fmt.Fprintln(log, r)
				if raw == nil {
					continue
				}
				if err := raw.Encode(r); err != nil {
					return fmt.Errorf("write result file: %w", err)
				}
			}
		}
	}
	if o.only == "" {
		table(out, o.settings(), all)
	}
	return nil
}

// order changes each round, so that neither program always comes first.
func order(round int) []string {
	if round%2 == 0 {
		return []string{"bare", "count"}
	}
	return []string{"count", "bare"}
}

// setting is one line of the table.
type setting struct {
	input     input
	guarantee string
	client    string
}

func (o options) settings() []setting {
	var all []setting
	for _, in := range o.inputs {
		for _, g := range strings.Split(o.guarantees, ",") {
			for _, c := range strings.Split(o.clients, ",") {
				all = append(all, setting{in, g, c})
			}
		}
	}
	return all
}
