package franz

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// slab holds the records of one Send in franz-go's form. It is reused when all of them
// were acknowledged, with the one promise that was made for it: a record costs no
// allocation. Promises run one after the other on one goroutine.
type slab struct {
	sender  *sender
	records []kgo.Record
	headers []kgo.RecordHeader
	promise func(*kgo.Record, error)

	left   atomic.Int32
	cancel context.CancelFunc // of the delivery's deadline
	report func(kafka.Delivery)
	next   []kafka.PartitionOffset
	last   int // entry of next that was used last: records come in runs of one partition
	err    error
}

func newSlab(s *sender) *slab {
	b := &slab{sender: s}
	b.promise = b.delivered
	return b
}

// fill copies records into the slab, and gives the context that bounds their delivery.
func (b *slab) fill(records []kafka.Record, report func(kafka.Delivery)) context.Context {
	b.report = report
	deadline, cancel := context.WithTimeout(context.Background(), b.sender.timeout)
	b.cancel = cancel
	b.left.Store(int32(len(records)))
	if cap(b.records) < len(records) {
		b.records = make([]kgo.Record, len(records))
	}
	b.records = b.records[:len(records)]
	n := 0
	for i := range records {
		n += len(records[i].Headers)
	}
	if cap(b.headers) < n {
		b.headers = make([]kgo.RecordHeader, n)
	}
	b.headers = b.headers[:0]
	for i := range records {
		r := &records[i]
		to := &b.records[i]
		// franz-go asks the clock for every record whose timestamp is not set
		*to = kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp)}
		if len(r.Headers) == 0 {
			continue
		}
		from := len(b.headers)
		for _, h := range r.Headers {
			b.headers = append(b.headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		to.Headers = b.headers[from:len(b.headers):len(b.headers)]
	}
	return deadline
}

// delivered takes the fate of one record; the last one reports, and gives the slab back.
func (b *slab) delivered(r *kgo.Record, err error) {
	if err != nil {
		if b.err == nil {
			tp := kafka.TopicPartition{Topic: r.Topic, Partition: r.Partition}
			b.err = b.sender.failed(tp, err)
		}
	} else {
		b.advance(r)
	}
	if b.left.Add(-1) > 0 {
		return
	}
	b.finish()
}

func (b *slab) advance(r *kgo.Record) {
	tp := kafka.TopicPartition{Topic: r.Topic, Partition: r.Partition}
	if b.last >= len(b.next) || b.next[b.last].TopicPartition != tp {
		b.last = len(b.next)
		for i := range b.next {
			if b.next[i].TopicPartition == tp {
				b.last = i
				break
			}
		}
		if b.last == len(b.next) {
			b.next = append(b.next, kafka.PartitionOffset{TopicPartition: tp})
		}
	}
	b.next[b.last].Offset = r.Offset + 1
}

func (b *slab) finish() {
	report, n, err := b.report, len(b.records), b.err
	b.cancel()
	if report != nil {
		report(kafka.Delivery{Next: b.next, Err: err})
	}
	clear(b.records) // a kept record would pin its key and value
	clear(b.headers)
	b.records, b.headers, b.next, b.last, b.err, b.report = b.records[:0], b.headers[:0], b.next[:0], 0, nil, nil
	b.sender.done(b, n, err)
}
