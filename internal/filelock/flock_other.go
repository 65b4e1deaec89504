//go:build !unix || solaris || illumos || aix

package filelock

import (
	"errors"
	"os"
)

var errHeld = errors.New("held")

// A lock that protects nothing would be worse than none.
func flock(*os.File) error {
	return errors.New("this system has no flock; supported are Linux, macOS and the BSDs")
}
