package statestore

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// crashFS is a file system in memory of which a power loss takes what was not synced. It keeps links and clones apart: Pebble's
// MemFS.Link (2.1.7) takes the lock of the clones twice, shared, and a clone that asks for it in between waits for ever, as
// does the link.
type crashFS struct {
	*vfs.MemFS
	apart sync.Mutex
}

func newCrashFS() *crashFS { return &crashFS{MemFS: vfs.NewCrashableMem()} }

// CrashClone is what a power loss leaves at this moment.
func (fs *crashFS) CrashClone(cfg vfs.CrashCloneCfg) *crashFS {
	fs.apart.Lock()
	defer fs.apart.Unlock()
	return &crashFS{MemFS: fs.MemFS.CrashClone(cfg)}
}

// Link implements vfs.FS.
func (fs *crashFS) Link(oldname, newname string) error {
	fs.apart.Lock()
	defer fs.apart.Unlock()
	return fs.MemFS.Link(oldname, newname)
}
