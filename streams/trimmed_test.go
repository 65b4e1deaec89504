package streams_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
)

// A key is deleted while another disk has the store. Then the front of the changelog goes, with the tombstone, and the
// old disk comes back: its offset lies before all that is left. Read over what is there, the changelog would leave the
// deleted key in the store for ever.
func TestOldDiskBehindATrimmedChangelog(t *testing.T) {
	t.Parallel()
	b := testbroker.Kfake(t)
	for _, c := range clients {
		for _, g := range guaranteesFor(t, c) {
			t.Run(c.Name()+"/"+g.String(), func(t *testing.T) {
				t.Parallel()
				e := newEnv(t, b, c)
				keys := make(chan []string, 1)
				topology, changelog := e.seenKeys(keys), e.app+"-seen-changelog"
				old := filepath.Join(t.TempDir(), "old")
				// run processes these, and gives the keys that the store has then.
				run := func(values ...string) (listed []string, app *running) {
					t.Helper()
					cfg := e.config()
					cfg.Guarantee = g
					app = e.start(topology, cfg)
					var records []kafka.Record
					for _, v := range append(values, "list") {
						records = append(records, kafka.Record{Topic: e.in, Timestamp: time.Now().UnixMilli(), Value: []byte(v)})
					}
					e.produceRecords(records...)
					app.catchUp()
					return <-keys, app
				}
				_, app := run("put a", "put b")
				app.close()
				must(t, os.CopyFS(old, os.DirFS(e.state())))
				e.loseDisk()
				_, app = run("delete a")
				app.close()
				_, app = run("put b", "put c", "put d")
				app.close()

				e.trim(changelog, e.tombstone(changelog)+1)
				e.loseDisk()
				dirs, err := filepath.Glob(filepath.Join(old, "0_*"))
				must(t, err)
				for _, dir := range dirs {
					must(t, os.CopyFS(filepath.Join(e.state(), filepath.Base(dir)), os.DirFS(dir)))
				}
				got, app := run()
				if want := []string{"b", "c", "d"}; !slices.Equal(got, want) {
					t.Errorf("keys %v, want %v", got, want)
				}
				if repairs := app.repairs(); len(repairs) != 1 || !strings.Contains(repairs[0].Reason, "does not fit") {
					t.Errorf("repairs %+v", repairs)
				}
				app.close()
				e.loseDisk() // and so says the changelog
				got, app = run()
				if want := []string{"b", "c", "d"}; !slices.Equal(got, want) {
					t.Errorf("keys %v, want %v, without the disk", got, want)
				}
				app.close()
			})
		}
	}
}

// tombstone gives the offset of the one tombstone in partition 0 of a topic.
func (e *env) tombstone(topic string) int64 {
	e.t.Helper()
	var found []int64
	for _, r := range e.read(topic) {
		if r.Partition == 0 && r.Value == nil {
			found = append(found, r.Offset)
		}
	}
	if len(found) != 1 {
		e.t.Fatalf("tombstones at %v", found)
	}
	return found[0]
}

// trim deletes what is before an offset of partition 0 of a compacted topic.
func (e *env) trim(topic string, to int64) {
	e.t.Helper()
	tp := kafka.TopicPartition{Topic: topic}
	e.setPolicy(topic, "compact,delete") // of a compacted topic Kafka deletes nothing
	kafkatest.Eventually(e.t, 90*time.Second, "the front of the changelog is gone", func() bool {
		_ = e.admin.DeleteRecords(e.ctx(), map[kafka.TopicPartition]int64{tp: to}) // once the broker has heard of the policy
		from, err := e.admin.ListOffsets(e.ctx(), kafka.Earliest, tp)
		must(e.t, err)
		return from[tp] == to
	})
	e.setPolicy(topic, "compact")
}
