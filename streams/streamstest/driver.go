package streamstest

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/streams"
)

// Config configures a [Driver]. The zero value is good.
type Config struct {
	// AppID is the application id, which the real names of internal topics begin with. Default
	// "app".
	AppID string
	// Start is what the wall clock shows at first. Default 1970-01-01.
	Start time.Time
	// TimestampExtractor is that of streams.Config.
	TimestampExtractor streams.TimestampExtractor
	// ManualCommit leaves commits to [Driver.Commit] and to processors that ask for one.
	// Otherwise every record, and every advance of the clock, is followed by a commit.
	ManualCommit bool
	// Caching and CachingMaxEntries are those of streams.StoreConfig.
	Caching           bool
	CachingMaxEntries int
	// Logger takes what the stores have to say. Default: nobody.
	Logger *slog.Logger
}

// TB is what a driver needs of a [*testing.T].
type TB interface {
	// Helper marks the caller as one whose place is of no interest.
	Helper()
	// Fatal says what failed, and ends the test.
	Fatal(args ...any)
	// Cleanup has f called at the end of the test.
	Cleanup(f func())
}

// Driver runs one topology. See the package's comment.
type Driver struct {
	t      TB
	cfg    Config
	store  *statestore.TaskStore
	inst   *processor.Instance
	stores *processor.Stores
	topics map[string]*topic // by the name in the topology
	reads  []*topic          // those that the topology reads, by name

	now      time.Time
	number   int64           // of the last commit
	asked    bool            // a processor asked for a commit
	pending  []written       // by the record in process
	batching int             // depth of Batch
	dropped  map[Dropped]int // by node and reason
	err      error           // why the driver has failed
	tries    []error         // one for each Try that runs
	closed   bool
}

// New starts a driver for a topology. It is closed at the end of the test. Without a t, in an
// example, a failure panics.
func New(t TB, topology *streams.Topology, cfg Config) *Driver {
	if t == nil {
		t = panics{}
	}
	t.Helper()
	if cfg.AppID == "" {
		cfg.AppID = "app"
	}
	if cfg.Start.IsZero() {
		cfg.Start = time.UnixMilli(0)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	d := &Driver{t: t, cfg: cfg, now: cfg.Start, topics: map[string]*topic{}, dropped: map[Dropped]int{}}
	t.Cleanup(d.Close)
	if err := d.open(topology); err != nil {
		d.err = fmt.Errorf("test driver: %w", err)
		t.Fatal(d.err)
	}
	return d
}

// panics is the TB of an example.
type panics struct{}

func (panics) Helper()           {}
func (panics) Cleanup(func())    {}
func (panics) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Close closes the processors and the stores; later calls do nothing. The test's end does it too.
func (d *Driver) Close() {
	if d.closed {
		return
	}
	d.t.Helper()
	d.closed = true
	d.check(d.close())
}

// Advance moves the wall clock and runs the punctuations that are due: each once, however far
// the clock goes.
func (d *Driver) Advance(by time.Duration) {
	d.t.Helper()
	if by < 0 {
		d.check(fmt.Errorf("the clock cannot go back by %v", by))
		return
	}
	if d.check(d.usable()) {
		d.now = d.now.Add(by)
		d.check(d.end(d.punctuate()))
	}
}

// Now is what the wall clock shows.
func (d *Driver) Now() time.Time { return d.now }

// StreamTime is the largest timestamp of a record so far; the zero time if there is none.
func (d *Driver) StreamTime() time.Time { return d.inst.StreamTime() }

// Batch has the records that f pipes in wait in their topics until f returns. Then they are
// processed in the order of their timestamps, those of one topic in their own order.
func (d *Driver) Batch(f func()) {
	d.t.Helper()
	d.batching++
	f()
	d.batching--
	d.check(d.run())
}

// Try runs f and gives the error in which it ends, which then does not fail the test:
//
//	err := d.Try(func() { lines.Pipe("k", "not a number", at) })
//
// The error of a processor names its node and the record, and wraps what the processor gave.
func (d *Driver) Try(f func()) error {
	d.tries = append(d.tries, nil)
	f()
	err := d.tries[len(d.tries)-1]
	d.tries = d.tries[:len(d.tries)-1]
	return err
}

// Stores lets store handles open any store of the topology: seen.In(d). What is written that
// way is committed with the next record. Where a store needs a time, it is the stream time.
func (d *Driver) Stores() *processor.Stores {
	at := d.inst.StreamTime()
	if at.IsZero() {
		at = d.now
	}
	d.stores.SetTimestamp(at)
	return d.stores
}

// Commit commits what was processed. It is needed only with ManualCommit.
func (d *Driver) Commit() {
	d.t.Helper()
	if d.check(d.usable()) {
		d.asked = true
		d.check(d.end(nil))
	}
}

// Committed is what the last commit says.
type Committed struct {
	// Commits is how many there were.
	Commits int64
	// Positions are the offsets of the next record to process, by topic as the topology names it.
	Positions map[string]int64
	// StreamTime is the zero time before the first record.
	StreamTime time.Time
}

// Committed tells what the last commit says. Reads through the stores' handles show uncommitted
// writes too.
func (d *Driver) Committed() Committed {
	c := Committed{Commits: d.store.CommitID().Number, Positions: map[string]int64{}}
	if ms := d.store.StreamTime(); ms != statestore.NoStreamTime {
		c.StreamTime = time.UnixMilli(ms)
	}
	for _, p := range d.store.Positions() {
		for _, t := range d.reads {
			if t.real == p.Topic {
				c.Positions[t.name] = p.Next
			}
		}
	}
	return c
}

// check reports an error to the test, or to Try. It tells whether there is none.
func (d *Driver) check(err error) bool {
	if err == nil {
		return true
	}
	if n := len(d.tries); n > 0 {
		if d.tries[n-1] == nil {
			d.tries[n-1] = err
		}
		return false
	}
	d.t.Helper()
	d.t.Fatal(err)
	return false
}

// usable tells why the driver cannot be used any more.
func (d *Driver) usable() error {
	if d.closed {
		return fmt.Errorf("test driver: it is closed")
	}
	return d.err
}

// find gives a topic of the topology that the test names.
func (d *Driver) find(name, what string, fits func(*topic) bool) *topic {
	if t := d.topics[name]; t != nil && fits(t) {
		return t
	}
	var names []string
	for _, t := range d.topics {
		if fits(t) {
			names = append(names, t.name)
		}
	}
	slices.Sort(names)
	d.t.Helper()
	d.check(fmt.Errorf("test driver: the topology does not %s topic %s, but %s", what, name, strings.Join(names, ", ")))
	return &topic{name: name, real: name}
}
