package streams_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
)

// A changelog that the broker has really compacted, tombstones among it, gives the same store, in batches
// and in runs: what was deleted is not there.
func TestRestoreOfACompactedChangelog(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the broker's cleaner, which looks every 15 s")
	}
	t.Parallel()
	b := testbroker.Real(t)
	e := newEnv(t, b, clients[0])
	changelog := kafka.NewTopic{Name: e.app + "-seen-changelog", Partitions: 2, Replication: 1, Configs: map[string]string{
		"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "max.compaction.lag.ms": "1000",
		"message.timestamp.type": "CreateTime"}}
	must(t, e.admin.CreateTopics(e.ctx(), changelog))
	keys := make(chan []string, 1)
	topology := e.seenKeys(keys)
	run := func(large int, values ...string) []string {
		t.Helper()
		cfg := e.config()
		cfg.Limits.ShortRestore, cfg.Limits.LargeRestore = 1, large
		app := e.start(topology, cfg)
		var records []kafka.Record
		for _, v := range append(values, "list") {
			records = append(records, kafka.Record{Topic: e.in, Timestamp: time.Now().UnixMilli(), Value: []byte(v)})
		}
		e.produceRecords(records...)
		app.catchUp()
		app.close()
		return <-keys
	}
	const n = 500
	var want []string
	for round := range 3 { // each in segments of its own
		want = want[:0]
		var puts, deletes []string
		for i := range n {
			key := fmt.Sprintf("key-%03d", i)
			puts = append(puts, "put "+key)
			if (i+round)%3 == 0 {
				deletes = append(deletes, "delete "+key)
			} else {
				want = append(want, key)
			}
		}
		run(1, puts...)
		run(1, deletes...)
		<-time.After(200 * time.Millisecond) // the next record rolls the segment
	}
	before := 3 * n // and the deletions
	kafkatest.Eventually(t, 90*time.Second, "compaction", func() bool { return len(e.read(changelog.Name)) < before })
	for name, large := range map[string]int{"batches": 1_000_000, "runs": 1} {
		dirs, err := filepath.Glob(filepath.Join(e.dir, e.app, "*_*"))
		must(t, err)
		for _, dir := range dirs {
			must(t, os.RemoveAll(dir))
		}
		if got := run(large); !slices.Equal(got, want) {
			t.Errorf("restored in %s: %d keys, want %d\n%v\n%v", name, len(got), len(want), got, want)
		}
	}
}
