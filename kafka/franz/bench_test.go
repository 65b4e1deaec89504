package franz_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
)

// Allocations per record are what to look at: both directions must stay far below one.

const benchBatch = 5000

func benchRecords(topic string) []kafka.Record {
	records := make([]kafka.Record, benchBatch)
	value := make([]byte, 100)
	for i := range records {
		records[i] = kafka.Record{Topic: topic, Partition: int32(i % 4), Timestamp: 1_700_000_000_000, Key: fmt.Appendf(nil, "key-%010d", i), Value: value}
	}
	return records
}

func BenchmarkSend(b *testing.B) {
	broker := testbroker.Kfake(b)
	topic := broker.CreateTopic(b, "bench", 4, nil)
	p, err := franz.Client{}.NewProducer(broker.Settings(), kafka.ProducerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	records := benchRecords(topic)
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += benchBatch {
		if err := p.Send(ctx, records, func(d kafka.Delivery) {
			if d.Err != nil {
				b.Error(d.Err)
			}
		}); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Close(ctx); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSendBare is franz-go by hand, for comparison.
func BenchmarkSendBare(b *testing.B) {
	broker := testbroker.Kfake(b)
	topic := broker.CreateTopic(b, "bench", 4, nil)
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(5*time.Millisecond),
		kgo.MaxBufferedRecords(100_000), kgo.DisableClientMetrics(), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		b.Fatal(err)
	}
	records := benchRecords(topic)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += benchBatch {
		rs := make([]kgo.Record, benchBatch)
		for i, r := range records {
			rs[i] = kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp)}
			cl.Produce(context.Background(), &rs[i], func(_ *kgo.Record, err error) {
				if err != nil {
					b.Error(err)
				}
			})
		}
	}
	if err := cl.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	cl.Close()
}

func fill(b *testing.B, broker testbroker.Broker) string {
	topic := broker.CreateTopic(b, "bench", 4, nil)
	p, err := franz.Client{}.NewProducer(broker.Settings(), kafka.ProducerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	records := benchRecords(topic)
	for n := 0; n < b.N+benchBatch; n += benchBatch {
		if err := p.Send(context.Background(), records, nil); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	return topic
}

func BenchmarkPoll(b *testing.B) {
	broker := testbroker.Kfake(b)
	topic := fill(b, broker)
	c, err := franz.Client{}.NewConsumer(broker.Settings(), kafka.ConsumerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	from := map[kafka.TopicPartition]int64{}
	for p := range int32(4) {
		from[kafka.TopicPartition{Topic: topic, Partition: p}] = 0
	}
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	if err := c.Assign(ctx, from); err != nil {
		b.Fatal(err)
	}
	var poll kafka.Poll
	for n := 0; n < b.N; {
		if err := c.Poll(ctx, &poll); err != nil {
			b.Fatal(err)
		}
		for i := range poll.Partitions {
			n += len(poll.Partitions[i].Records)
		}
	}
	b.StopTimer()
	if err := c.Close(ctx); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPollBare is franz-go by hand, for comparison.
func BenchmarkPollBare(b *testing.B) {
	broker := testbroker.Kfake(b)
	topic := fill(b, broker)
	b.ReportAllocs()
	b.ResetTimer()
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs...), kgo.DisableClientMetrics(), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxPartitionBytes(4<<20), kgo.FetchMaxBytes(32<<20), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		b.Fatal(err)
	}
	for n := 0; n < b.N; {
		n += cl.PollRecords(context.Background(), 10_000).NumRecords()
	}
	b.StopTimer()
	cl.Close()
}
