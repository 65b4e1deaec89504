package migration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
)

// Plan says what a state directory holds of legacy files and what [Apply] would do. dir is
// the state directory, or the directory of one application. It writes nothing.
//
// An error means that the directory as a whole cannot be read, or that the options are
// wrong. What is wrong with one file or task is in the report.
func Plan(ctx context.Context, dir string, o Options) (*Report, error) {
	a, err := find(dir, o)
	if err != nil {
		return nil, err
	}
	r, err := planApplication(ctx, a, o)
	if err != nil {
		return nil, err
	}
	r.finish()
	return r, nil
}

func find(dir string, o Options) (application, error) {
	if err := o.Validate(); err != nil {
		return application{}, err
	}
	a, err := findApplication(dir, o)
	if err != nil {
		return application{}, fmt.Errorf("migration of %s: %w", dir, err)
	}
	return a, nil
}

func planApplication(ctx context.Context, a application, o Options) (*Report, error) {
	r := &Report{Tasks: make([]Task, len(a.dirs)), Notes: slices.Clone(a.notes)}
	err := inParallel(ctx, o.jobs(len(a.dirs)), len(a.dirs), func(i int) error {
		r.Tasks[i] = planTask(a, a.dirs[i], o)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("plan migration of %s: %w", a.path, err)
	}
	if f := readProcessFile(filepath.Join(a.path, processName)); f.Status != StatusAbsent || f.Reason != "" {
		r.Tasks = slices.Insert(r.Tasks, 0, Task{Files: []File{f}, Entries: []Entry{}, Positions: []Position{}, dir: a.path})
	}
	return r, nil
}

// finish draws the conclusions from the tasks.
func (r *Report) finish() {
	r.OK = true
	for i := range r.Tasks {
		t := &r.Tasks[i]
		r.Notes = append(r.Notes, t.notes...)
		r.OK = r.OK && !t.attention
		for _, f := range t.Files {
			if f.Status == StatusQuarantined || f.Status == StatusUnreadable || f.attention {
				r.OK = false
			}
		}
		for _, e := range t.Entries {
			if e.attention {
				r.OK = false
			}
		}
	}
}

// inParallel calls f for 0 <= i < n on at most jobs goroutines, and waits for them. It
// stops taking more at the first error and when ctx is done.
func inParallel(ctx context.Context, jobs, n int, f func(i int) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for range min(jobs, n) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
