package pebbledb

import (
	"errors"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// underWay leaves a write behind, as a flush that fails meanwhile does: it is inside Pebble until released.
func underWay(t *testing.T, d *DB) (release func()) {
	t.Helper()
	begun, goOn, left := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		left <- d.Write("write", func(*pebble.DB) error {
			close(begun)
			<-goOn
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
	d, r := open(t)
	release := underWay(t, d)
	go func() {
		for d.underway.TryRLock() { // until Close waits
			d.underway.RUnlock()
			runtime.Gosched()
		}
		release()
	}()
	wantAbandoned(t, d, 0)
	r.Close()
}

// What does not end leaves the database behind.
func TestCloseLeavesBehindWhatDoesNotEnd(t *testing.T) {
	d, r := open(t)
	release := underWay(t, d)
	wantAbandoned(t, d, 1)
	release()
	r.Close()
}
