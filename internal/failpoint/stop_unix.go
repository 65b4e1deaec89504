//go:build unix

package failpoint

import (
	"os"
	"syscall"
	"time"
)

// stopSelf returns behind the stop: the signal may go to another thread, which has to be scheduled before this one stops.
func stopSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	time.Sleep(time.Second)
}
