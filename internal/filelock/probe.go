package filelock

import (
	"errors"
	"fmt"
	"os"
)

// Probe tells whether the lock on the file at path is held, and by whom. It writes nothing;
// for the moment that it takes to find out, it holds a lock that nobody holds.
func Probe(path string) (h Holder, held bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return Holder{}, false, fmt.Errorf("open lock file: %w", err)
	}
	err = flock(f)
	if errors.Is(err, errHeld) {
		h, held, err = readSettled(f), true, nil
	}
	return h, held, errors.Join(err, f.Close())
}
