package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// load makes the topics and fills the changelog, if it does not exist: keys of 14 bytes as those of the other benchmarks,
// values of random bytes, and the header that commits of 10,000 records each would have given them.
func load(ctx context.Context, o options) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(o.brokers, ",")...), kgo.DefaultProduceTopic(o.changelog()),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.ProducerLinger(20*time.Millisecond),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(200_000), kgo.DisableClientMetrics())
	if err != nil {
		return fmt.Errorf("open client: %w", err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	compact := "compact"
	if _, err := adm.CreateTopic(ctx, int32(o.partitions), -1, nil, o.input()); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", o.input(), err)
	}
	_, err = adm.CreateTopic(ctx, int32(o.partitions), -1, map[string]*string{"cleanup.policy": &compact}, o.changelog())
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create topic %s: %w", o.changelog(), err)
	}
	return produce(ctx, cl, o)
}

func produce(ctx context.Context, cl *kgo.Client, o options) error {
	var mu sync.Mutex
	var failed error
	promise := func(_ *kgo.Record, err error) {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			failed = err
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var header []byte
	for i := range o.records {
		if i%10_000 == 0 {
			header = task.ChangeHeader{Kind: task.ChangeCommit, ID: statestore.CommitID{Epoch: 1, Number: 1 + i/10_000}, Position: i}.Append(nil)
		}
		value := make([]byte, o.valueBytes, o.valueBytes+8)
		for j := 0; j < len(value); j += 8 {
			binary.LittleEndian.PutUint64(value[j:j+8:cap(value)], rng.Uint64())
		}
		cl.Produce(ctx, &kgo.Record{Key: fmt.Appendf(nil, "key-%010d", rng.Int64N(o.keys)), Value: value, Headers: []kgo.RecordHeader{{Key: task.HeaderKey, Value: header}}}, promise)
	}
	err := cl.Flush(ctx)
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(err, failed)
}
