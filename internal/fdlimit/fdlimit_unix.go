//go:build unix

package fdlimit

import "syscall"

// Get is how many files the process may have open.
func Get() (n uint64, known bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Cur), true //nolint:unconvert // it is signed on some systems
}
