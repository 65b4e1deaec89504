package task

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Guarantee says what a crash may do to outputs. State is exact in both.
type Guarantee uint8

const (
	// AtLeastOnce shows outputs at once; a crash may repeat those of one commit interval.
	AtLeastOnce Guarantee = iota
	// ExactlyOnce puts outputs into the commit's transaction: each is read exactly once by
	// readers that use read_committed.
	ExactlyOnce
)

// String gives the guarantee's usual name.
func (g Guarantee) String() string {
	if g == ExactlyOnce {
		return "exactly-once"
	}
	return "at-least-once"
}

// Limits bound an interval. The zero value of each field is its default.
type Limits struct {
	// CommitInterval is the time from the first record of an interval to its commit, and the
	// latency of a hop through a repartition topic. Default 100 ms.
	CommitInterval time.Duration
	// CommitRecords commits earlier after so many records. Default: no bound.
	CommitRecords int
	// MaxDirtyBytes commits earlier when a worker's tasks hold so many bytes of uncommitted
	// writes. Default 32 MiB, at most 512 MiB.
	MaxDirtyBytes int
	// MaxHeldBytes commits earlier when a worker holds so many bytes of output records that
	// wait for their transaction. Default 32 MiB.
	MaxHeldBytes int
	// MaxTaskIdle is how long a task waits for records of a partition that has none, so that
	// its partitions are merged by timestamp. Records that were at the broker when the task was taken
	// over are waited for in any case. Default 0: for those only.
	MaxTaskIdle time.Duration
	// BufferedRecords is how many records of one partition may wait; behind it the partition
	// is paused. Default 20,000.
	BufferedRecords int
	// IdleCommitInterval is after how long an idle task commits its offsets again, so that the
	// broker does not expire them. Default 30 minutes.
	IdleCommitInterval time.Duration
	// PurgeInterval is the time between two purges of repartition topics, which delete there what
	// was read and is on the disk. Default 30 s.
	PurgeInterval time.Duration
	// ShortRestore is how many offsets of changelogs a task may lack to be restored before its worker
	// begins; one that lacks more is restored beside the others, which run meanwhile. Default 20,000: what a poll
	// or two bring.
	ShortRestore int
	// LargeRestore is from how many offsets on a store is restored in sorted runs, past the log and the memtables of
	// its database, if it is a key-value store that lies there: two such restores of a process at a time, each with up
	// to 150 MB of memory, or 200 MB where records are small. Default 200,000.
	LargeRestore int
	// RetryTimeout bounds the waiting for a broker at one step before the step is given up,
	// reported and begun anew. Default 30 s.
	RetryTimeout time.Duration
}

// Defaults fills the zero fields.
func (l *Limits) Defaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	defInt := func(d *int, v int) {
		if *d == 0 {
			*d = v
		}
	}
	def(&l.CommitInterval, 100*time.Millisecond)
	def(&l.IdleCommitInterval, 30*time.Minute)
	def(&l.PurgeInterval, 30*time.Second)
	def(&l.RetryTimeout, 30*time.Second)
	defInt(&l.MaxDirtyBytes, 32<<20)
	defInt(&l.MaxHeldBytes, 32<<20)
	defInt(&l.BufferedRecords, 20_000)
	defInt(&l.ShortRestore, 20_000)
	defInt(&l.LargeRestore, 200_000)
}

// Validate reports every field that makes no sense.
func (l Limits) Validate() error {
	var errs []error
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"CommitInterval", l.CommitInterval}, {"MaxTaskIdle", l.MaxTaskIdle}, {"IdleCommitInterval", l.IdleCommitInterval}, {"PurgeInterval", l.PurgeInterval}, {"RetryTimeout", l.RetryTimeout}} {
		if d.v < 0 {
			errs = append(errs, fmt.Errorf("%s is %v: it must not be negative", d.name, d.v))
		}
	}
	for _, n := range []struct {
		name string
		v    int
	}{{"CommitRecords", l.CommitRecords}, {"MaxDirtyBytes", l.MaxDirtyBytes}, {"MaxHeldBytes", l.MaxHeldBytes}, {"BufferedRecords", l.BufferedRecords}, {"ShortRestore", l.ShortRestore}, {"LargeRestore", l.LargeRestore}} {
		if n.v < 0 {
			errs = append(errs, fmt.Errorf("%s is %d: it must not be negative", n.name, n.v))
		}
	}
	if l.MaxDirtyBytes > maxMaxDirtyBytes {
		errs = append(errs, fmt.Errorf("MaxDirtyBytes is %d: it must be at most %d, what one batch of a store can hold", l.MaxDirtyBytes, maxMaxDirtyBytes))
	}
	return errors.Join(errs...)
}

// maxMaxDirtyBytes leaves room for the writes of one more record: a store takes 1 GiB in an
// interval, and then fails the task.
const maxMaxDirtyBytes = 512 << 20

// StartPosition says where a group without offsets begins.
type StartPosition struct {
	// Spec is kafka.Earliest, kafka.LastStable for the end, or a time in milliseconds.
	Spec kafka.OffsetSpec
}

// Config is what a [Worker] works with. All fields without a default are needed.
type Config struct {
	// Name of the worker, for messages.
	Name  string
	AppID string
	// Group is the consumer group whose offsets are the tasks'; empty is AppID.
	Group     string
	Topology  *processor.Topology
	Guarantee Guarantee
	Limits    Limits
	Start     StartPosition
	// Existing: as far as the caller can tell the group had an earlier life, so that an answer without offsets is not
	// believed at once. A task's own traces of one are looked at in any case.
	Existing bool
	// OnConflict is the operator's choice for a store and offsets that cannot both be right.
	OnConflict Conflict
	// WhileRunning is the choice for an input whose log begins behind the position of a task that runs. Only AcceptReset means
	// something. It is apart because OnConflict may have been recorded for one start.
	WhileRunning Conflict
	// OnFailure says what the failure of one task means for the others.
	OnFailure OnFailure
	// Failed, if not nil, is told of each task that failed alone, after it was closed, from the worker's goroutine.
	Failed func(id processor.TaskID, err error)
	// Topics describes every topic that the topology reads or writes and every changelog, by
	// its real name.
	Topics map[string]kafka.Topic
	// OpenStore opens the task's store.
	OpenStore func(id processor.TaskID) (*statestore.TaskStore, error)
	// Keep makes a copy of a task's directory before a store of it is emptied that may hold what is nowhere else, and
	// says where; made is false if there is one already. nil = none is made.
	Keep func(id processor.TaskID, store *statestore.TaskStore, reason string) (path string, made bool, err error)
	// StoreClosed, if not nil, is called after the store of a task was closed, from any of the
	// worker's goroutines; err tells that the store had failed or could not be closed.
	StoreClosed func(id processor.TaskID, err error)
	// Owner is recorded in each store as who had the task last, when the task is closed; "" =
	// nobody.
	Owner string
	// Offsets is told how far the tasks are; nil = nobody wants to know.
	Offsets *offsetcache.Cache
	// Started is the member under which the tasks are given to the worker, Member gives the
	// present one.
	Started kafka.Member
	Member  func() kafka.Member
	// ExtractTimestamp, if not nil, replaces the records' own timestamps. partitionTime is the
	// largest one of the record's partition so far; the zero time if there is none.
	ExtractTimestamp func(r *kafka.Record, partitionTime time.Time) (int64, error)
	// Caching says which tables hold their updates back until the commit.
	Caching processor.Caching
	// Now is the wall clock; nil is time.Now.
	Now    func() time.Time
	Logger *slog.Logger
	// RestoreListener is told of restores; nil = nobody wants to know.
	RestoreListener RestoreListener
	// Changed, if not nil, is called when [Worker.Status] has changed in more than counters.
	Changed func()
	Clients
}

// Clients are where the worker's Kafka clients come from. Those it opens it closes: a
// reload opens new ones, since a library's may be of no use after an error.
type Clients struct {
	// Admin is shared, and not closed by the worker.
	Admin         kafka.Admin
	Consumer      func() (kafka.Consumer, error)
	Transactional func() (kafka.Transactional, error)
	// Outputs opens the producer of the user's sinks; it is used under [AtLeastOnce] only.
	Outputs func() (kafka.Producer, error)
}

// group is the consumer group of the tasks.
func (c *Config) group() string {
	if c.Group != "" {
		return c.Group
	}
	return c.AppID
}

// RealTopic is the name in Kafka of a topic of the topology: internal ones carry the
// application id as prefix.
func RealTopic(t *processor.Topology, appID, topic string) string {
	if _, internal := t.Internal(topic); internal {
		return appID + "-" + topic
	}
	return topic
}
