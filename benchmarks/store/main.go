// Command store measures the stores alone, without Kafka: a count per key over several
// tasks, with Tidemark's stores and with the loop that one would write first on Pebble (Get,
// add, Set), in one run and in turn. It prints a table of the CPU time per update.
//
//	store -updates 2000000 -rounds 3
//
// With -only and -cpuprofile it runs one case for a profile.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/report"
)

type options struct {
	workload
	rounds                int
	only, cpuProfile, dir string
}

func main() {
	var o options
	flag.IntVar(&o.tasks, "tasks", 4, "tasks, each with a database of its own")
	flag.IntVar(&o.updates, "updates", 2_000_000, "counts to update, over all tasks")
	flag.IntVar(&o.commit, "commit", 10_000, "updates, over all tasks, between two commits of all tasks")
	flag.IntVar(&o.memTable, "memtable", 0, "bytes of a memtable of Tidemark (0: its default)")
	flag.IntVar(&o.rounds, "rounds", 3, "how often to run each case; the table shows medians")
	flag.StringVar(&o.only, "only", "", "run only cases whose name contains this")
	flag.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile to this file")
	flag.StringVar(&o.dir, "dir", "", "folder for the databases (default: a temporary one)")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "store:", err)
		os.Exit(1)
	}
}

// entryBytes is about what an entry of this workload takes in Tidemark's memory: header, key,
// value, and its share of the index.
const entryBytes = 54

// variant is a way of keeping the counts.
type variant struct {
	name  string
	begin func(w workload, keys int, dir string) (counter, error)
}

func variants() []variant {
	return []variant{
		{"naive", func(w workload, _ int, dir string) (counter, error) { return openNaive(w, dir) }},
		{"all", func(w workload, keys int, dir string) (counter, error) {
			return openTidemark(w, dir, 4*keys*entryBytes, false)
		}},
		{"tenth", func(w workload, keys int, dir string) (counter, error) {
			return openTidemark(w, dir, keys*entryBytes/10, false)
		}},
		{"tenth-prefetch", func(w workload, keys int, dir string) (counter, error) {
			return openTidemark(w, dir, keys*entryBytes/10, true)
		}},
	}
}

var keyCounts = []int{10_000, 1_000_000}

func run(o options) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	if o.rounds < 1 {
		return fmt.Errorf("-rounds %d: it must be at least 1", o.rounds)
	}
	dir, err := os.MkdirTemp(o.dir, "tidemark-store-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.cpuProfile != "" {
		f, err := os.Create(o.cpuProfile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	results := map[string][]time.Duration{}
	for round := range o.rounds {
		for _, keys := range keyCounts {
			for _, v := range variants() {
				name := caseName(keys, v.name)
				if !strings.Contains(name, o.only) {
					continue
				}
				cpu, err := measure(o.workload, keys, v, fmt.Sprintf("%s/%s-%d", dir, name, round))
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				results[name] = append(results[name], cpu)
				fmt.Fprintf(os.Stderr, "round %d, %s: %.2f us of CPU an update\n", round+1, name, micros(cpu, o.updates))
			}
		}
	}
	printTable(o, results)
	return nil
}

func caseName(keys int, variant string) string { return fmt.Sprintf("%dk-%s", keys/1000, variant) }

// measure runs one case in folders of its own. Its CPU time includes opening, closing and
// everything that the databases do in the background.
func measure(w workload, keys int, v variant, dir string) (time.Duration, error) {
	runtime.GC()
	debug.FreeOSMemory()
	before := report.CPU()
	c, err := v.begin(w, keys, dir)
	if err != nil {
		return 0, err
	}
	err = w.run(c, keys)
	err = errors.Join(err, c.close())
	cpu := report.CPU() - before
	return cpu, errors.Join(err, os.RemoveAll(dir))
}

func printTable(o options, results map[string][]time.Duration) {
	fmt.Printf("%d tasks, %d updates, a commit every %d, medians of %d rounds; us of CPU per update\n\n", o.tasks, o.updates, o.commit, o.rounds)
	fmt.Println("| keys | naive | budget holds all | ratio | holds a tenth, single reads | ratio | holds a tenth, Prefetch | ratio |")
	fmt.Println("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, keys := range keyCounts {
		naive := median(results[caseName(keys, "naive")])
		if naive == 0 {
			continue // -only
		}
		fmt.Printf("| %d | %.2f |", keys, micros(naive, o.updates))
		for _, v := range variants()[1:] {
			d := median(results[caseName(keys, v.name)])
			fmt.Printf(" %.2f | **%.2f** |", micros(d, o.updates), float64(d)/float64(naive))
		}
		fmt.Println()
	}
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(d))[len(d)/2]
}

func micros(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / 1000 / float64(n) }
