package pebbledb

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/engine/enginetest"
	"pgregory.net/rapid"
)

func TestEngine(t *testing.T) {
	r := NewResources(ResourceOptions{BlockCacheBytes: 1 << 20, OpenFiles: 10, Compactions: 1, Syncs: 1, MemTableBytes: 1 << 20})
	defer r.Close()
	enginetest.Run(t, func(t rapid.TB) engine.Engine {
		d, err := Open("t", Options{FS: vfs.NewMem(), Resources: r, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), MemTableSize: 256 << 10,
			Create: true, WrapFailure: func(err error) error { return fmt.Errorf("failed: %w", err) }, CloseTimeout: time.Second})
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return d
	})
}
