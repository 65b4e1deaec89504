package streams_test

import (
	"sync/atomic"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/offsetcache"
)

// The scan at the start tells a listener how far it is, at its end at least.
func TestScanListener(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	e.produce("a b", "a")
	for range 2 {
		var last atomic.Pointer[offsetcache.ScanProgress]
		cfg := e.config()
		cfg.ScanListener = func(p offsetcache.ScanProgress) { last.Store(&p) }
		app := e.start(e.wordCount(), cfg)
		app.catchUp()
		if p, scan := last.Load(), app.Scan(); p == nil || p.Done != p.Total || p.Total < scan.Opened {
			t.Errorf("told %+v; the scan opened %d", p, scan.Opened)
		}
		app.close()
	}
}
