package localstate

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/migration"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Leases opens the stores of tasks under leases of their directories. It is safe for concurrent use.
type Leases struct {
	Dir *statedir.Dir
	// Holder is what others are told who has a directory.
	Holder string
	Log    *slog.Logger
	held   sync.Map // holding by task
}

// Open leases the directory of a task until Closed, and opens its store with open. A damaged directory is set aside: the
// task begins with an empty store, which the take-over restores from the changelogs like one that is new on this host. A store
// without a changelog is made anew from the inputs, or the take-over says by name that they do not reach back so far; the
// directory set aside is then all there is of it.
func (l *Leases) Open(id string, open func() (*statestore.TaskStore, error)) (*statestore.TaskStore, error) {
	if err := l.lease(id); err != nil {
		return nil, err
	}
	store, err := l.openOrSetAside(id, open)
	if err != nil {
		l.Closed(id, err)
		return store, err
	}
	if h, ok := l.held.Load(id); ok {
		l.held.Store(id, holding{h.(holding).lease, store})
	}
	return store, nil
}

// lease waits for the cleaner, which has a directory for moments only.
func (l *Leases) lease(id string) error {
	for tries := 0; ; tries++ {
		lease, err := l.Dir.Lease(id, l.Holder)
		if err == nil {
			l.held.Store(id, holding{lease: lease})
			return nil
		}
		if held, ok := errors.AsType[*statedir.LeasedError](err); !ok || held.Holder != statedir.Cleaner || tries == 500 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (l *Leases) openOrSetAside(id string, open func() (*statestore.TaskStore, error)) (*statestore.TaskStore, error) {
	store, err := open()
	if err == nil || !errors.Is(err, statestore.ErrCorrupt) && !isFile(l.Dir.TaskDir(id)) {
		return store, err
	}
	path, asideErr := l.Dir.SetAside(id, err.Error())
	if errors.Is(asideErr, statedir.ErrNoReason) {
		l.Log.Warn("a directory is set aside without a file that says why", "task", id, "error", asideErr)
	} else if asideErr != nil {
		return nil, errors.Join(err, asideErr)
	}
	failpoint.Hit("set-aside")
	l.Log.Error("state directory of a task was damaged and is set aside; its stores are restored from their changelogs, or made anew from the inputs",
		"task", id, "aside", path, "error", err)
	return open()
}

// Closed gives the lease back when the store was closed, with what became of it. After a clean close nothing needs
// the files any more from which it was once taken over.
func (l *Leases) Closed(id string, err error) {
	if err == nil {
		if err := migration.Sweep(l.Dir.TaskDir(id)); err != nil {
			l.Log.Warn("migrated files stay in the task directory", "task", id, "error", err)
		}
	}
	if h, ok := l.held.LoadAndDelete(id); ok {
		h.(holding).lease.Release()
	}
}

// isFile tells whether a file is where a directory should be: nothing is lost with it. A link that
// leads nowhere is not one: what it leads to may come back.
func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}
