package statestore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// remedy says what is to be done about an error of the disk, and what happens until then.
func remedy(err error) string {
	switch {
	case errors.Is(err, ErrNewerFormat):
		return "run that version: nothing in the directory was changed"
	case errors.Is(err, ErrLocked):
		return "end the program that has it open; to look into it meanwhile, take a snapshot"
	case errors.Is(err, ErrCorrupt):
		return "set the directory aside and restore the stores from their changelogs"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space there and restart: what was committed and synced is intact"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return "this user must be able to write there: repair that and restart"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "raise the limit of open files (ulimit -n; 8 are needed for each task, and the table files) and restart: what was committed and synced is intact"
	case errors.Is(err, syscall.ENOTDIR):
		return "a file is in the place of a directory: remove it, or choose another state directory"
	}
	return "repair the cause (space, permissions, disk) and restart: what was committed and synced is intact"
}

// advised adds to an error of the disk that has not failed the task store what is to be done about it; then says
// what becomes of the call that it ended.
func advised(err error, then string) error {
	var errno syscall.Errno
	if errors.Is(err, ErrFailed) || !errors.As(err, &errno) {
		return err
	}
	return fmt.Errorf("%w; %s; %s", err, remedy(err), then)
}
