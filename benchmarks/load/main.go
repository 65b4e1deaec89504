// Command load fills a topic with records for the other benchmarks: keys "key-%010d", drawn
// uniformly and reproducibly, and values of random bytes.
//
//	load -brokers 127.0.0.1:9092 -topic words -partitions 4 -records 2000000 -keys 1000000 -value-bytes 100
//
// The topic is created; loading into an existing one needs -append. The partition of a key is
// the one that Kafka's Java client chooses.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type options struct {
	brokers, topic string
	partitions     int
	replication    int
	records, keys  int64
	valueBytes     int
	seed           uint64
	add            bool
}

func main() {
	var o options
	flag.StringVar(&o.brokers, "brokers", "", "host:port of the brokers, split by commas")
	flag.StringVar(&o.topic, "topic", "", "topic to create and fill")
	flag.IntVar(&o.partitions, "partitions", 4, "partitions of the topic")
	flag.IntVar(&o.replication, "replication", -1, "replication factor of the topic (-1: the broker's default)")
	flag.Int64Var(&o.records, "records", 2_000_000, "records to write")
	flag.Int64Var(&o.keys, "keys", 1_000_000, "number of keys to draw from")
	flag.IntVar(&o.valueBytes, "value-bytes", 100, "length of a value")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of keys and values: the same gives the same records")
	flag.BoolVar(&o.add, "append", false, "write to a topic that exists already")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func (o options) validate() error {
	switch {
	case o.brokers == "" || o.topic == "":
		return errors.New("-brokers and -topic are needed")
	case o.partitions < 1 || o.records < 0 || o.keys < 1 || o.valueBytes < 0:
		return errors.New("-partitions and -keys must be at least 1, -records and -value-bytes at least 0")
	}
	return nil
}

func run(ctx context.Context, o options) error {
	if err := o.validate(); err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(o.brokers, ",")...), kgo.DefaultProduceTopic(o.topic),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.ProducerLinger(20*time.Millisecond),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(200_000), kgo.DisableClientMetrics(), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return fmt.Errorf("open client: %w", err)
	}
	defer cl.Close()
	if err := create(ctx, cl, o); err != nil {
		return err
	}
	begin := time.Now()
	if err := produce(ctx, cl, o); err != nil {
		return err
	}
	seconds := time.Since(begin).Seconds()
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"topic": o.topic, "records": o.records, "keys": o.keys, "seed": o.seed, "seconds": seconds})
}

func create(ctx context.Context, cl *kgo.Client, o options) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	adm := kadm.NewClient(cl)
	_, err := adm.CreateTopic(ctx, int32(o.partitions), int16(o.replication), nil, o.topic)
	if !errors.Is(err, kerr.TopicAlreadyExists) {
		if err != nil {
			return fmt.Errorf("create topic %s: %w", o.topic, err)
		}
		return nil
	}
	if !o.add {
		return fmt.Errorf("topic %s exists already: choose another name, or add to it with -append", o.topic)
	}
	topics, err := adm.ListTopics(ctx, o.topic)
	if err != nil {
		return fmt.Errorf("look up topic %s: %w", o.topic, err)
	}
	if n := len(topics[o.topic].Partitions); n != o.partitions {
		return fmt.Errorf("topic %s has %d partitions, not %d", o.topic, n, o.partitions)
	}
	return nil
}

func produce(ctx context.Context, cl *kgo.Client, o options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var once sync.Once
	promise := func(r *kgo.Record, err error) {
		if err != nil {
			once.Do(func() { cancel(fmt.Errorf("write to %s-%d: %w", o.topic, r.Partition, err)) })
		}
	}
	rng := rand.New(rand.NewPCG(o.seed, o.seed))
	for i := int64(0); i < o.records && ctx.Err() == nil; i++ {
		value := make([]byte, o.valueBytes)
		fill(rng, value)
		cl.Produce(ctx, &kgo.Record{Key: fmt.Appendf(nil, "key-%010d", rng.Int64N(o.keys)), Value: value}, promise)
	}
	if err := cl.Flush(ctx); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return context.Cause(ctx)
}

func fill(rng *rand.Rand, b []byte) {
	for len(b) > 0 {
		x := rng.Uint64()
		for i := 0; i < 8 && len(b) > 0; i++ {
			b[0], b = byte(x), b[1:]
			x >>= 8
		}
	}
}
