package statestore

import (
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"testing"
)

// Readers have no part in the task store that its owner commits to: they read a snapshot of it. Several read one, over and
// over, and take more, while the owner commits, flushes and compacts: each snapshot is the state after one commit, and
// stays that.
func TestReadersDuringCommits(t *testing.T) {
	base := t.TempDir()
	c := &script{big: 4}
	s, err := c.open(filepath.Join(base, "0_0"), Options{Logger: quiet(), MemTableBytes: 256 << 10})
	must(t, err)
	must(t, c.commit(s, 1))
	const readers, snapshots, reads = 4, 4, 3
	first := filepath.Join(base, "first")
	must(t, s.Snapshot(first))
	shared := readOnly(t, first, ReadOptions{})
	var all sync.WaitGroup
	errs := make(chan error, readers)
	for r := range readers {
		all.Go(func() {
			errs <- func() error {
				seen := int64(1)
				for i := range snapshots {
					to := filepath.Join(base, fmt.Sprint("reader", r, "-", i))
					if err := s.Snapshot(to); err != nil {
						return err
					}
					n, err := c.readTwice(to, reads)
					if err != nil {
						return err
					}
					if n < seen {
						return fmt.Errorf("commit %d after commit %d", n, seen)
					}
					seen = n
					if err := c.compare(shared, 1); err != nil {
						return fmt.Errorf("the first snapshot: %w", err)
					}
				}
				return nil
			}()
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	const most = 400 // the state after more takes long to compute
	n := 2
	for committing := true; committing && n <= most; n++ {
		must(t, c.commit(s, n))
		select {
		case <-done:
			committing = false
		default:
		}
	}
	<-done
	for range readers {
		must(t, <-errs)
	}
	must(t, s.Close())
}

// readTwice reads a snapshot several times, and gives its commit.
func (c *script) readTwice(dir string, times int) (n int64, err error) {
	v, err := OpenReadOnly(dir, ReadOptions{Logger: quiet()})
	if err != nil {
		return 0, err
	}
	defer func() {
		if closeErr := v.Close(); err == nil {
			err = closeErr
		}
	}()
	n = v.Metadata().CommitID.Number
	for range times {
		if err := c.compare(v, n); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (c *script) compare(v *View, n int64) error {
	if m := v.Metadata(); m.CommitID.Number != n || len(m.Stores) != 2 || m.Stores[0].Offset != At(n) {
		return fmt.Errorf("metadata %+v, want those of commit %d", m, n)
	}
	got := map[string]string{}
	for r, err := range v.Rows("counts", nil, nil) {
		if err != nil {
			return err
		}
		got[string(r.Key)] = string(r.Value)
	}
	if want := c.values(int(n)); !maps.Equal(got, want) {
		return fmt.Errorf("at commit %d: %s; want %s", n, brief(got), brief(want))
	}
	return nil
}
