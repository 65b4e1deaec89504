package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// bareFranz reads the changelog to its last record.
func bareFranz(ctx context.Context, o options) (n int64, seconds float64, err error) {
	from := map[int32]kgo.Offset{}
	for p := range o.partitions {
		from[int32(p)] = kgo.NewOffset().AtStart()
	}
	begin := time.Now()
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(o.brokers, ",")...), kgo.DisableClientMetrics(), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(32<<20), kgo.FetchMaxPartitionBytes(4<<20), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o.changelog(): from}))
	if err != nil {
		return 0, 0, fmt.Errorf("open client: %w", err)
	}
	defer cl.Close()
	for n < o.records {
		fetches := cl.PollRecords(ctx, 10_000)
		if err := fetches.Err(); err != nil {
			return 0, 0, fmt.Errorf("poll: %w", err)
		}
		n += int64(fetches.NumRecords())
	}
	return n, time.Since(begin).Seconds(), nil
}
