package broker

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/streams"
)

// What has passed a repartition topic does not stay on the brokers' disks, although its retention is
// unlimited: at most the segment that is being written does.
func TestRepartitionTopicFreesTheDisk(t *testing.T) {
	t.Parallel()
	n := start(t, "log.retention.check.interval.ms=500", "log.initial.task.delay.ms=500", "log.segment.delete.delay.ms=100")
	cl, adm := admin(t, n.addr)
	a := newApp(t, n.addr, clients[0], streams.ExactlyOnce)
	a.createTopics()
	cfg := a.config()
	cfg.Limits.PurgeInterval, cfg.Store.SyncInterval = 200*time.Millisecond, 50*time.Millisecond
	a.run(cfg)
	between := a.id + "-counts-repartition"
	const segment = 1 << 20
	until(t, "the repartition topic exists, with small segments", func() string {
		size := fmt.Sprint(segment)
		if _, err := adm.AlterTopicConfigs(bounded(t), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "segment.bytes", Value: &size}}, between); err != nil {
			return err.Error()
		}
		got, err := adm.DescribeTopicConfigs(bounded(t), between)
		if err != nil || len(got) != 1 {
			return fmt.Sprint(got, err)
		}
		for _, c := range got[0].Configs {
			if c.Key == "segment.bytes" && c.MaybeValue() == size {
				return ""
			}
		}
		return "not yet"
	})
	const records, size = 30_000, 1000
	want := map[string]int64{}
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 100)
	for i := range words {
		var w strings.Builder // it does not compress well
		for w.Len() < size {
			fmt.Fprintf(&w, "%016x", r.Uint64())
		}
		words[i] = w.String()
	}
	var batch []*kgo.Record
	for i := range records {
		w := words[r.IntN(len(words))]
		want[w]++
		batch = append(batch, &kgo.Record{Topic: a.in, Partition: int32(i % partitions), Value: []byte(w)})
	}
	if err := cl.ProduceSync(bounded(t), batch...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	a.catchUp()
	through := int64(0)
	ends, err := adm.ListEndOffsets(bounded(t), between)
	if err != nil {
		t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) { through += o.Offset })
	if through < records {
		t.Fatalf("%d records went through %s, want %d", through, between, records)
	}
	until(t, "the disk space of the repartition topic is free", func() string {
		used := n.bytes(between)
		if limit := int64(partitions * (segment + segment/4)); used > limit {
			return fmt.Sprintf("%d bytes are in use, of some %d that went through; at most %d may be", used, records*size, limit)
		}
		return ""
	})
	if err := a.Close(bounded(t)); err != nil {
		t.Error(err)
	}
	a.checkCounts(want)
}

// bytes is the size of a topic's segments on the broker's disk.
func (n *node) bytes(topic string) (sum int64) {
	n.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(n.dir, "data", topic+"-*"))
	if err != nil || len(dirs) != partitions {
		n.t.Fatalf("folders of %s: %v, %v", topic, dirs, err)
	}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // files go while it looks
			if err == nil && strings.HasSuffix(path, ".log") {
				if info, err := d.Info(); err == nil {
					sum += info.Size()
				}
			}
			return nil
		})
	}
	return sum
}
