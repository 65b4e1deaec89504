package streams_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/task"
)

// foreignLog has the changelog created again by somebody who writes many records of other keys into it, and some of keys
// that the store has: it is longer than the former one, so that the store's offset lies within it.
func (e *env) foreignLog(topic string, own map[string]int64) {
	e.t.Helper()
	e.remove(topic)
	kafkatest.Eventually(e.t, 90*time.Second, "the changelog can be created again", func() bool {
		return e.admin.CreateTopics(e.ctx(), kafka.NewTopic{Name: topic, Partitions: 2, Replication: 1, Configs: map[string]string{"cleanup.policy": "compact"}}) == nil
	})
	value, err := serde.Int64.Append(nil, 999_999)
	must(e.t, err)
	var records []kafka.Record
	for p := range int32(2) {
		for i := range 1500 {
			records = append(records, kafka.Record{Topic: topic, Partition: p, Timestamp: 1000, Key: fmt.Appendf(nil, "foreign%d", i%500), Value: value})
		}
		for key := range own {
			records = append(records, kafka.Record{Topic: topic, Partition: p, Timestamp: 1000, Key: []byte(key), Value: value})
		}
	}
	e.produceRecords(records...)
}

// A changelog that was created again and filled by another program is not mixed into the store, and not restored later: the
// store is the truth, and what the changelog holds beside it is deleted.
func TestChangelogFilledWithForeignRecords(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		for _, g := range guaranteesFor(t, e.client) {
			t.Run(g.String(), func(t *testing.T) {
				t.Parallel()
				e := newEnv(t, e.b, e.client)
				cfg := e.config()
				cfg.Guarantee, cfg.Workers = g, 2
				in, want := lines(200)
				topic := e.app + "-counts-changelog"
				run := func(repairs int) {
					t.Helper()
					if got := e.countOnce(cfg, in); len(got) != repairs {
						t.Errorf("%d repairs, want %d: %+v", len(got), repairs, got)
					}
				}
				run(0)
				e.foreignLog(topic, want)
				run(2) // one of each partition
				run(0)
				e.loseDisk()
				run(0)
				for w := range want {
					want[w] *= 4
				}
				last, _ := e.counts(e.out)
				if diff := cmp.Diff(want, last); diff != "" {
					t.Errorf("counts: -want +got\n%s", diff)
				}
				left := map[string]bool{}
				for _, r := range e.read(topic) {
					left[fmt.Sprint(r.Partition, string(r.Key))] = r.Value != nil
				}
				held := 0
				for _, alive := range left {
					if alive {
						held++
					}
				}
				if held != len(want) {
					t.Errorf("the changelog holds %d keys, want %d", held, len(want))
				}
			})
		}
	})
}

// Without the disk nobody takes the foreign records for the store's.
func TestForeignChangelogAndDiskLost(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		in, want := lines(20)
		e.produce(in...)
		app := e.start(e.wordCount(), e.config())
		app.catchUp()
		app.close()
		e.foreignLog(e.app+"-counts-changelog", want)
		e.loseDisk()
		e.start(e.wordCount(), e.config()).fails(task.ErrTopicChanged.Error(), "store counts", "host that had the task last")
	})
}
