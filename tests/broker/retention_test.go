package broker

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// The broker keeps offsets for a minute. An application that lives and has nothing to do keeps its
// offsets all the same, which those of another live group that commits once are not (of topics that no member subscribes to); the offsets of one that was stopped are gone, and it says so, and goes on from
// its stores if it is told to.
func TestOffsetsExpire(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for more than a minute")
	}
	n := start(t, "offsets.retention.minutes=1", "offsets.retention.check.interval.ms=1000")
	cl, adm := admin(t, n.addr)
	idle, stopped := newApp(t, n.addr, clients[0], streams.ExactlyOnce), newApp(t, n.addr, clients[0], streams.ExactlyOnce)
	want := map[string]int64{}
	for _, a := range []*app{idle, stopped} {
		a.createTopics()
		a.run(a.config())
		clear(want)
		if err := cl.ProduceSync(bounded(t), a.lines(100, want)...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		a.catchUp()
	}
	if err := stopped.Close(bounded(t)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	live := idle.id + "-once"
	commitOnce(t, n.addr, live, idle.out, idle.in)
	until(t, "the offsets of the stopped application are gone", func() string {
		got, err := adm.FetchOffsets(bounded(t), stopped.id)
		if err != nil {
			return err.Error()
		}
		if left := len(got.Offsets().Sorted()); left > 0 {
			return "some are left"
		}
		return ""
	})
	if took := time.Since(began); took < 30*time.Second {
		t.Fatalf("they were gone after %v", took)
	}
	until(t, "the offsets of the group that committed once are gone", func() string {
		got, err := adm.FetchOffsets(bounded(t), live)
		if err != nil {
			return err.Error()
		}
		if _, ok := got.Lookup(idle.in, 0); ok {
			return "they are there"
		}
		return ""
	})
	groups, err := adm.DescribeGroups(bounded(t), live)
	if err != nil || groups[live].State != "Stable" {
		t.Fatalf("that group is %s, %v", groups[live].State, err)
	}
	if err := cl.ProduceSync(bounded(t), idle.lines(100, want)...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := idle.Close(bounded(t)); err != nil {
		t.Fatal(err)
	}
	idle.run(idle.config()) // it finds its offsets
	idle.catchUp()
	if err := idle.Close(bounded(t)); err != nil {
		t.Error(err)
	}
	idle.checkCounts(want)

	stopped.run(stopped.config())
	stopped.lost(task.ErrOffsetsLost)
	cfg := stopped.config()
	cfg.OnConflict = streams.UseStore
	stopped.run(cfg)
	if err := cl.ProduceSync(bounded(t), stopped.lines(100, map[string]int64{})...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	stopped.catchUp()
	if err := stopped.Close(bounded(t)); err != nil {
		t.Error(err)
	}
	stopped.checkCounts(want)
}

// commitOnce keeps a member in a group that consumes one topic, and commits an offset of another one for it.
func commitOnce(t *testing.T, addr, group, topic, of string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.CloseAllowingRebalance)
	until(t, "a member has committed", func() (missing string) {
		cl.CommitOffsetsSync(bounded(t), map[string]map[int32]kgo.EpochOffset{of: {0: {Epoch: -1, Offset: 7}}},
			func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
				switch {
				case err != nil:
					missing = err.Error()
				case len(resp.Topics) == 0:
					missing = "nothing was committed"
				default:
					if err := kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode); err != nil {
						missing = err.Error()
					}
				}
			})
		if id, _ := cl.GroupMetadata(); id == "" {
			missing = "it has not joined"
		}
		return missing
	})
}
