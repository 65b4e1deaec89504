package embedded

import (
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/internal/testlog"
)

// A topic that does not exist, because its name is misspelt, is told of by its name, once; so is one that only the
// configuration names. When it is there nothing is told, and the loop works.
func TestMissingInputIsTold(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		for name, configured := range map[string]bool{"subscribed": false, "configured": true} {
			w.t.Run(name, func(t *testing.T) {
				w := *w
				w.t = t
				log := &testlog.Log{}
				cfg := w.config(t.TempDir(), embedded.AtLeastOnce)
				cfg.Logger = log.Logger()
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
				eventually(t, 90*time.Second, "the missing topic is told", func() bool { return log.Count("level=WARN", "topic="+missing+" ", "misspelt?") > 0 })
				if n := log.Count("misspelt?"); n != 1 {
					t.Errorf("told %d times", n)
				}
			})
		}
	})
}
