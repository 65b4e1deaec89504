package pebbledb

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// underWay leaves a write behind, as a flush that fails meanwhile does: it is inside Pebble until released, and ends with end.
func underWay(t *testing.T, d *DB, end func()) (release func()) {
	t.Helper()
	begun, goOn, left := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		left <- d.Write("write", func(*pebble.DB) error {
			close(begun)
			<-goOn
			end()
			return nil
		})
	}()
	<-begun
	d.fail(errors.New("no space"), broken)
	wantFailed(t, d, <-left, "no space")
	return func() { close(goOn) }
}

// Pebble gives its memory back when it is closed, and a write that is still on its way there would end the process: it is
// waited for.
func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	for name, x := range map[string]struct {
		end       func()
		abandoned int64
	}{"it ends": {func() {}, 0}, "it panics": {func() { panic("boom") }, 1}} { // with Pebble's locks held, perhaps
		t.Run(name, func(t *testing.T) {
			d, r := open(t)
			d.o.CloseTimeout = time.Minute
			release := underWay(t, d, x.end)
			go func() {
				for d.underway.TryRLock() { // until Close waits
					d.underway.RUnlock()
					runtime.Gosched()
				}
				release()
			}()
			wantAbandoned(t, d, x.abandoned)
			if closed, _ := guard("look", func() error { _, _, err := d.db.Get([]byte("k")); return err }); closed != (x.abandoned == 0) {
				t.Errorf("Pebble was closed: %t", closed)
			}
			r.Close()
		})
	}
}

// What does not end leaves the database behind.
func TestCloseLeavesBehindWhatDoesNotEnd(t *testing.T) {
	d, r := open(t)
	release := underWay(t, d, func() {})
	wantAbandoned(t, d, 1)
	release()
	r.Close()
}
