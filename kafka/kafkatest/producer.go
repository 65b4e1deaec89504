package kafkatest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
)

var producerTests = []test{
	{"writes what it was given", false, writesRecords},
	{"a timestamp of 0 is kept or refused", false, zeroTimestamp},
	{"keeps the order within a partition", false, keepsOrder},
	{"reports the next offsets", false, reportsNext},
	{"nothing to send is reported too", false, sendsNothing},
	{"waits at the bound", true, waitsAtBound},
	{"a record too large fails, others do not", false, tooLarge},
	{"an unknown topic fails", false, sendUnknownTopic},
	{"repeats after a broken connection, without duplicates", true, producerRepeats},
	{"close reports what was not delivered", true, closeReports},
	{"an unauthorized topic fails", true, sendUnauthorized},
	{"closed", false, producerClosed},
}

// reports counts the reports of Sends.
type reports struct {
	mu   sync.Mutex
	sent int
	n    map[int]int
	errs map[int]error
	next map[kafka.TopicPartition]int64
}

func newReports() *reports {
	return &reports{n: map[int]int{}, errs: map[int]error{}, next: map[kafka.TopicPartition]int64{}}
}

// one gives the report function of one more Send.
func (r *reports) one() func(kafka.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	send := r.sent
	r.sent++
	return func(d kafka.Delivery) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.n[send]++
		if d.Err != nil {
			r.errs[send] = d.Err
			return
		}
		for _, po := range d.Next {
			r.next[po.TopicPartition] = max(r.next[po.TopicPartition], po.Offset)
		}
	}
}

// all tells whether every Send was reported; it fails the test if one was twice.
func (r *reports) all(t *testing.T) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for send, n := range r.n {
		if n != 1 {
			t.Fatalf("send %d was reported %d times (K3)", send, n)
		}
	}
	return len(r.n) == r.sent
}

func (r *reports) wait(t *testing.T) {
	t.Helper()
	Eventually(t, patience, "every send was reported (K3)", func() bool { return r.all(t) })
}

func (r *reports) err(send int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs[send]
}

// records makes records for partition 0 of a topic.
func records(topic string, values ...string) []kafka.Record {
	rs := make([]kafka.Record, len(values))
	for i, v := range values {
		rs[i] = kafka.Record{Topic: topic, Timestamp: 1_700_000_000_000 + int64(i), Value: []byte(v)}
	}
	return rs
}

func writesRecords(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "writes", 2, nil)
	p := s.producer(t, kafka.ProducerConfig{})
	r := newReports()
	noError(t, p.Send(s.ctx(t), []kafka.Record{
		{Topic: topic, Partition: 1, Timestamp: 1},
		{Topic: topic, Partition: 1, Timestamp: 7, Key: []byte{}, Value: []byte{}},
		{Topic: topic, Partition: 1, Timestamp: 1_700_000_000_123, Key: []byte("k"), Value: []byte("v"),
			Headers: []kafka.Header{{Key: "h", Value: []byte("x")}, {Key: "n"}, {Key: "e", Value: []byte{}}}},
	}, r.one()))
	r.wait(t)
	noError(t, r.err(0))
	got := s.readFrom(t, topic, 1)
	if len(got) != 3 {
		t.Fatalf("%d records arrived, want 3", len(got))
	}
	for i, want := range []int64{1, 7, 1_700_000_000_123} {
		if ts := got[i].Timestamp.UnixMilli(); ts != want {
			t.Errorf("record %d has timestamp %d, want %d", i, ts, want)
		}
	}
	if got[0].Key != nil || got[0].Value != nil {
		t.Errorf("nulls were written as key %v, value %v", got[0].Key, got[0].Value)
	}
	if got[1].Key == nil || got[1].Value == nil {
		t.Errorf("empties were written as key %v, value %v", got[1].Key, got[1].Value)
	}
	if string(got[2].Key) != "k" || string(got[2].Value) != "v" {
		t.Errorf("got %q: %q", got[2].Key, got[2].Value)
	}
	h := got[2].Headers
	if len(h) != 3 || h[0].Key != "h" || string(h[0].Value) != "x" || h[1].Value != nil || h[2].Value == nil {
		t.Errorf("headers were written as %v", h)
	}
	s.wantValues(t, topic) // partition 0 got nothing
}

// zeroTimestamp allows for a library to which 0 means the present: it may refuse the
// record, but not write another time.
func zeroTimestamp(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "zero", 1, nil)
	p := s.producer(t, kafka.ProducerConfig{})
	r := newReports()
	if err := p.Send(s.ctx(t), []kafka.Record{{Topic: topic, Timestamp: 0}}, r.one()); err != nil {
		wantClass(t, err, kafka.ClassInvalid)
		return
	}
	r.wait(t)
	noError(t, r.err(0))
	if got := s.read(t, topic); len(got) != 1 || got[0].Timestamp.UnixMilli() != 0 {
		t.Errorf("read %v", got)
	}
}

func keepsOrder(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "order", 1, nil)
	p := s.producer(t, kafka.ProducerConfig{})
	r := newReports()
	const sends, each = 200, 50
	for i := range sends {
		noError(t, p.Send(s.ctx(t), records(topic, numbers("v", i*each, (i+1)*each)...), r.one()))
	}
	r.wait(t)
	s.wantValues(t, topic, numbers("v", 0, sends*each)...)
}

func reportsNext(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "next", 3, nil)
	s.putTo(t, topic, 2, "a", "b", "c")
	p := s.producer(t, kafka.ProducerConfig{})
	var all []kafka.Record
	for i := range 30 {
		all = append(all, kafka.Record{Topic: topic, Partition: int32(i % 2 * 2), Timestamp: 1, Value: fmt.Append(nil, i)})
	}
	done := make(chan kafka.Delivery, 1)
	noError(t, p.Send(s.ctx(t), all, func(d kafka.Delivery) {
		d.Next = append([]kafka.PartitionOffset(nil), d.Next...) // valid only during the call
		done <- d
	}))
	select {
	case d := <-done:
		noError(t, d.Err)
		got := map[kafka.TopicPartition]int64{}
		for _, n := range d.Next {
			if _, twice := got[n.TopicPartition]; twice {
				t.Errorf("%s is reported twice", n.TopicPartition)
			}
			got[n.TopicPartition] = n.Offset
		}
		if len(got) != 2 || got[kafka.TopicPartition{Topic: topic}] != 15 || got[kafka.TopicPartition{Topic: topic, Partition: 2}] != 18 {
			t.Errorf("next offsets %v, want 15 of partition 0 and 18 of partition 2", got)
		}
	case <-s.ctx(t).Done():
		t.Fatal("no report")
	}
}

func sendsNothing(t *testing.T, s *suite) {
	p := s.producer(t, kafka.ProducerConfig{})
	r := newReports()
	noError(t, p.Send(s.ctx(t), nil, r.one()))
	r.wait(t)
	noError(t, r.err(0))
}

func waitsAtBound(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "full", 1, nil)
	p := s.producer(t, kafka.ProducerConfig{MaxBufferedRecords: 100})
	r := newReports()
	noError(t, p.Send(s.ctx(t), records(topic, "first"), r.one())) // connected, topic known
	r.wait(t)
	s.broker.Network.LoseAnswers()
	noError(t, p.Send(s.ctx(t), records(topic, numbers("a", 0, 100)...), r.one()))
	err := bounded(t, 300*time.Millisecond, func(ctx context.Context) error {
		return p.Send(ctx, records(topic, numbers("b", 0, 100)...), func(kafka.Delivery) {
			t.Error("a send that returned an error was reported")
		})
	})
	wantClass(t, err, kafka.ClassTimeout)
	s.broker.Network.Heal()
	r.wait(t)
	noError(t, p.Send(s.ctx(t), records(topic, numbers("c", 0, 100)...), r.one()))
	r.wait(t)
	for i := range 3 {
		noError(t, r.err(i))
	}
	s.wantValues(t, topic, append(append([]string{"first"}, numbers("a", 0, 100)...), numbers("c", 0, 100)...)...)

	// one Send may be larger than the bound: it waits for itself, not for ever
	noError(t, p.Send(s.ctx(t), records(topic, numbers("d", 0, 1000)...), r.one()))
	r.wait(t)
	noError(t, r.err(3))
}

func tooLarge(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "large", 1, map[string]string{"max.message.bytes": "10000"})
	p := s.producer(t, kafka.ProducerConfig{})
	r := newReports()
	noError(t, p.Send(s.ctx(t), records(topic, "before"), r.one()))
	r.wait(t)
	noError(t, r.err(0))
	big := records(topic, strings.Repeat("x", 20_000))
	err := p.Send(s.ctx(t), big, r.one())
	if err == nil {
		r.wait(t)
		err = r.err(1)
	}
	wantClass(t, err, kafka.ClassTooLarge)
	if !strings.Contains(err.Error(), topic+"-0") {
		t.Errorf("the error does not name the partition: %v", err)
	}
	after := newReports()
	noError(t, p.Send(s.ctx(t), records(topic, "after"), after.one()))
	after.wait(t)
	noError(t, after.err(0))
	s.wantValues(t, topic, "before", "after")
}

func sendUnknownTopic(t *testing.T, s *suite) {
	p := s.producer(t, kafka.ProducerConfig{DeliveryTimeout: 5 * time.Second})
	topic := s.broker.Name(t, "unknown")
	r := newReports()
	noError(t, p.Send(s.ctx(t), records(topic, "v"), r.one()))
	r.wait(t)
	wantClass(t, r.err(0), kafka.ClassUnknownTopic)
	if !strings.Contains(r.err(0).Error(), topic) {
		t.Errorf("the error does not name the topic: %v", r.err(0))
	}
	known := s.broker.CreateTopic(t, "known", 1, nil)
	noError(t, p.Send(s.ctx(t), []kafka.Record{{Topic: known, Partition: 9, Timestamp: 1}}, r.one()))
	r.wait(t)
	wantClass(t, r.err(1), kafka.ClassUnknownTopic)
}

func producerRepeats(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "repeat", 1, nil)
	p := s.producer(t, kafka.ProducerConfig{})
	r := newReports()
	noError(t, p.Send(s.ctx(t), records(topic, numbers("v", 0, 100)...), r.one()))
	r.wait(t)
	// the broker writes the next ones and its answers are lost: they are sent again
	s.broker.Network.LoseAnswers()
	noError(t, p.Send(s.ctx(t), records(topic, numbers("v", 100, 200)...), r.one()))
	Eventually(t, patience, "the broker has written the records", func() bool {
		return s.broker.Cluster.PartitionInfo(topic, 0).HighWatermark == 200
	})
	s.broker.Network.Heal()
	noError(t, p.Send(s.ctx(t), records(topic, numbers("v", 200, 300)...), r.one()))
	r.wait(t)
	for i := range 3 {
		noError(t, r.err(i))
	}
	s.wantValues(t, topic, numbers("v", 0, 300)...)
}

func closeReports(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "closing", 1, nil)
	p := s.producer(t, kafka.ProducerConfig{})
	r := newReports()
	noError(t, p.Send(s.ctx(t), records(topic, "first"), r.one()))
	r.wait(t)
	s.broker.Network.LoseAnswers()
	for i := range 10 {
		noError(t, p.Send(s.ctx(t), records(topic, numbers("v", i*10, i*10+10)...), r.one()))
	}
	_ = bounded(t, time.Second, p.Close)
	r.wait(t)
	s.broker.Network.Heal()
	for i := 1; i <= 10; i++ {
		wantClass(t, r.err(i), kafka.ClassClosed, kafka.ClassTimeout, kafka.ClassUnreachable)
	}
}

func sendUnauthorized(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "forbidden", 1, nil)
	fault := s.broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.TopicAuthorizationFailed, Count: -1})
	defer fault.Remove()
	p := s.producer(t, kafka.ProducerConfig{})
	r := newReports()
	noError(t, p.Send(s.ctx(t), records(topic, "v"), r.one()))
	r.wait(t)
	wantClass(t, r.err(0), kafka.ClassUnauthorized)
	if !strings.Contains(r.err(0).Error(), topic) {
		t.Errorf("the error does not name the topic: %v", r.err(0))
	}
}

func producerClosed(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "closed", 1, nil)
	p := s.producer(t, kafka.ProducerConfig{})
	r := newReports()
	noError(t, p.Send(s.ctx(t), records(topic, numbers("v", 0, 1000)...), r.one()))
	noError(t, p.Close(s.ctx(t))) // an orderly close delivers what was sent
	r.wait(t)
	noError(t, r.err(0))
	s.wantValues(t, topic, numbers("v", 0, 1000)...)
	err := p.Send(s.ctx(t), records(topic, "late"), func(kafka.Delivery) { t.Error("reported") })
	wantClass(t, err, kafka.ClassClosed)
	noError(t, p.Close(s.ctx(t)))
}
