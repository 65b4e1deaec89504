package streams_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// smallDisk mounts a file system of its own in memory; it is skipped where that is not allowed.
func smallDisk(t *testing.T, size string) string {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// randomText does not compress.
func randomText(n int) string {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// A disk that is full fails the task with a clear error; the process goes on.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	if !inChild(t) {
		return
	}
	b := testbroker.Kfake(t)
	e := newEnv(t, b, clients[0])
	cfg := e.config()
	// Each of the two tasks sets aside a whole log (some 4 MB, again when it is replaced) before it writes to it; the first
	// application must live with that.
	cfg.StateDir = smallDisk(t, "32m")
	e.produce("x")
	app := e.start(e.one(each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
		ctx.Commit()
		return nil
	})), cfg)
	app.catchUp()
	app.close()
	big := processor.KeyValue("big", serde.String, serde.String)
	topology := e.one(each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
		for i := range 100 {
			if err := big.In(ctx).Put(strings.Repeat("k", i+1), randomText(500_000)); err != nil {
				return err
			}
		}
		return nil
	}), big)
	cfg.AppID += "2"
	app = e.start(topology, cfg)
	app.fails("task 0_0", cfg.StateDir, "no space left on device")
	if n := statestore.Abandoned(); n < 1 || n > 2 { // the other task has the same disk
		t.Errorf("%d databases counted as abandoned", n)
	}
}
