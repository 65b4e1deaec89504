//go:build unix

package migration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// heldByKafkaStreams looks whether a process holds Kafka Streams' lock, which is of another
// kind (POSIX record lock) than Tidemark's own. It only asks: opening and closing the file in
// the process that holds such a lock would release it.
func heldByKafkaStreams(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	l := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l)
	// A file system without such locks has none that is held.
	if held := err == nil && l.Type != unix.F_UNLCK; !held {
		return nil
	}
	return fmt.Errorf("a Kafka Streams application (process %d) uses it: stop that first", l.Pid)
}
