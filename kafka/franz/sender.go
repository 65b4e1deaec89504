package franz

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/semaphore"

	"github.com/tidemark-streams/tidemark/kafka"
)

// sender hands records to a franz-go client and keeps count of what is not reported yet.
type sender struct {
	cl      *kgo.Client
	link    *link
	parts   *explicit
	room    *semaphore.Weighted // records that may still be buffered
	size    int64
	timeout time.Duration // of a delivery

	mu    sync.Mutex
	free  []*slab
	out   int           // slabs not reported yet
	idle  chan struct{} // closed when out is 0; nil when nobody waits
	first error         // the first failed delivery since reset
}

const (
	// keptSlabs bounds the memory that is kept for reuse.
	keptSlabs = 64
	// deliveryAnswerAge is how old the last answer of a broker may be for a failed delivery
	// to be the record's fault and not the network's.
	deliveryAnswerAge = 10 * time.Second
)

// newSender makes the client of a producer. extra are the options of its kind.
func (c Client) newSender(s kafka.Settings, cfg kafka.ProducerConfig, part string, extra ...kgo.Opt) (*sender, error) {
	codec, err := codecOf(s.Compression)
	if err != nil {
		return nil, err
	}
	linger := s.Linger
	if linger == 0 {
		linger = 5 * time.Millisecond
	}
	parts := &explicit{}
	// No RecordDeliveryTimeout: franz-go counts it from the record's own timestamp, and a
	// record may be years old. Each Send has a deadline instead.
	cl, l, err := c.dial(s, part, append([]kgo.Opt{
		kgo.RecordPartitioner(parts),
		kgo.ProducerLinger(max(linger, 0)),
		kgo.ProducerBatchCompression(codec),
		kgo.MaxBufferedRecords(1 << 30), // the bound is the sender's: it must hold for a Send as a whole
		kgo.ProduceRequestTimeout(requestTimeout(s)),
	}, extra...)...)
	if err != nil {
		return nil, err
	}
	records, timeout := int64(cfg.MaxBufferedRecords), cfg.DeliveryTimeout
	if records <= 0 {
		records = 100_000
	}
	if timeout <= 0 {
		timeout = 2 * time.Minute
	}
	return &sender{cl: cl, link: l, parts: parts, room: semaphore.NewWeighted(records), size: records, timeout: timeout}, nil
}

func codecOf(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "", "none":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.NoCompression(), invalid("open producer", "", "compression "+name+" is not one of none, gzip, snappy, lz4, zstd")
}

// send hands over records, waiting for room.
func (s *sender) send(ctx context.Context, records []kafka.Record, report func(kafka.Delivery)) error {
	if len(records) == 0 {
		if report != nil {
			report(kafka.Delivery{})
		}
		return nil
	}
	if err := s.reserve(ctx, len(records)); err != nil {
		return err
	}
	b := s.start()
	deadline := b.fill(records, report)
	filled := b.records // the slab may be in other hands before the loop ends
	for i := range filled {
		s.cl.Produce(deadline, &filled[i], b.promise)
	}
	return nil
}

// reserve takes room for n records; a Send larger than the bound takes all of it.
func (s *sender) reserve(ctx context.Context, n int) error {
	op := s.link.call("send")
	if s.link.ctx.Err() != nil {
		return op.fail("", kgo.ErrClientClosed)
	}
	want := min(int64(n), s.size)
	if s.room.TryAcquire(want) {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.link.ctx, cancel)()
	if err := s.room.Acquire(ctx, want); err != nil {
		if s.link.ctx.Err() != nil {
			return op.fail("", kgo.ErrClientClosed)
		}
		return op.class(kafka.ClassTimeout, "", err)
	}
	return nil
}

func (s *sender) start() *slab {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out++
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b
	}
	return newSlab(s)
}

// done is called when a slab was reported.
func (s *sender) done(b *slab, n int, err error) {
	s.room.Release(min(int64(n), s.size))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) < keptSlabs {
		s.free = append(s.free, b)
	}
	if err != nil && s.first == nil {
		s.first = err
	}
	s.out--
	if s.out == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// failed makes the error of a record that was not delivered.
func (s *sender) failed(tp kafka.TopicPartition, err error) error {
	c := call{link: s.link, op: "produce", start: now() - int64(deliveryAnswerAge)}
	if classOf(err) == kafka.ClassFatal && s.parts.isMissing(tp) {
		return c.class(kafka.ClassUnknownTopic, tp.String(), err)
	}
	return c.fail(tp.String(), err)
}

// settled waits until everything sent was reported.
func (s *sender) settled(ctx context.Context) error {
	s.mu.Lock()
	if s.out == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// firstFailure gives the first failed delivery since the last reset.
func (s *sender) firstFailure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

func (s *sender) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = nil
}
