package task

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Task is one task: the sources' queues, the store and the running copy of the sub-topology.
// Its worker's goroutine owns it.
type Task struct {
	id    processor.TaskID
	sub   *processor.Subtopology
	cfg   *Config
	store *statestore.TaskStore
	inst  *processor.Instance // nil until the take-over is through

	queues    []*queue
	idleSince time.Time // since when the task waits for records of an empty partition

	// outlived are the stores of which tellOutlived has warned.
	outlived map[string]bool

	// asked: the group was asked again for the offsets that it lacks, and lacks them. Until the task runs.
	asked bool

	// seeded are the stores whose changelogs were written again to the end, until the task runs.
	seeded map[string]seededStore

	epoch      int64 // writer epoch
	number     int64 // of the last commit sealed
	sealedAt   map[kafka.TopicPartition]int64
	streamTime int64
	lastCommit time.Time
	covered    struct{ sources, stores []Covered }
	warm       bool     // the store's cache holds all it can
	keys       [][]byte // room for those to prefetch
	wrote      bool     // outputs, since the last seal
	out        int      // bytes of outputs in this turn
	dropped    int64

	// Of stores without a changelog: where they began, and the replay under way, if any.
	starts map[kafka.TopicPartition][]StoreStart
	replay *replay
}

// newTask opens the store of a task and declares its stores.
func newTask(cfg *Config, sub *processor.Subtopology, id processor.TaskID) (*Task, error) {
	t := &Task{id: id, sub: sub, cfg: cfg, sealedAt: map[kafka.TopicPartition]int64{}, streamTime: -1}
	for _, name := range sub.Sources {
		topic := cfg.Topics[RealTopic(cfg.Topology, cfg.AppID, name)]
		if id.Partition >= topic.Partitions {
			continue
		}
		t.queues = append(t.queues, &queue{tp: kafka.TopicPartition{Topic: topic.Name, Partition: id.Partition}, topic: name, partitionTime: -1})
		t.covered.sources = append(t.covered.sources, Covered{HashName(topic.Name), HashTopicID(topic.ID)})
	}
	var specs []statestore.Spec
	for _, s := range sub.Stores {
		changelog := cfg.Topics[ChangelogTopic(cfg.AppID, s.Name)]
		spec := s.Spec()
		if s.Unlogged {
			changelog = kafka.Topic{}
		}
		spec.Changelog, spec.ChangelogID = changelog.Name, changelog.ID
		specs = append(specs, spec)
		t.covered.stores = append(t.covered.stores, Covered{HashName(s.Name), HashTopicID(changelog.ID)})
	}
	tellMigrations(cfg.Logger, id, specs)
	store, err := openStore(cfg, sub, id, specs)
	if errors.Is(err, statestore.ErrCorrupt) {
		// Damage that was found only now is recorded in the directory: opened again, it is set aside.
		store, err = openStore(cfg, sub, id, specs)
	}
	if err != nil {
		return nil, fmt.Errorf("task %v: %w", id, err)
	}
	t.store = store
	return t, nil
}

func openStore(cfg *Config, sub *processor.Subtopology, id processor.TaskID, specs []statestore.Spec) (*statestore.TaskStore, error) {
	store, err := cfg.OpenStore(id)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := openOwn(sub.Stores, specs, id, store.Dir()); err != nil {
		return nil, errors.Join(err, closeStore(cfg, id, store))
	}
	if err := store.Register(specs...); err != nil {
		return nil, errors.Join(err, closeStore(cfg, id, store))
	}
	return store, nil
}

func (t *Task) changelog(store string) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: ChangelogTopic(t.cfg.AppID, store), Partition: t.id.Partition}
}

func (t *Task) queue(tp kafka.TopicPartition) *queue {
	for _, q := range t.queues {
		if q.tp == tp {
			return q
		}
	}
	return nil
}

// next chooses the queue whose head has the smallest timestamp. nil: nothing to do, or the
// task waits for a partition that has no record here: for records that are known to be at the broker, else
// for MaxTaskIdle.
func (t *Task) next(now time.Time) (*queue, error) {
	var best *queue
	empty, coming := false, false
	for _, q := range t.queues {
		if t.replay != nil && t.replay.reached(q) {
			continue
		}
		if q.len() == 0 {
			empty, coming = true, coming || q.fetched < q.known
			continue
		}
		if len(t.queues) == 1 {
			return q, nil
		}
		if err := t.readHead(q); err != nil {
			return nil, err
		}
		if best == nil || q.headTime < best.headTime {
			best = q
		}
	}
	if coming {
		return nil, nil
	}
	if best == nil || !empty || t.cfg.Limits.MaxTaskIdle == 0 {
		t.idleSince = time.Time{}
		return best, nil
	}
	if t.idleSince.IsZero() {
		t.idleSince = now
	}
	if now.Sub(t.idleSince) < t.cfg.Limits.MaxTaskIdle {
		return nil, nil
	}
	return best, nil
}

// readHead finds the timestamp that the head of a queue counts with.
func (t *Task) readHead(q *queue) error {
	if q.headKnown {
		return nil
	}
	r := q.peek()
	var err error
	if t.cfg.ExtractTimestamp == nil {
		q.headTime, q.headSkip, err = t.inst.Timestamp(r, q.partitionTime)
	} else {
		err = t.extract(q, r)
	}
	if err != nil {
		return t.recordError(r, err)
	}
	q.headKnown = true
	return nil
}

// extract is the part of readHead that calls user code.
func (t *Task) extract(q *queue, r *kafka.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("extract timestamp: panic: %v\n%s", p, debug.Stack())
		}
	}()
	q.headTime, q.headSkip, err = t.inst.Timestamp(r, q.partitionTime)
	return err
}

// process runs up to n records, fewer if what they write reaches a bound, and says how many. A
// panic in user code becomes an error: the process is not ours to kill.
func (t *Task) process(n int, now time.Time) (done int, err error) {
	t.out = 0
	if err := t.prefetch(n); err != nil {
		return 0, err
	}
	var r *kafka.Record // in process
	// One guard for all of them: a guard for each record costs several ns.
	defer func() {
		if r == nil {
			return
		}
		if p := recover(); p != nil {
			err = t.recordError(r, fmt.Errorf("node %s: panic: %v\n%s", t.inst.At(), p, debug.Stack()))
		}
	}()
	l := &t.cfg.Limits
	for done < n {
		q, err := t.next(now)
		if q == nil || err != nil {
			return done, err
		}
		if err := t.readHead(q); err != nil {
			return done, err
		}
		ms := q.headTime
		if q.headSkip {
			t.dropped++
		} else {
			r = q.peek()
			if t.replay != nil {
				t.replaying(r)
			}
			if err := t.inst.Process(q.topic, r, ms); err != nil {
				return done, t.recordError(r, fmt.Errorf("node %s: %w", t.inst.At(), err))
			}
			r = nil
		}
		t.streamTime = max(t.streamTime, ms)
		q.pop(ms)
		if done++; t.out >= l.MaxHeldBytes || t.store.DirtyBytes() >= l.MaxDirtyBytes {
			break
		}
	}
	return done, nil
}

func (t *Task) recordError(r *kafka.Record, err error) error {
	return &Error{Task: t.id, Err: fmt.Errorf("process record %s-%d@%d: %w", r.Topic, r.Partition, r.Offset, err)}
}

// punctuate runs the wall-clock punctuations that are due.
func (t *Task) punctuate(now time.Time) (err error) {
	at, ok := t.inst.NextWallClock()
	if !ok || now.Before(at) || t.replay != nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Task: t.id, Err: fmt.Errorf("punctuate node %s: panic: %v\n%s", t.inst.At(), p, debug.Stack())}
		}
	}()
	if err := t.inst.PunctuateWallClock(now); err != nil {
		return &Error{Task: t.id, Err: err}
	}
	return nil
}

// warmEntries is how much of the store is read into the cache between two turns.
const warmEntries = 5000

// warmUp fills the cache after a start, bit by bit: a cold one makes every first read of a key
// several times dearer.
func (t *Task) warmUp() (err error) {
	if t.warm {
		t.store.Trim()
		return nil
	}
	if t.warm, err = t.store.Warm(warmEntries); err != nil {
		return &Error{Task: t.id, Err: fmt.Errorf("warm up: %w", err)}
	}
	return nil
}

// moved tells whether there is anything to commit. Outputs alone are: a punctuation makes them
// without a record, and they must not leave the process under no task's commit.
func (t *Task) moved() bool {
	if t.wrote {
		return true
	}
	for _, q := range t.queues {
		if q.position != t.sealedAt[q.tp] {
			return true
		}
	}
	return t.store.DirtyBytes() > 0
}

// seal closes the running interval of the task: its writes become immutable, and its
// positions are what the commit will carry.
func (t *Task) seal() (*sealedTask, error) {
	t.number++
	t.wrote = false
	s := &sealedTask{task: t, progress: statestore.Progress{ID: statestore.CommitID{Epoch: t.epoch, Number: t.number}, StreamTime: t.streamTime}}
	offsets, err := t.offsets(s.progress.ID)
	if err != nil {
		return nil, err
	}
	s.offsets = offsets
	for _, q := range t.queues {
		s.progress.Positions = append(s.progress.Positions, statestore.Position{Topic: q.tp.Topic, Partition: q.tp.Partition, Next: t.stored(q)})
		t.sealedAt[q.tp] = q.position
	}
	s.progress.Replaying = t.replay != nil
	if s.sealed, err = t.store.Seal(s.progress); err != nil {
		return nil, &Error{Task: t.id, Err: err}
	}
	first := offsets[0]
	s.change = ChangeHeader{Kind: ChangeCommit, ID: s.progress.ID, Source: HashName(first.Topic), Position: first.Offset}
	s.header = s.schemaHeader(0)
	return s, nil
}

// offsets gives the committed form of the present positions of all source partitions (T8).
func (t *Task) offsets(id statestore.CommitID) ([]kafka.CommittedOffset, error) {
	var out []kafka.CommittedOffset
	for _, q := range t.queues {
		m := Metadata{ID: id, Sources: t.covered.sources, Stores: t.covered.stores, Starts: t.starts[q.tp]}
		var offset int64
		offset, m.PartitionTime, m.StreamTime = t.toCommit(q)
		text, err := m.Encode()
		if err != nil {
			return nil, &Error{Task: t.id, Err: err}
		}
		out = append(out, kafka.CommittedOffset{TopicPartition: q.tp, Offset: offset, Metadata: text})
	}
	return out, nil
}

// drops counts the records that operators drop, and says so the first time for each node and
// reason: a topology that drops everything must not look like one that has nothing to do.
func (t *Task) drops(log *slog.Logger) func(node, reason string) {
	type kind struct{ node, reason string }
	said := map[kind]bool{}
	return func(node, reason string) {
		t.dropped++
		if k := (kind{node, reason}); !said[k] {
			said[k] = true
			log.Warn("record dropped; further ones are only counted", "task", t.id.String(), "node", node, "reason", reason)
		}
	}
}

// drop forgets what is not committed. The store stays open.
func (t *Task) drop() error {
	var err error
	if t.inst != nil {
		err = t.inst.Close()
		t.inst = nil
	}
	t.store.Drop()
	t.warm, t.wrote, t.replay = false, false, nil
	for _, q := range t.queues {
		*q = queue{tp: q.tp, topic: q.topic, partitionTime: -1, own: q.own[:0]}
	}
	clear(t.sealedAt)
	return err
}

// close ends the task. What is not committed is dropped.
func (t *Task) close() error {
	err := t.drop()
	return errors.Join(err, t.closeStore())
}

func (t *Task) partitions() []kafka.TopicPartition {
	out := make([]kafka.TopicPartition, 0, len(t.queues))
	for _, q := range t.queues {
		out = append(out, q.tp)
	}
	slices.SortFunc(out, kafka.TopicPartition.Compare)
	return out
}

// Error is the failure of one task.
type Error struct {
	Task processor.TaskID
	Err  error
}

// Error names the task.
func (e *Error) Error() string { return fmt.Sprintf("task %v: %v", e.Task, e.Err) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
