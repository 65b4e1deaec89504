package pebbledb

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// killed is a database that was killed before it had flushed a range deletion.
func killed(t *testing.T) (vfs.FS, Options) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	o := toCreate(mem)
	d, err := Open("t", o)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Write("fill", func(db *pebble.DB) error {
		return errors.Join(db.Set([]byte("a"), []byte("1"), nil), db.DeleteRange([]byte("b"), []byte("c"), pebble.Sync))
	})
	if err != nil {
		t.Fatal(err)
	}
	clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	o.Create = false
	return clone, o
}

// An Open that fails at its last step leaves nobody behind who reads tables for their statistics: with caches that are given
// back, the whole process would die of it.
func TestFailedOpenReadsNoStatistics(t *testing.T) {
	mem, o := killed(t)
	flushed, ended := make(chan struct{}), make(chan struct{})
	var tables atomic.Int32
	o.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch {
		case op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, ".sst"):
			if tables.Add(1) == 1 {
				close(flushed)
			}
		case op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, ".sst"):
			<-ended
		case op.Kind == errorfs.OpRename && strings.Contains(op.Path, "dbtmp"):
			select { // who reads has time to begin
			case <-flushed:
			case <-time.After(200 * time.Millisecond):
			}
			return syscall.ENOSPC
		}
		return nil
	}))
	if _, err := Open("t", o); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("open: %v; want the failure", err)
	}
	close(ended)
	<-time.After(100 * time.Millisecond) // whoever was left behind dies, and the test with it
	if n := tables.Load(); n != 0 {
		t.Errorf("%d tables were opened", n)
	}
	o.FS = mem
	d, err := Open("t", o)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// What the log held is read for its statistics once the database is open: Pebble frees what range deletions cover by them.
func TestReplayedTablesHaveStatistics(t *testing.T) {
	mem, o := killed(t)
	read := make(chan struct{}, 100)
	o.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, ".sst") {
			read <- struct{}{}
		}
		return nil
	}))
	d, err := Open("t", o)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-read:
	case <-time.After(10 * time.Second):
		t.Error("no table was read for its statistics")
	}
	if err := d.Err(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Where the newest log is empty and an older one is not, Open finds out before it has flushed anything.
func TestOlderLogIsSettledToo(t *testing.T) {
	mem, o := killed(t)
	logs, err := wal.Scan(wal.Dir{FS: mem, Dirname: "t"})
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	f, err := mem.Create(mem.PathJoin("t", fmt.Sprintf("%06d.log", logs[len(logs)-1].Num+100)), vfs.WriteCategoryUnspecified)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if logged, err := holdsLog(mem, "t"); logged || err != nil {
		t.Fatal(logged, err)
	}
	there := false
	d := &DB{o: o, latch: newLatch(), sched: &scheduler{l: o.Resources.limit, opening: true}}
	db, err := d.openEmpty("t", d.pebbleOptions("t"))
	if db != nil || !errors.Is(err, errLogged) {
		t.Fatalf("%v, %v; want errLogged", db, err)
	}
	if d, err = Open("t", o); err != nil {
		t.Fatal(err)
	}
	if r := d.Replay(); r.Batches != 2 || r.Keys != 2 {
		t.Errorf("replayed %+v", r)
	}
	err = d.Read("get", func(db *pebble.DB) error {
		v, c, err := db.Get([]byte("a"))
		if err == nil {
			there = string(v) == "1"
			err = c.Close()
		}
		return err
	})
	if err != nil || !there {
		t.Error("the value is gone:", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if logged, err := holdsLog(mem, "t"); logged || err != nil {
		t.Errorf("after a clean close the log holds something: %v, %v", logged, err)
	}
}
