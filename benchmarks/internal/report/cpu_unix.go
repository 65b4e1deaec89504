//go:build unix

package report

import (
	"runtime"
	"syscall"
	"time"
)

// CPU is the user and system time that this process has used.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// PeakRSS is the largest amount of memory that this process has occupied, in bytes.
func PeakRSS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	peak := int64(u.Maxrss) //nolint:unconvert // an int32 on 32-bit systems
	if runtime.GOOS == "darwin" {
		return peak
	}
	return peak << 10 // KiB everywhere else
}
