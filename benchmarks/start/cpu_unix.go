//go:build unix

package main

import "golang.org/x/sys/unix"

// cpuMillis is the CPU time of this process so far.
func cpuMillis() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}
