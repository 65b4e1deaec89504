package task

import (
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

const (
	slabRecords = 4096
	slabBytes   = 512 << 10
)

// slab is a piece of an interval's outputs: records and the bytes they refer to, in two
// allocations that are reused when the producer has reported them.
type slab struct {
	records []kafka.Record
	bytes   []byte
	headers []kafka.Header
}

func (s *slab) fits(n, headers int) bool {
	return len(s.records) < cap(s.records) && len(s.bytes)+n <= cap(s.bytes) && len(s.headers)+headers <= cap(s.headers)
}

// keep copies b behind the slab's bytes. nil stays nil.
func (s *slab) keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	from := len(s.bytes)
	s.bytes = append(s.bytes, b...)
	return s.bytes[from:len(s.bytes):len(s.bytes)]
}

// outbox collects output records in slabs. The worker fills it; full slabs are taken from it
// in order. Slabs come back from the producer's goroutine through the free channel.
type outbox struct {
	full  []*slab
	cur   *slab
	bytes int // in full and cur
	free  chan *slab
}

func newOutbox() *outbox { return &outbox{free: make(chan *slab, 64)} }

func (o *outbox) slabFor(n, headers int) *slab {
	if o.cur != nil && o.cur.fits(n, headers) {
		return o.cur
	}
	if o.cur != nil {
		o.full = append(o.full, o.cur)
		o.cur = nil
	}
	if n <= slabBytes && headers <= slabRecords {
		select {
		case o.cur = <-o.free:
			return o.cur
		default:
		}
	}
	o.cur = &slab{records: make([]kafka.Record, 0, slabRecords), bytes: make([]byte, 0, max(n, slabBytes)), headers: make([]kafka.Header, 0, max(headers, slabRecords))}
	return o.cur
}

// add copies a record into the outbox.
func (o *outbox) add(topic string, partition int32, key, value []byte, at time.Time, headers []kafka.Header) {
	n := len(key) + len(value)
	for _, h := range headers {
		n += len(h.Value)
	}
	s := o.slabFor(n, len(headers))
	r := kafka.Record{Topic: topic, Partition: partition, Timestamp: at.UnixMilli(), Key: s.keep(key), Value: s.keep(value)}
	if len(headers) > 0 {
		from := len(s.headers)
		for _, h := range headers {
			s.headers = append(s.headers, kafka.Header{Key: h.Key, Value: s.keep(h.Value)})
		}
		r.Headers = s.headers[from:len(s.headers):len(s.headers)]
	}
	s.records = append(s.records, r)
	o.bytes += n + recordOverhead
}

// recordOverhead is what a held record costs beside its key and value.
const recordOverhead = 120

// take removes and gives all slabs, the unfinished one included.
func (o *outbox) take() []*slab {
	all := o.full
	if o.cur != nil && len(o.cur.records) > 0 {
		all = append(all, o.cur)
		o.cur = nil
	}
	o.full, o.bytes = nil, 0
	return all
}

// drop forgets everything that was not taken.
func (o *outbox) drop() {
	for _, s := range o.take() {
		o.recycle(s)
	}
}

// recycle takes a slab back; any goroutine may call it.
func (o *outbox) recycle(s *slab) {
	clear(s.headers) // their keys are the user's; the records refer to the slab alone, and pin nothing
	s.records, s.bytes, s.headers = s.records[:0], s.bytes[:0], s.headers[:0]
	if cap(s.bytes) > slabBytes {
		return
	}
	select {
	case o.free <- s:
	default:
	}
}
