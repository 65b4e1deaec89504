package migration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/internal/offsetfile"
)

const (
	migratedSuffix   = offsetfile.Migrated
	quarantineMarker = offsetfile.Quarantined
	// keepName is a file that stands in a task directory whose *.migrated stay for ever.
	keepName = "tidemark.keep-migrated"
)

// isSetAside tells whether a name is that of a file or folder that a migration has renamed.
func isSetAside(name string) bool { return offsetfile.IsSetAside(name) }

func isMigrated(name string) bool { return offsetfile.IsMigrated(name) }

// setAside renames path to path + suffix, or with a number when that is taken: what an
// earlier migration has put there is not overwritten. It is on the disk afterwards. A path
// that is gone was set aside before.
func setAside(path, suffix string) (renamed string, err error) {
	for n := 1; ; n++ {
		renamed = path + suffix
		if n > 1 {
			renamed = fmt.Sprintf("%s-%d", renamed, n)
		}
		if _, err := os.Lstat(renamed); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
	}
	err = os.Rename(path, renamed)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return renamed, syncDir(filepath.Dir(path))
}

// quarantine renames a file that cannot be trusted.
func quarantine(path string, now time.Time) (renamed string, err error) {
	return setAside(path, offsetfile.QuarantineSuffix(now))
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeKept puts the file that makes Sweep leave the directory alone.
func makeKept(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, keepName), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	failpoint.Hit("migration-kept")
	return errors.Join(f.Close(), syncDir(dir))
}
