package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
)

const benchUsage = `usage: tidemark bench open [flags]

Measures how long an application needs at start to read all its task directories: the scan in
parallel, read-only, with files in the page cache and out of it, against opening one directory
after another for writing, which is done on copies. Makes the task directories in DIR/bench and
uses them again the next time; of a DIR with an application's task directories, those are used.
They take about twice tasks times store-bytes of the disk: 2 GB with the defaults.
Nothing is changed in directories that are there.

`

// benchFlags are the arguments of bench open.
type benchFlags struct {
	tasks, storeBytes, parallel int
	dirty, asJSON               bool
	dir                         string
	given                       map[string]bool // the flags that were given
}

// benchResult is what bench open measured. Times of the scan are with the files in the page
// cache, where nothing else is said.
type benchResult struct {
	Tasks      int  `json:"tasks"`
	StoreBytes int  `json:"store_bytes"` // what each holds; of an application's own, the mean of their files
	Parallel   int  `json:"parallel"`
	Dirty      bool `json:"dirty"` // there is something to replay

	ScanMS    float64  `json:"scan_ms"`
	ColdMS    *float64 `json:"cold_scan_ms"` // null where the page cache cannot be emptied
	P50       int64    `json:"per_task_p50_us"`
	P99       int64    `json:"per_task_p99_us"`
	Max       int64    `json:"per_task_max_us"`
	CPU       float64  `json:"cpu_us_per_task"`
	Replayed  int64    `json:"replayed_bytes"`
	ReplayMS  float64  `json:"replay_ms"`
	Files     int      `json:"max_descriptors"`
	RSS       int64    `json:"max_rss_bytes"` // of the process, since its start
	Failed    int      `json:"failed"`
	RWTasks   int      `json:"sequential_rw_tasks"` // measured; sequential_rw_ms is scaled to all
	RWMS      float64  `json:"sequential_rw_ms"`
	Speedup   float64  `json:"speedup"`
	Directory string   `json:"dir"`
}

func runBench(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b, code, done := parseBench(args, stderr)
	if done {
		return code
	}
	r, err := benchOpen(ctx, b, stderr)
	if err == nil {
		err = writeBench(stdout, r, b.asJSON)
	}
	switch {
	case err != nil:
		return cannot(stderr, "bench open", err)
	case r.Failed > 0:
		return exitProblems
	}
	return exitOK
}

func parseBench(args []string, stderr io.Writer) (b benchFlags, code int, done bool) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&b.tasks, "tasks", 1000, "how many task `directories`")
	f.IntVar(&b.storeBytes, "store-bytes", 1<<20, "`bytes` of data in each")
	f.IntVar(&b.parallel, "parallel", 0, "`directories` open at a time (default 4 per core)")
	f.BoolVar(&b.dirty, "dirty", false, "as after kill -9: the data is in the write-ahead log")
	f.StringVar(&b.dir, "dir", "", "`directory` to make them in, kept afterwards, or one that has some (default: a temporary one, removed)")
	f.BoolVar(&b.asJSON, "json", false, "JSON instead of a table")
	rest, code, done := parse(f, benchUsage, args, stderr, "open")
	if done {
		return b, code, true
	}
	b.given = map[string]bool{}
	f.Visit(func(x *flag.Flag) { b.given[x.Name] = true })
	wrong := ""
	switch {
	case rest[0] != "open":
		wrong = fmt.Sprintf("%q cannot be measured, only open", rest[0])
	case b.tasks < 1:
		wrong = fmt.Sprintf("--tasks %d: at least 1", b.tasks)
	case b.storeBytes < 1:
		wrong = fmt.Sprintf("--store-bytes %d: at least 1", b.storeBytes)
	case b.parallel < 0:
		wrong = fmt.Sprintf("--parallel %d is negative (0 = 4 per core)", b.parallel)
	default:
		return b, exitOK, false
	}
	return b, misused(f, benchUsage, stderr, wrong), true
}

// benchOpen makes the directories and measures.
func benchOpen(ctx context.Context, b benchFlags, stderr io.Writer) (*benchResult, error) {
	parent := b.dir
	if parent == "" {
		temporary, err := os.MkdirTemp("", "tidemark-bench-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(temporary)
		parent = temporary
	}
	set, err := benchDirectories(ctx, parent, b, stderr)
	if err != nil {
		return nil, err
	}
	r := &benchResult{Tasks: len(set.dirs), StoreBytes: set.StoreBytes, Dirty: set.Dirty, Directory: parent}
	if evict(set.path) {
		scan, err := benchScan(ctx, set.dirs, b)
		if err != nil {
			return nil, err
		}
		cold := milliseconds(scan.Elapsed)
		r.ColdMS = &cold
	}
	if err := r.scan(ctx, set.dirs, b); err != nil {
		return nil, err
	}
	if set.found {
		r.Dirty = r.Replayed > 0
	}
	if err := r.sequential(ctx, set); err != nil {
		return nil, err
	}
	return r, nil
}

func benchScan(ctx context.Context, dirs []offsetcache.Directory, b benchFlags) (*offsetcache.Scan, error) {
	quiet := slog.New(slog.DiscardHandler) // failures are counted
	return offsetcache.New().Scan(ctx, dirs, offsetcache.ScanOptions{Parallel: b.parallel, Logger: quiet})
}

// scan takes the faster of two: the first one may have to read into the page cache.
func (r *benchResult) scan(ctx context.Context, dirs []offsetcache.Directory, b benchFlags) error {
	var best *offsetcache.Scan
	for range 2 {
		stop := watchDescriptors()
		before := cpuTime()
		scan, err := benchScan(ctx, dirs, b)
		r.Files = max(r.Files, stop())
		if err != nil {
			return err
		}
		if best == nil || scan.Elapsed < best.Elapsed {
			best = scan
			r.CPU = float64((cpuTime() - before).Microseconds()) / float64(len(dirs))
		}
	}
	r.Parallel, r.ScanMS, r.Failed = best.Parallel, milliseconds(best.Elapsed), len(best.Failed)
	r.Replayed, r.ReplayMS, r.RSS = best.ReplayedBytes, milliseconds(best.ReplayTime), maxRSS()
	if t := best.OpenTimes; len(t) > 0 {
		r.P50, r.P99, r.Max = t[len(t)/2].Microseconds(), t[len(t)*99/100].Microseconds(), t[len(t)-1].Microseconds()
	}
	return nil
}

// mostSequential bounds how many are opened one after another: 20 seconds or so.
const mostSequential = 1000

// sequential opens and closes one directory after another for writing, as is done where
// there is no scan. Each is a copy: the directories stay as they are, for the next run too.
func (r *benchResult) sequential(ctx context.Context, set *benchSet) error {
	quiet := slog.New(slog.DiscardHandler)
	measured := set.dirs[:min(len(set.dirs), mostSequential)]
	work, err := set.workDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var took time.Duration
	for _, d := range measured {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		path := filepath.Join(work, d.Task)
		if err := linkDir(d.Path, path); err != nil {
			return fmt.Errorf("copy %s: %w", d.Path, err)
		}
		begun := time.Now()
		s, err := statestore.Open(path, statestore.Options{Logger: quiet, CacheBytes: -1})
		if err == nil { // else it was counted by the scan
			err = s.Close()
			took += time.Since(begun)
			if err != nil {
				return err
			}
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	r.RWTasks = len(measured)
	r.RWMS = milliseconds(took) * float64(len(set.dirs)) / float64(len(measured))
	r.Speedup = r.RWMS / r.ScanMS
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func writeBench(out io.Writer, r *benchResult, asJSON bool) error {
	if asJSON {
		return writeJSON(out, r)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	cold := "not measured: the page cache cannot be emptied here"
	if r.ColdMS != nil {
		cold = fmt.Sprintf("%.1f ms", *r.ColdMS)
	}
	fmt.Fprintf(w, "task directories\t%d of %d bytes, %s\n", r.Tasks, r.StoreBytes, map[bool]string{false: "closed cleanly", true: "as after kill -9"}[r.Dirty])
	fmt.Fprintf(w, "scan\t%.1f ms, %d at a time\n", r.ScanMS, r.Parallel)
	fmt.Fprintf(w, "scan, cold\t%s\n", cold)
	fmt.Fprintf(w, "one directory\tp50 %d us, p99 %d us, max %d us; %.0f us of CPU\n", r.P50, r.P99, r.Max, r.CPU)
	fmt.Fprintf(w, "replayed\t%d bytes in %.1f ms\n", r.Replayed, r.ReplayMS)
	fmt.Fprintf(w, "one after another, for writing\t%.1f ms: %.1f times as long\n", r.RWMS, r.Speedup)
	fmt.Fprintf(w, "file descriptors, memory\t%d, %d MiB\n", r.Files, r.RSS>>20)
	fmt.Fprintf(w, "failed\t%d\n", r.Failed)
	return w.Flush()
}

// benchApp is the application whose directory the task directories are in.
func benchApp(parent string) string { return filepath.Join(parent, "bench") }
