package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// evict takes the files below dir out of the page cache; only these, so that nobody else on
// the machine is disturbed.
func evict(dir string) bool {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Sync(); err != nil { // only clean pages can go
			return err
		}
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
	return err == nil
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func maxRSS() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss << 10
}

// watchDescriptors looks every few milliseconds how many files are open; the function that
// it gives ends that and says the most.
func watchDescriptors() func() int {
	stop := make(chan struct{})
	most := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(5 * time.Millisecond)
		defer t.Stop()
		for {
			if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
				most = max(most, len(entries)-1) // one is that of the reading itself
			}
			select {
			case <-stop:
				return
			case <-t.C:
			}
		}
	})
	return func() int {
		close(stop)
		wg.Wait()
		return most
	}
}
