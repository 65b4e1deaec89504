package processor

import "time"

// Processor handles the records of one node of the topology. It gets records of type
// Record[KIn, VIn] and forwards records of type Record[KOut, VOut]. Nulls reach it: see
// [Record]. An error, or a panic, fails the task with the record named.
//
// A processor may also implement [Initer] and [Closer].
type Processor[KIn, VIn, KOut, VOut any] interface {
	Process(ctx Context[KOut, VOut], r Record[KIn, VIn]) error
}

// Initer is a processor that wants to be called once, before the first record and after the
// task's stores are restored. It may schedule punctuations.
type Initer[KOut, VOut any] interface {
	Init(ctx Context[KOut, VOut]) error
}

// Closer is a processor that wants to be called when its task is closed, also when an Init
// has failed. The stores are not to be used any more.
type Closer interface {
	Close() error
}

// Func is a processor without state of its own.
type Func[KIn, VIn, KOut, VOut any] func(ctx Context[KOut, VOut], r Record[KIn, VIn]) error

// Process calls f.
func (f Func[KIn, VIn, KOut, VOut]) Process(ctx Context[KOut, VOut], r Record[KIn, VIn]) error {
	return f(ctx, r)
}

// Context is what a processor can do beside computing. It is valid in the goroutine that
// calls the processor, and only there. It is implemented by this package alone; tests of a
// processor run it in a topology.
type Context[K, V any] interface {
	// StoreContext lets store handles open their store: seen.In(ctx).
	StoreContext
	// Forward sends r to all children, in the order in which they were added, and returns
	// when they (and their children) are done with it.
	Forward(r Record[K, V]) error
	// ForwardTo sends r to the child of that name only.
	ForwardTo(child string, r Record[K, V]) error
	// Commit asks for a commit soon, before the commit interval is over. It does not wait.
	Commit()
	// StreamTime is the largest record timestamp the task has seen; the zero time before the
	// first record.
	StreamTime() time.Time
	// Now is the wall clock, which a test may mock.
	Now() time.Time
	// Metadata says where the record in process came from; ok is false in a punctuation and
	// in Init.
	Metadata() (m RecordMetadata, ok bool)
	// TaskID names the task.
	TaskID() TaskID
	// Replaying tells that the record was processed before, and comes again only to bring stores without a
	// changelog up to date. What is written to sinks and to other stores is dropped, and punctuations
	// do not run; a processor with effects outside leaves them out.
	Replaying() bool
	// Schedule calls f every interval (whole milliseconds, at least one) until cancelled;
	// cancel may be called at any time, from within f too.
	//
	// With WallClockTime the first call is one interval from now. With StreamTime the points
	// are the multiples of the interval since 1970, whenever it was scheduled, and the first
	// call comes behind the next record. Points that were missed are not made up for: however
	// far the clock has jumped, f is called once.
	Schedule(interval time.Duration, by PunctuationType, f Punctuator) (cancel func())
}

// PunctuationType says which clock drives a [Punctuator].
type PunctuationType uint8

const (
	// StreamTime is moved by the timestamps of records.
	StreamTime PunctuationType = iota
	// WallClockTime is the clock on the wall.
	WallClockTime
)

// Punctuator is a function called at points in time; it may forward and use stores. now is
// the time that its clock shows, which may be later than the point that was due.
type Punctuator func(now time.Time) error
