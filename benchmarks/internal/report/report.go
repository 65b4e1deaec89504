package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/metrics"
	"runtime/pprof"
	"sync"
	"time"
)

// Progress is the line that is printed each second.
type Progress struct {
	// State is the program's: "starting", "restoring", "running", "closed", ...
	State     string `json:"state"`
	Processed int64  `json:"processed"`
	// Restored counts changelog records read at the start, which took RestoreMS milliseconds.
	Restored  int64 `json:"restored"`
	RestoreMS int64 `json:"restore_ms"`
	// ReadyMS is how many milliseconds after the start of the program processing began; -1
	// until it has.
	ReadyMS int64 `json:"ready_ms"`
	Tasks   int   `json:"tasks"`
	// CPUSeconds are those of the whole process since its start.
	CPUSeconds float64 `json:"cpu_s"`
}

// Final is the line that is printed at the end.
type Final struct {
	Progress
	Client    string `json:"client"`
	Guarantee string `json:"guarantee"`
	Commits   int64  `json:"commits"`
	// Seconds from the moment processing began to the commit of the last record.
	Seconds       float64 `json:"seconds"`
	RecordsPerSec float64 `json:"records_per_s"`
	// CPUPerMillion are the CPU seconds of the process for a million records.
	CPUPerMillion float64 `json:"cpu_s_per_million"`
	// GCSeconds is the part of the CPU time that the garbage collector took.
	GCSeconds float64 `json:"gc_s"`
	PeakMB    int64   `json:"peak_rss_mb"`
}

var started = time.Now()

// Since gives the milliseconds from the start of the program to t.
func Since(t time.Time) int64 { return t.Sub(started).Milliseconds() }

// Reporter prints the progress.
type Reporter struct {
	flags   *Flags
	profile *os.File
	stop    chan struct{}
	ended   sync.WaitGroup
}

// Start begins to print what now gives, each second, to out, and to write the profile that
// the flags ask for. now is called from a goroutine of the reporter.
func Start(f *Flags, out io.Writer, now func() Progress) (*Reporter, error) {
	r := &Reporter{flags: f, stop: make(chan struct{})}
	if f.CPUProfile != "" {
		file, err := os.Create(f.CPUProfile)
		if err != nil {
			return nil, fmt.Errorf("create CPU profile: %w", err)
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return nil, fmt.Errorf("start CPU profile: %w", err)
		}
		r.profile = file
	}
	r.ended.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p := now()
				p.CPUSeconds = round(CPU().Seconds())
				_ = line(out, p) // nobody to tell
			case <-r.stop:
				return
			}
		}
	})
	return r, nil
}

// Finish stops the printing, ends the profile and prints the final line to out. f carries
// Progress, Commits and Seconds; the rest is filled in. It is called once.
func (r *Reporter) Finish(out io.Writer, f Final) error {
	r.Abandon()
	f.Client, f.Guarantee = r.flags.Client, r.flags.Guarantee
	f.CPUSeconds = round(CPU().Seconds())
	if f.Processed > 0 {
		f.CPUPerMillion = round(f.CPUSeconds / float64(f.Processed) * 1e6)
		if f.Seconds > 0 {
			f.RecordsPerSec = float64(int64(float64(f.Processed) / f.Seconds))
		}
	}
	f.Seconds = round(f.Seconds)
	f.GCSeconds, f.PeakMB = round(gcSeconds()), PeakRSS()>>20
	return line(out, f)
}

// Abandon stops the printing and ends the profile without a final line.
func (r *Reporter) Abandon() {
	close(r.stop)
	r.ended.Wait()
	if r.profile == nil {
		return
	}
	pprof.StopCPUProfile()
	if err := r.profile.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "close CPU profile:", err)
	}
}

func gcSeconds() float64 {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64 {
		return 0
	}
	return s[0].Value.Float64()
}

func line(out io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if _, err := out.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func round(f float64) float64 { return float64(int64(f*1000+0.5)) / 1000 }
