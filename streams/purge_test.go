package streams_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/streams"
)

// What was read of a repartition topic is deleted from it, and what stays after a crash or a lost
// disk is enough.
func TestRepartitionTopicIsPurged(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		cfg := e.config()
		cfg.Limits.PurgeInterval, cfg.Store.SyncInterval = 50*time.Millisecond, 10*time.Millisecond
		between := e.app + "-counts-repartition"
		tps := []kafka.TopicPartition{{Topic: between}, {Topic: between, Partition: 1}}
		want := map[string]int64{}
		for range 3 {
			in, counts := lines(200)
			for w, n := range counts {
				want[w] += n
			}
			app := e.start(e.wordCount(), cfg)
			e.produce(in...)
			app.catchUp()
			ends, err := e.admin.ListOffsets(e.ctx(), kafka.HighWatermark, tps...)
			if err != nil {
				t.Fatal(err)
			}
			kafkatest.Eventually(t, 90*time.Second, "the repartition topic is empty", func() bool {
				starts, err := e.admin.ListOffsets(e.ctx(), kafka.Earliest, tps...)
				if err != nil {
					t.Fatal(err)
				}
				return starts[tps[0]] >= ends[tps[0]] && starts[tps[1]] >= ends[tps[1]]
			})
			app.close()
			dirs, err := filepath.Glob(filepath.Join(e.dir, e.app, "*_*"))
			if err != nil || len(dirs) == 0 {
				t.Fatalf("%d task directories, %v", len(dirs), err)
			}
			for _, dir := range dirs {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
		}
		e.checkCounts(streams.ExactlyOnce, want)
	})
}
