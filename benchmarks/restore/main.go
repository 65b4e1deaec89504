// Command restore measures how fast an empty store is restored from its changelog, beside a bare
// consumer of the same client that reads the same topic and does nothing with it.
//
//	restore -brokers 127.0.0.1:9092 -state-dir d [-clients franz,confluent] [-rounds 3] [-records 2000000] [-keys 1000000]
//
// The changelog is filled once, in the form that Tidemark writes; each measurement is a process of its own. It prints
// a table: records a second from the first fetch to the last record in the database, CPU seconds of the whole process
// for a million records, and its peak memory.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

type options struct {
	brokers, stateDir, clients, app string
	partitions                      int
	records, keys                   int64
	valueBytes, rounds              int
	child, profile                  string
}

func main() {
	var o options
	flag.StringVar(&o.brokers, "brokers", "", "host:port of the brokers, split by commas")
	flag.StringVar(&o.stateDir, "state-dir", "", "folder for the state: it is made anew for each measurement")
	flag.StringVar(&o.clients, "clients", "franz,confluent", "clients to measure, split by commas")
	flag.StringVar(&o.app, "app-id", "bench-restore", "application id, whose changelog is filled unless it exists")
	flag.IntVar(&o.partitions, "partitions", 4, "partitions of the changelog: tasks")
	flag.Int64Var(&o.records, "records", 2_000_000, "records in the changelog")
	flag.Int64Var(&o.keys, "keys", 1_000_000, "number of keys to draw from")
	flag.IntVar(&o.valueBytes, "value-bytes", 100, "length of a value")
	flag.IntVar(&o.rounds, "rounds", 3, "measurements of each")
	flag.StringVar(&o.child, "child", "", "measure this (bare or restore) in this process, and print a line of JSON")
	flag.StringVar(&o.profile, "cpuprofile", "", "with -child: write a CPU profile to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "restore:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.brokers == "" || o.stateDir == "" {
		return errors.New("-brokers and -state-dir are needed")
	}
	if o.partitions < 1 || o.records < 1 || o.keys < 1 || o.valueBytes < 0 || o.rounds < 1 {
		return errors.New("-partitions, -records, -keys and -rounds must be at least 1, -value-bytes at least 0")
	}
	if o.child != "" {
		return measure(ctx, o, os.Stdout)
	}
	if err := load(ctx, o); err != nil {
		return fmt.Errorf("fill the changelog: %w", err)
	}
	return table(ctx, o, os.Stdout)
}

// result is what one process measured.
type result struct {
	Records   int64   `json:"records"`
	Seconds   float64 `json:"seconds"`
	CPU       float64 `json:"cpu_s"`
	GC        float64 `json:"gc_s"`
	PeakBytes int64   `json:"peak_rss"`
}

func table(ctx context.Context, o options, out io.Writer) error {
	fmt.Fprintf(out, "| client | what | records | records/s | CPU s per million | of it GC | peak MB |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, client := range strings.Split(o.clients, ",") {
		for range o.rounds {
			for _, what := range []string{"bare", "restore"} {
				r, err := child(ctx, o, client, what)
				if err != nil {
					return fmt.Errorf("%s with %s: %w", what, client, err)
				}
				million := float64(r.Records) / 1e6
				fmt.Fprintf(out, "| %s | %s | %d | %.0f | %.2f | %.2f | %d |\n", client, what, r.Records, float64(r.Records)/r.Seconds, r.CPU/million, r.GC/million, r.PeakBytes>>20)
			}
		}
	}
	return nil
}

func child(ctx context.Context, o options, client, what string) (r result, err error) {
	cmd := exec.CommandContext(ctx, os.Args[0], "-child", what, "-clients", client, "-brokers", o.brokers, "-state-dir", o.stateDir,
		"-app-id", o.app, "-partitions", strconv.Itoa(o.partitions), "-records", strconv.FormatInt(o.records, 10))
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}
