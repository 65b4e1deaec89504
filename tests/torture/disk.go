package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// disk is the disk under an application's stores, which gets into trouble when it is told to.
type disk struct{ trouble atomic.Pointer[diskTrouble] }

// diskTrouble is what happens to everything that is written.
type diskTrouble struct {
	slow time.Duration
	err  error        // nil: nothing fails
	left atomic.Int64 // so many operations go well before
}

// diskErrors are the troubles that fail.
var diskErrors = map[string]syscall.Errno{"full": syscall.ENOSPC, "broken": syscall.EIO}

// newDisk puts itself under all stores that this process opens from now on.
func newDisk() *disk {
	d := &disk{}
	d.trouble.Store(&diskTrouble{})
	vfs.Default = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(d.meet))
	return d
}

// meet is called before each operation. A full disk still syncs what it holds, and removes files.
func (d *disk) meet(op errorfs.Op) error {
	t := d.trouble.Load()
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		if errors.Is(t.err, syscall.ENOSPC) {
			return nil
		}
	case errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpMkdirAll, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFilePreallocate:
	default:
		return nil
	}
	time.Sleep(t.slow)
	if t.err == nil || t.left.Add(-1) >= 0 {
		return nil
	}
	return t.err
}

// set changes the trouble: "slow 20ms", "full 5" (after five more writes), "broken 0", "heal".
func (d *disk) set(text string) error {
	t := &diskTrouble{}
	what, arg, _ := strings.Cut(text, " ")
	var err error
	switch what {
	case "slow":
		t.slow, err = time.ParseDuration(arg)
	case "full", "broken":
		var left int64
		left, err = strconv.ParseInt(arg, 10, 64)
		t.err = diskErrors[what]
		t.left.Store(left)
	case "heal":
	default:
		err = fmt.Errorf("no such trouble of a disk: %q", text)
	}
	if err == nil {
		d.trouble.Store(t)
	}
	return err
}

// obey takes orders, one a line and each answered by nothing, until the giver has gone.
func (d *disk) obey(orders io.Reader) error {
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		if err := d.set(lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}
