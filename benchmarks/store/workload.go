package main

import (
	"errors"
	"fmt"
)

// workload is what every variant does.
type workload struct {
	tasks, updates, commit int
	memTable               int // of Tidemark, in bytes; 0 = its default
}

func (w workload) validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		n    int
	}{{"tasks", w.tasks}, {"updates", w.updates}, {"commit", w.commit}} {
		if f.n < 1 {
			errs = append(errs, fmt.Errorf("-%s %d: it must be at least 1", f.name, f.n))
		}
	}
	return errors.Join(errs...)
}

// counter keeps the counts of all tasks.
type counter interface {
	// update adds one to the counts of a task's keys, one after the other.
	update(task int, keys [][]byte) error
	// commit makes the updates so far one atomic step per task, number n, with the offset
	// of the next update.
	commit(n int64) error
	// sum adds up all counts.
	sum() (uint64, error)
	close() error
}

// run updates random counts. The keys of an interval come task by task, as polled
// partitions do.
func (w workload) run(c counter, keys int) error {
	r := random(88172645463325252)
	polled := make([][][]byte, w.tasks)
	for done := 0; done < w.updates; {
		n := min(w.commit, w.updates-done)
		for t := range polled {
			polled[t] = polled[t][:0]
		}
		room := make([]byte, 8*n)
		for i := range n {
			id := int(r.next() % uint64(keys))
			k := room[8*i : 8*i+8 : 8*i+8]
			putKey(k, id)
			polled[id%w.tasks] = append(polled[id%w.tasks], k)
		}
		for t := range polled {
			if err := c.update(t, polled[t]); err != nil {
				return err
			}
		}
		done += n
		if err := c.commit(int64(done)); err != nil {
			return err
		}
	}
	sum, err := c.sum()
	if err == nil && sum != uint64(w.updates) {
		err = fmt.Errorf("the counts are %d in all after %d updates", sum, w.updates)
	}
	return err
}

// putKey writes "k" and 7 decimal digits.
func putKey(b []byte, id int) {
	b[0] = 'k'
	for i := 7; i >= 1; i-- {
		b[i] = byte('0' + id%10)
		id /= 10
	}
}

// random is a xorshift generator: the same keys in every variant, for little CPU time.
type random uint64

func (r *random) next() uint64 {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = random(x)
	return x * 0x2545F4914F6CDD1D
}
