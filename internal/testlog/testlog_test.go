package testlog

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// Many write at once while others read: no line is lost or cut.
func TestLogIsReadWhileItIsWritten(t *testing.T) {
	const writers, lines = 8, 200
	var log Log
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range lines {
				fmt.Fprintf(&log, "writer=%d line=%d.\n", w, i)
				if n := log.Count(fmt.Sprintf("writer=%d ", w)); n != i+1 {
					t.Errorf("writer %d reads %d of its lines, and has written %d", w, n, i+1)
					return
				}
			}
		})
	}
	all.Wait()
	if text := log.String(); strings.Count(text, "\n") != writers*lines || !strings.HasSuffix(text, ".\n") {
		t.Errorf("%d lines, want %d", strings.Count(text, "\n"), writers*lines)
	}
	if n := log.Count("writer=3 ", "line=7."); n != 1 {
		t.Errorf("%d lines have both texts, want 1", n)
	}
}

func TestLogger(t *testing.T) {
	var log Log
	logger := log.Logger()
	logger.Debug("left out")
	logger.Info("first", "n", 1)
	logger.Warn("second")
	if text := log.String(); strings.Contains(text, "left out") || log.Count("level=INFO", "msg=first", "n=1") != 1 || log.Count("level=WARN", "second") != 1 {
		t.Errorf("the log is %q", text)
	}
	if log.Count("msg=first", "second") != 0 {
		t.Error("texts of two lines are found in one")
	}
}

// It is the output of a process, too.
var _ io.Writer = (*Log)(nil)
