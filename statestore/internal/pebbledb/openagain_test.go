package pebbledb

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// flaky fails operation number at, of all that open, read or change files, and the later ones too if it stays.
func flaky(fs vfs.FS, at int64, stays bool) (vfs.FS, *atomic.Bool) {
	var n atomic.Int64
	hit := new(atomic.Bool)
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if i := n.Add(1); i == at || stays && i > at {
			hit.Store(true)
			return syscall.EIO
		}
		return nil
	})), hit
}

// Whatever fails in an Open, once or from then on: when the disk is well again the same process can open the directory, and
// what was on the disk is there.
func TestOpenAgainAfterFailure(t *testing.T) {
	if !inChild(t) {
		return
	}
	for _, stays := range []bool{false, true} {
		left := Abandoned()
		for at := int64(1); ; at++ {
			mem, o := killed(t)
			o.CloseTimeout = 20 * time.Millisecond
			var hit *atomic.Bool
			o.FS, hit = flaky(mem, at, stays)
			d, err := Open("t", o)
			if err == nil {
				_ = d.Close()
			}
			if !hit.Load() {
				if at < 50 {
					t.Fatalf("an open has only %d operations", at)
				}
				t.Logf("stays %v: %d failures, %d databases left behind", stays, at-1, Abandoned()-left)
				break
			}
			o.FS = mem
			if err := holds(o, "1"); err != nil {
				t.Errorf("stays %v, after operation %d of an open failed (%v): %v", stays, at, err, err)
			}
		}
	}
}

// holds opens the database, as soon as nothing is under way in a former one, and looks at the value of a.
func holds(o Options, want string) error {
	d, err := Open("t", o)
	for end := time.Now().Add(30 * time.Second); errors.Is(err, syscall.EAGAIN) && time.Now().Before(end); d, err = Open("t", o) {
		<-time.After(time.Millisecond)
	}
	if err != nil {
		return err
	}
	err = d.Read("get", func(db *pebble.DB) error {
		v, c, err := db.Get([]byte("a"))
		if err != nil {
			return err
		}
		if string(v) != want {
			err = fmt.Errorf("a is %q; want %q", v, want)
		}
		return errors.Join(err, c.Close())
	})
	return errors.Join(err, d.Close())
}

// A database that was left behind while an operation was under way keeps the directory until that has ended, and does nothing
// after it.
func TestLeftBehindChangesNothing(t *testing.T) {
	if !inChild(t) {
		return
	}
	mem, o := killed(t)
	o.CloseTimeout = time.Millisecond
	o.Log = slog.New(slog.DiscardHandler)
	var slow atomic.Bool
	reached, goOn := make(chan string, 100), make(chan struct{})
	var late atomic.Int64
	o.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch {
		case slow.Load() && op.Kind == errorfs.OpCreate:
			reached <- op.Path
			<-goOn
		case slow.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose:
			select {
			case <-goOn:
				late.Add(1)
			default:
			}
		}
		return nil
	}))
	d, err := Open("t", o)
	if err != nil {
		t.Fatal(err)
	}
	slow.Store(true)
	go func() {
		_ = d.Write("flush", func(db *pebble.DB) error {
			return errors.Join(db.Set([]byte("a"), []byte("2"), pebble.Sync), db.Flush())
		})
	}()
	<-reached
	d.fail(syscall.EIO, broken)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	o.FS = mem
	if _, err := Open("t", o); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("beside an operation that is under way: %v; want that the directory is locked", err)
	}
	close(goOn)
	if err := holds(o, "2"); err != nil {
		t.Error(err)
	}
	if n := late.Load(); n > 0 {
		t.Errorf("%d operations after it was left behind", n)
	}
}
