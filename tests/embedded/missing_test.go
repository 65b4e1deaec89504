package embedded

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
)

// logBuffer is a log that is read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) count(texts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			n++
		}
	}
	return n
}

// A topic that does not exist, because its name is misspelt, is told of by its name, once; so is one that only the
// configuration names. When it is there nothing is told, and the loop works.
func TestMissingInputIsTold(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		for name, configured := range map[string]bool{"subscribed": false, "configured": true} {
			w.t.Run(name, func(t *testing.T) {
				w := *w
				w.t = t
				log := &logBuffer{}
				cfg := w.config(t.TempDir(), embedded.AtLeastOnce)
				cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
				missing, topics := w.in+"-misspelt-"+name, []string{w.in}
				if configured {
					cfg.Topics = []string{w.in, missing}
				} else {
					topics = append(topics, missing)
				}
				l, err := w.open(w.b.Addrs, w.app+"-"+name, topics, cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer w.close(l)
				// It needs no poll, which would wait in the callback where restores are waited for.
				eventually(t, 30*time.Second, "the missing topic is told", func() bool { return log.count("level=WARN", "topic="+missing+" ", "misspelt?") > 0 })
				if n := log.count("misspelt?"); n != 1 {
					t.Errorf("told %d times", n)
				}
			})
		}
	})
}
