package processor

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Env is what an [Instance] needs of the task that runs it. All of its functions are called
// on the goroutine that owns the instance.
type Env struct {
	TaskID TaskID
	// Stores opens the sub-topology's stores; it may be nil if it has none.
	Stores TaskStores
	// Send takes an output record of a sink. Key and value are valid only during the call.
	Send func(out Output) error
	// Commit asks for an early commit.
	Commit func()
	// Now is the wall clock.
	Now func() time.Time
	// Dropped counts a record that an operator had to drop; it may be nil. node and reason
	// are few and constant, so they can label a metric.
	Dropped func(node, reason string)
	// ExtractTimestamp gives a record's timestamp in milliseconds; nil takes the record's own.
	// partitionTime is the largest timestamp of the record's partition so far, or the zero time.
	ExtractTimestamp func(r *kafka.Record, partitionTime time.Time) (int64, error)
	// Caching says which tables hold their updates back until [Instance.Flush].
	Caching Caching
	// Replaying: see [Context].Replaying. Punctuations by stream time do not run; those by the wall
	// clock are left to the task.
	Replaying bool
}

// Output is a record that a sink writes.
type Output struct {
	// Topic as in the topology: internal topics without the application's prefix.
	Topic      string
	Key, Value []byte // nil is null
	Timestamp  time.Time
	Headers    []kafka.Header
}

// ErrNegativeTimestamp marks a record whose timestamp is before 1970. Kafka Streams stops on
// it too: such a record has no place on the time line of windows.
var ErrNegativeTimestamp = errors.New("negative timestamp")

// Instance is one task's running copy of a sub-topology. One goroutine owns it.
type Instance struct {
	env        Env
	sub        *Subtopology
	runtime    map[*node]any                     // sourceNode, processorNode or sinkNode, with their types
	sources    map[string]source                 // by topic
	byKey      map[string][]*statestore.KeyValue // by topic: see ReadsByKey
	topic      string                            // of the record before: the next is mostly of the same
	source     source                            // of topic
	closers    []closer
	clock      recordClock
	meta       RecordMetadata
	inRecord   bool
	streamTime int64    // milliseconds; noTime: none
	names      []string // of the nodes
	node       int      // which of them is at work, for messages
	punct      schedule
	keyBuf     []byte
	valBuf     []byte
	headers    []kafka.Header // room for those of the next records
	copies     copies         // of the records' keys and values
	caches     []flusher      // in the order of their nodes
}

// source is the untyped side of a sourceNode: where bytes come in.
type source interface {
	process(r *kafka.Record) error
}

type closer struct {
	node string
	Closer
}

// NewInstance builds a copy of the sub-topology and initialises its processors, in the order
// in which they were added. Stores must be restored before. streamTime is the largest
// timestamp that the task has seen in its earlier lives, or the zero time.
func (sub *Subtopology) NewInstance(env Env, streamTime time.Time) (*Instance, error) {
	in := &Instance{env: env, sub: sub, sources: map[string]source{}, byKey: map[string][]*statestore.KeyValue{}, runtime: map[*node]any{}, streamTime: noTime}
	if !streamTime.IsZero() {
		in.streamTime = streamTime.UnixMilli()
	}
	in.clock.now = env.Now().UnixMilli()
	if err := guard(in.open); err != nil {
		return nil, errors.Join(fmt.Errorf("task %v: %w", env.TaskID, err), in.Close())
	}
	return in, nil
}

func (in *Instance) open() error {
	for _, n := range in.sub.childrenFirst() {
		r, err := n.make(in, n)
		if err != nil {
			return fmt.Errorf("%v: %w", n, err)
		}
		in.runtime[n] = r
		for _, topic := range n.topics {
			in.sources[topic] = r.(source)
		}
	}
	if err := in.openByKey(); err != nil {
		return err
	}
	for _, n := range in.sub.nodes {
		p, ok := in.runtime[n].(interface{ init() error })
		if !ok {
			continue
		}
		in.node = in.number(n.name)
		if err := guard(p.init); err != nil {
			return fmt.Errorf("init %v: %w", n, err)
		}
	}
	return nil
}

// childrenFirst gives the nodes so that a node's children stand before it.
func (sub *Subtopology) childrenFirst() []*node {
	var out []*node
	seen := map[*node]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, c := range n.children {
			walk(c)
		}
		out = append(out, n)
	}
	for _, n := range sub.nodes {
		walk(n)
	}
	return out
}

// Timestamp gives the timestamp that r counts with: its own, which must not be negative, or
// the one the extractor gives; skip is true when that one is negative, which means that the
// record is to be dropped. partitionTime is the largest timestamp that a record of r's
// partition has counted with, in milliseconds; -1 if there is none.
func (in *Instance) Timestamp(r *kafka.Record, partitionTime int64) (ms int64, skip bool, err error) {
	if in.env.ExtractTimestamp == nil {
		if r.Timestamp < 0 {
			return 0, false, fmt.Errorf("%w %d ms; configure a TimestampExtractor that repairs it, or drops it by giving a negative time", ErrNegativeTimestamp, r.Timestamp)
		}
		return r.Timestamp, false, nil
	}
	var sofar time.Time
	if partitionTime >= 0 {
		sofar = time.UnixMilli(partitionTime)
	}
	ms, err = in.env.ExtractTimestamp(r, sofar)
	if err != nil {
		return 0, false, fmt.Errorf("extract timestamp: %w", err)
	}
	return ms, ms < 0, nil
}

// Process runs one record, already timestamped, through the sub-topology. topic is the
// record's topic as the topology names it. When it returns, everything the record caused has
// happened, but for what tables with caching hold back (P4). After an error the instance is of no use any more, and [Instance.At] names
// the node.
func (in *Instance) Process(topic string, r *kafka.Record, ts int64) error {
	if topic != in.topic || in.source == nil {
		s := in.sources[topic]
		if s == nil {
			return fmt.Errorf("topic %s is not read by sub-topology %d", topic, in.sub.ID)
		}
		in.topic, in.source = topic, s
	}
	in.streamTime = max(in.streamTime, ts)
	if in.meta.Topic != r.Topic { // seldom: see recordClock for why that is worth a look
		in.meta.Topic = r.Topic
	}
	in.meta.Partition, in.meta.Offset = r.Partition, r.Offset
	in.inRecord = true
	in.clock.now = ts
	err := in.source.process(r)
	in.inRecord = false
	if err != nil {
		return err
	}
	if in.punct.hasStream && !in.env.Replaying && in.punct.streamDue <= in.streamTime {
		return in.punctuate(StreamTime, in.StreamTime())
	}
	return nil
}

// guard turns a panic of a user's code into an error: what else was opened is still to be closed.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// At names the node that was at work last, for messages about an error or a panic.
func (in *Instance) At() string {
	if in.node >= len(in.names) {
		return "" // nothing was at work yet
	}
	return in.names[in.node]
}

// number gives the place of a node's name among the instance's. To note a number at each step
// costs less than to note a name: see recordClock.
func (in *Instance) number(name string) int {
	i := slices.Index(in.names, name)
	if i < 0 {
		i = len(in.names)
		in.names = append(in.names, name)
	}
	return i
}

// noTime is a stream time before the first record.
const noTime = math.MinInt64

// StreamTime is the largest record timestamp seen; the zero time if there is none.
func (in *Instance) StreamTime() time.Time {
	if in.streamTime == noTime {
		return time.Time{}
	}
	return time.UnixMilli(in.streamTime)
}

// NextWallClock is when the next wall-clock punctuation is due; ok is false if there is none.
func (in *Instance) NextWallClock() (at time.Time, ok bool) {
	ms, ok := in.punct.earliest(WallClockTime)
	return time.UnixMilli(ms), ok
}

// PunctuateWallClock runs the wall-clock punctuations that are due. An error names the node.
func (in *Instance) PunctuateWallClock(now time.Time) error {
	return in.punctuate(WallClockTime, now)
}

func (in *Instance) punctuate(by PunctuationType, now time.Time) error {
	in.clock.now = now.UnixMilli()
	return in.punct.run(by, now, func(node string) { in.node = in.number(node) })
}

// Close closes the processors, the last one first; it reports every error. It is called once.
func (in *Instance) Close() error {
	var errs []error
	for _, c := range slices.Backward(in.closers) {
		in.node = in.number(c.node)
		if err := guard(c.Close); err != nil {
			errs = append(errs, fmt.Errorf("task %v: close processor %s: %w", in.env.TaskID, c.node, err))
		}
	}
	return errors.Join(errs...)
}
