package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// feeder writes input until it is stopped, whatever happens meanwhile.
type feeder struct {
	cl   *kgo.Client
	done chan struct{}
	over sync.WaitGroup

	mu  sync.Mutex
	end map[kafka.TopicPartition]int64 // behind what was acknowledged
	n   int64
	err error
}

// keys is how many there are; few, so that each is written again and again.
const keys = 300

func startFeeder(ctx context.Context, cl *kgo.Client, topic string, seed uint64, rate int) *feeder {
	f := &feeder{cl: cl, done: make(chan struct{}), end: map[kafka.TopicPartition]int64{}}
	f.over.Go(func() { f.run(ctx, topic, rand.New(rand.NewPCG(seed, 2)), max(rate/50, 1)) })
	return f
}

func (f *feeder) run(ctx context.Context, topic string, r *rand.Rand, each int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for at := int64(1); ; at++ {
		select {
		case <-tick.C:
		case <-f.done:
			return
		}
		var batch []*kgo.Record
		for range each {
			k := fmt.Appendf(nil, "k%d", r.IntN(keys))
			rec := &kgo.Record{Topic: topic, Partition: kafka.Partition(k, partitions), Key: k, Timestamp: time.UnixMilli(1_000_000 + 20*at + r.Int64N(200))}
			if r.IntN(8) > 0 { // a null value ends what is known of the key
				rec.Value = fmt.Appendf(nil, "%x", r.Uint64())
			}
			batch = append(batch, rec)
		}
		res := f.cl.ProduceSync(ctx, batch...) // idempotent, and tried until it is there
		f.mu.Lock()
		for _, x := range res {
			tp := kafka.TopicPartition{Topic: topic, Partition: x.Record.Partition}
			if x.Err != nil {
				f.err = errors.Join(f.err, fmt.Errorf("write input: %w", x.Err))
				continue
			}
			f.n++
			f.end[tp] = max(f.end[tp], x.Record.Offset+1)
		}
		failed := f.err != nil
		f.mu.Unlock()
		if failed {
			return
		}
	}
}

// ends gives the end of the input that is there.
func (f *feeder) ends() (map[kafka.TopicPartition]int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[kafka.TopicPartition]int64{}
	for tp, n := range f.end {
		out[tp] = n
	}
	return out, f.err
}

// someEnds gives the end of the input, once there is some.
func (f *feeder) someEnds(ctx context.Context) (map[kafka.TopicPartition]int64, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ends, err := f.ends(); err != nil || len(ends) > 0 {
			return ends, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("no input: %w", ctx.Err())
		}
	}
}

// stop ends it, once what it writes at the moment is there.
func (f *feeder) stop() {
	select {
	case <-f.done:
	default:
		close(f.done)
	}
	f.over.Wait()
}
