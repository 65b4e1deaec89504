package kafka

import "context"

// ConsumerConfig says how a [Consumer] reads.
type ConsumerConfig struct {
	// ReadUncommitted also shows records of open and aborted transactions. The default
	// is read_committed.
	ReadUncommitted bool
	// MaxPollRecords bounds one Poll over all partitions. Default 10,000.
	MaxPollRecords int
}

// Consumer reads partitions that are assigned to it by hand. It belongs to no group
// and commits nothing. One goroutine owns it: no two of its methods run at once.
type Consumer interface {
	// Assign adds partitions, each with the offset to start from (K1). An offset outside
	// the log is reported by Poll as ClassOffsetOutOfRange for that partition; the
	// consumer never resets by itself.
	Assign(ctx context.Context, from map[TopicPartition]int64) error
	// Unassign removes partitions: none of their records is returned afterwards.
	Unassign(partitions ...TopicPartition) error
	// Pause stops fetching from partitions, Resume goes on. Records that the library
	// had buffered may still be returned by the next Poll after Pause.
	Pause(partitions ...TopicPartition)
	Resume(partitions ...TopicPartition)
	// Poll waits until something was fetched or the context ends (which is not an
	// error) and fills into, whose previous content is overwritten. Errors of one
	// partition stand in its Fetched entry; an error of the consumer as a whole is returned.
	Poll(ctx context.Context, into *Poll) error
	Closer
}

// Poll is what one [Consumer.Poll] brought. It is reused from poll to poll: the slices
// Partitions, Records and Headers are valid until the next Poll with the same value;
// the bytes of keys, values and header values stay valid for as long as they are
// referenced, and are never changed.
type Poll struct {
	Partitions []Fetched

	headers []Header // arena of the records' headers
}

// Fetched is what one poll brought of one partition.
type Fetched struct {
	TopicPartition
	// Records are in offset order. Transaction markers are never among them.
	Records []Record
	// Next is the consumer's position behind this fetch: the offset after the last
	// record, or beyond it when transaction markers, aborted records or holes of
	// compaction follow. A partition may appear with no record and a larger Next.
	Next int64
	// Err is a partition's own error (offset out of range, unknown topic, not
	// authorized); other partitions are not affected.
	Err error
}

// Reset empties p and keeps its memory. For implementations of [Consumer].
func (p *Poll) Reset() {
	for i := range p.Partitions {
		f := &p.Partitions[i]
		clear(f.Records) // a kept record would pin its fetch buffer
		*f = Fetched{Records: f.Records[:0]}
	}
	p.Partitions = p.Partitions[:0]
	clear(p.headers)
	p.headers = p.headers[:0]
}

// Add appends an entry for a partition, reusing memory of earlier polls. For
// implementations of [Consumer]. The pointer is valid until the next Add.
func (p *Poll) Add(tp TopicPartition) *Fetched {
	n := len(p.Partitions)
	if n < cap(p.Partitions) {
		p.Partitions = p.Partitions[:n+1]
	} else {
		p.Partitions = append(p.Partitions, Fetched{})
	}
	f := &p.Partitions[n]
	f.TopicPartition = tp
	return f
}

// Headers gives n headers of p's own memory to fill. For implementations of [Consumer].
func (p *Poll) Headers(n int) []Header {
	if n == 0 {
		return nil
	}
	from := len(p.headers)
	for range n {
		p.headers = append(p.headers, Header{})
	}
	return p.headers[from : from+n : from+n]
}
