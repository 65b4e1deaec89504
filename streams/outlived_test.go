package streams_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testlog"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// Records that are older than a window store's changelog keeps are told once; new ones, and those of other stores, are not.
func TestRecordsOlderThanTheChangelogKeeps(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"old": true, "new": false} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, testbroker.Kfake(t), clients[0])
			window, plain := processor.Window("window", serde.String, serde.Int64, time.Second, time.Hour), processor.KeyValue("plain", serde.String, serde.Int64)
			top := processor.NewTopology()
			processor.AddSource(top, "in", serde.String, serde.String, e.in)
			processor.AddProcessor(top, "keep", each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
				if err := plain.In(ctx).Put(r.Key, 1); err != nil {
					return err
				}
				return window.In(ctx).Put(r.Key, 1, r.Timestamp)
			}), []string{"in"}, window, plain)
			log := &testlog.Log{}
			cfg := e.config()
			cfg.Logger = log.Logger()
			app := e.start(top, cfg)
			at := time.Now()
			if old {
				at = at.Add(-26 * time.Hour)
			}
			for range 3 {
				e.produceRecords(kafka.Record{Topic: e.in, Timestamp: at.UnixMilli(), Key: []byte("k"), Value: []byte("v")})
				app.catchUp()
			}
			app.close()
			told := strings.Count(log.String(), "older than the store's changelog keeps")
			if old && (told != 1 || !strings.Contains(log.String(), "store=window")) || !old && told != 0 {
				t.Errorf("told %d times:\n%s", told, log.String())
			}
		})
	}
}
