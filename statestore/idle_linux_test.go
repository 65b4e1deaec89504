package statestore

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkIdleStores tells what open task stores cost that have nothing to do: after a
// commit of one row, and after many commits of 20 MB. Run it with -benchtime 1x.
func BenchmarkIdleStores(b *testing.B) {
	for _, c := range []struct {
		name        string
		stores, pad int
	}{{"1000 small", 1000, 0}, {"100 once busy", 100, 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				idle(b, c.stores, c.pad)
			}
		})
	}
}

func idle(b *testing.B, n, pad int) {
	r, err := NewResources(ResourceOptions{})
	must(b, err)
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur < uint64(10*n+1000) {
		b.Skipf("%d file descriptors allowed; %d task stores need more", files.Cur, n)
	}
	dir := b.TempDir()
	rss, goroutines := resident(b), runtime.NumGoroutine()
	var stores []*TaskStore
	for i := range n {
		s, err := Open(filepath.Join(dir, fmt.Sprintf("0_%d", i)), Options{Resources: r, Logger: quiet()})
		must(b, err)
		must(b, s.Register(countsSpec))
		kv := handle(b, s, "counts")
		for k := 0; k <= pad; k += 64 << 10 {
			value := make([]byte, min(pad, 64<<10))
			for range max(1, min(pad, 20)) {
				must(b, kv.Put(fmt.Append(nil, k), value, 1))
				commit(b, s, Progress{}, map[string]Offset{"counts": At(int64(k))})
			}
		}
		stores = append(stores, s)
	}
	for _, s := range stores {
		eventually(b, "synced", func() bool { return s.DurableOffsets() != nil && s.durable.Load() == s.committed.Load() })
	}
	debug.FreeOSMemory()
	b.ReportMetric(float64(resident(b)-rss)/float64(n)/1024, "KiB-RSS/store")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(n), "goroutines/store")
	used := cpu(b)
	const span = 10 * time.Second
	<-time.After(span)
	b.ReportMetric(100*float64(cpu(b)-used)/float64(span), "%CPU")
	b.ReportMetric(float64(r.Stats().MemTableBytes)/1e6, "MB-memtables")
	for _, s := range stores {
		must(b, s.Close())
	}
	must(b, r.Close())
}

func resident(b *testing.B) int64 {
	status, err := os.ReadFile("/proc/self/status")
	must(b, err)
	for line := range strings.Lines(string(status)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	b.Fatal("no VmRSS in /proc/self/status")
	return 0
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
