//go:build cgo

package confluent

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
)

// fill writes n records to each partition of a new topic, through a producer of the package.
func fill(t *testing.T, b kafkatest.Broker, partitions int32, n int) string {
	t.Helper()
	topic := b.CreateTopic(t, "topic", partitions, nil)
	p, err := Client{}.NewProducer(b.Settings(), kafka.ProducerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var records []kafka.Record
	for i := range n {
		for part := range partitions {
			records = append(records, kafka.Record{Topic: topic, Partition: part, Timestamp: int64(i + 1), Value: []byte("v")})
		}
	}
	err = p.Send(within(t, 20*time.Second), records, func(d kafka.Delivery) {
		if d.Err != nil {
			t.Error(d.Err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, p)
	return topic
}

func newConsumer(t *testing.T, b kafkatest.Broker) *consumer {
	t.Helper()
	c, err := Client{}.NewConsumer(b.Settings(), kafka.ConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, c) })
	return c.(*consumer)
}

// pollUntil polls until done, which sees each poll.
func pollUntil(t *testing.T, c kafka.Consumer, done func(*kafka.Poll) bool) {
	t.Helper()
	ctx := within(t, 20*time.Second)
	var p kafka.Poll
	for {
		if err := c.Poll(ctx, &p); err != nil {
			t.Fatal(err)
		}
		if done(&p) {
			return
		}
		if ctx.Err() != nil {
			t.Fatal("the polls did not bring what was expected")
		}
	}
}

// librdkafka loses the start offset of a partition that is paused before its first fetch,
// and keeps a partition paused that was unassigned meanwhile.
func TestPauseRightAfterAssign(t *testing.T) {
	t.Parallel()
	b := kafkatest.Embedded(t)
	topic := fill(t, b, 1, 10)
	tp := kafka.TopicPartition{Topic: topic}
	c := newConsumer(t, b)
	ctx := within(t, 20*time.Second)
	first := func(want int64) {
		t.Helper()
		pollUntil(t, c, func(p *kafka.Poll) bool {
			for _, f := range p.Partitions {
				if len(f.Records) > 0 {
					if got := f.Records[0].Offset; got != want {
						t.Fatalf("the first record has offset %d, want %d", got, want)
					}
					return true
				}
			}
			return false
		})
	}
	for range 5 {
		if err := c.Assign(ctx, map[kafka.TopicPartition]int64{tp: 3}); err != nil {
			t.Fatal(err)
		}
		c.Pause(tp)
		c.Resume(tp)
		first(3)
		c.Pause(tp)
		if err := c.Unassign(tp); err != nil {
			t.Fatal(err)
		}
		if err := c.Assign(ctx, map[kafka.TopicPartition]int64{tp: 5}); err != nil {
			t.Fatal(err)
		}
		first(5)
		if err := c.Unassign(tp); err != nil {
			t.Fatal(err)
		}
	}
}

// The binding does not say which partition an error is about.
func TestErrorsFindTheirPartition(t *testing.T) {
	t.Parallel()
	b := kafkatest.Embedded(t)
	topic := fill(t, b, 3, 10)
	at := func(p int32) kafka.TopicPartition { return kafka.TopicPartition{Topic: topic, Partition: p} }
	unknown, beyond := kafka.TopicPartition{Topic: "unknown"}, at(7)
	c := newConsumer(t, b)
	from := map[kafka.TopicPartition]int64{at(0): 0, at(1): 99, at(2): 10, unknown: 0, beyond: 0}
	if err := c.Assign(within(t, 20*time.Second), from); err != nil {
		t.Fatal(err)
	}
	errs, next := map[kafka.TopicPartition]error{}, map[kafka.TopicPartition]int64{}
	pollUntil(t, c, func(p *kafka.Poll) bool {
		for _, f := range p.Partitions {
			if f.Err != nil && errs[f.TopicPartition] != nil {
				t.Errorf("%s has a second error: %v", f.TopicPartition, f.Err)
			}
			if f.Err != nil {
				errs[f.TopicPartition] = f.Err
			}
			next[f.TopicPartition] = f.Next
		}
		return len(errs) >= 3 && next[at(0)] == 10
	})
	for tp, class := range map[kafka.TopicPartition]kafka.ErrorClass{at(1): kafka.ClassOffsetOutOfRange, unknown: kafka.ClassUnknownTopic, beyond: kafka.ClassUnknownTopic} {
		if !kafka.IsClass(errs[tp], class) || !strings.Contains(errs[tp].Error(), tp.String()) {
			t.Errorf("%s: %v, want class %s", tp, errs[tp], class)
		}
	}
	if len(errs) != 3 {
		t.Errorf("errors of %v", errs)
	}
	if text := errs[at(1)].Error(); !strings.Contains(text, "offset 99") || !strings.Contains(text, "from 0 to 10") {
		t.Errorf("the error does not say where the log is: %s", text)
	}
}

// An error event whose reason is gone by the time it is looked into must not leave a
// partition that librdkafka has stopped to fetch.
func TestConsumerGoesOnAfterAnErrorThatPassed(t *testing.T) {
	t.Parallel()
	b := kafkatest.Embedded(t)
	topic := fill(t, b, 2, 10)
	fault := b.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.OffsetOutOfRange, Count: 2})
	defer fault.Remove()
	c := newConsumer(t, b)
	from := map[kafka.TopicPartition]int64{{Topic: topic}: 2, {Topic: topic, Partition: 1}: 4}
	if err := c.Assign(within(t, 20*time.Second), from); err != nil {
		t.Fatal(err)
	}
	got, next := 0, map[kafka.TopicPartition]int64{}
	pollUntil(t, c, func(p *kafka.Poll) bool {
		for _, f := range p.Partitions {
			if f.Err != nil {
				t.Fatalf("%s: %v", f.TopicPartition, f.Err)
			}
			got += len(f.Records)
			next[f.TopicPartition] = f.Next
		}
		return next[kafka.TopicPartition{Topic: topic}] == 10 && next[kafka.TopicPartition{Topic: topic, Partition: 1}] == 10
	})
	if got != 8+6 {
		t.Errorf("%d records, want 14", got)
	}
	if fault.Hits() == 0 {
		t.Error("no fetch failed: the test shows nothing")
	}
}

func TestNothingIsCreatedByTheWay(t *testing.T) {
	t.Parallel()
	b := kafkatest.Embedded(t, kfake.AllowAutoTopicCreation())
	p, err := Client{}.NewProducer(b.Settings(), kafka.ProducerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	report := make(chan error, 1)
	if err := p.Send(within(t, 20*time.Second), []kafka.Record{{Topic: "produced", Timestamp: 1}}, func(d kafka.Delivery) { report <- d.Err }); err != nil {
		t.Fatal(err)
	}
	c := newConsumer(t, b)
	if err := c.Assign(within(t, 20*time.Second), map[kafka.TopicPartition]int64{{Topic: "consumed"}: 0}); err != nil {
		t.Fatal(err)
	}
	pollUntil(t, c, func(p *kafka.Poll) bool { return len(p.Partitions) > 0 && p.Partitions[0].Err != nil })
	if err := <-report; !kafka.IsClass(err, kafka.ClassUnknownTopic) {
		t.Errorf("the record for a missing topic: %v", err)
	}
	closed(t, p)
	for _, topic := range []string{"produced", "consumed"} {
		if b.Cluster.TopicInfo(topic) != nil {
			t.Errorf("topic %s was created", topic)
		}
	}
}
