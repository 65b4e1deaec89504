package task

import (
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/kafka"
)

// replay brings stores without a changelog from the positions where they stand to the group's offsets:
// the records between are processed a second time, in a copy of the sub-topology that is thrown away
// afterwards. What that writes to other stores and to sinks is dropped: it is there already. Commits
// go on as always, with the group's offsets as they are, and with the replay's own positions in the
// store's batch: killed at any point it goes on from there. No record behind the group's offsets is processed
// before the replay is over (T11).
type replay struct {
	to   map[kafka.TopicPartition]int64    // the group's offsets, of all partitions
	meta map[kafka.TopicPartition]Metadata // theirs
	// streamTime is the task's at the group's offsets.
	streamTime int64
	stores     []string
	logged     []string
	late       []lateStore

	records int64
	began   time.Time
	// shown is when the status was brought up to date last, told when the log was.
	shown, told time.Time
}

// lateStore is one that began behind the begin of the replay; muted while the record in process is
// before that.
type lateStore struct {
	name  string
	start map[kafka.TopicPartition]int64
	muted bool
}

// startReplay sets a task whose positions are the group's offsets back to where its stores stand.
func (p *plan) startReplay() {
	t, u := p.task, &p.unlogged
	t.replay = nil
	if u.from == nil {
		return
	}
	r := &replay{to: map[kafka.TopicPartition]int64{}, meta: p.meta, streamTime: t.streamTime,
		stores: u.stores, logged: t.logged(), began: time.Now(), told: time.Now()}
	for _, q := range t.queues {
		r.to[q.tp] = q.position
		if from, ok := u.from[q.tp]; ok && from < q.position {
			q.position, q.fetched, q.partitionTime = from, from, -1
		}
	}
	for _, name := range u.stores {
		if l := (lateStore{name: name, start: map[kafka.TopicPartition]int64{}}); p.isLate(&l) {
			r.late = append(r.late, l)
		}
	}
	t.streamTime = t.store.StreamTime()
	if u.rebuild {
		t.streamTime = -1
	}
	t.replay = r
}

// isLate fills in where a store began, and tells whether the replay begins before that.
func (p *plan) isLate(l *lateStore) (late bool) {
	for tp, from := range p.unlogged.from {
		m := p.meta[tp]
		at, _ := m.start(l.name)
		l.start[tp] = at
		late = late || at > from
	}
	return late
}

// mute lets only those stores be written that a record of the replay has not reached yet; without a
// replay all.
func (t *Task) mute() {
	r := t.replay
	if r == nil {
		t.store.Mute()
		return
	}
	names := r.logged
	for _, l := range r.late {
		if l.muted {
			names = append(names[:len(names):len(names)], l.name)
		}
	}
	t.store.Mute(names...)
}

// replaying is called before a record of the replay is processed.
func (t *Task) replaying(r *kafka.Record) {
	x := t.replay
	x.records++
	changed := false
	for i := range x.late {
		l := &x.late[i]
		if before := r.Offset < l.start[r.TopicPartition()]; before != l.muted {
			l.muted, changed = before, true
		}
	}
	if changed {
		t.mute()
	}
}

// reached tells whether a source has nothing left to replay. What is queued behind waits.
func (r *replay) reached(q *queue) bool {
	end := r.to[q.tp]
	if q.len() > 0 {
		return q.peek().Offset >= end
	}
	return q.position >= end
}

// replayed tells whether the replay has reached the group's offsets.
func (t *Task) replayed() bool {
	for _, q := range t.queues {
		if !t.replay.reached(q) {
			return false
		}
	}
	return true
}

// toCommit gives what the group is told of a source: its position, or, while a replay is behind that, what
// the group has already.
func (t *Task) toCommit(q *queue) (offset, partitionTime, streamTime int64) {
	r := t.replay
	if r == nil {
		return q.position, q.partitionTime, t.streamTime
	}
	partitionTime = q.partitionTime
	if m, ok := r.meta[q.tp]; ok {
		partitionTime = max(partitionTime, m.PartitionTime)
	}
	return r.to[q.tp], partitionTime, max(t.streamTime, r.streamTime)
}

// stored gives the position of a source that the store's batch carries.
func (t *Task) stored(q *queue) int64 {
	if t.replay != nil {
		return min(q.position, t.replay.to[q.tp])
	}
	return q.position
}

// endReplay goes over to the records that were not processed yet, if the replay has come to them.
func (w *Worker) endReplay(t *Task) error {
	if t.replay == nil {
		return nil
	}
	if !t.replayed() {
		w.tellReplay(t)
		return nil
	}
	if err := t.flush(); err != nil { // what tables hold back reaches their stores; it is sent to nobody
		return err
	}
	for _, q := range t.queues {
		var offset int64
		offset, q.partitionTime, t.streamTime = t.toCommit(q)
		q.position = max(q.position, offset)
		q.fetched = max(q.fetched, q.position)
	}
	r := t.replay
	t.replay = nil
	t.mute()
	err := t.inst.Close()
	t.inst = nil
	if err != nil {
		return &Error{Task: t.id, Err: err}
	}
	failpoint.Hit("replayed")
	w.log.Info("stores without a changelog have caught up", "task", t.id.String(), "stores", r.stores, "records", r.records, "took", time.Since(r.began))
	w.status.task(t.id, func(s *TaskStatus) {
		s.Replay.Left, s.Replay.Records, s.Replay.Took = 0, r.records, time.Since(r.began)
	})
	if err := w.newInstance(t); err != nil {
		return &Error{Task: t.id, Err: err}
	}
	return nil
}

// left is how many offsets a replay has to go.
func (t *Task) left() (n int64) {
	for _, q := range t.queues {
		n += max(0, t.replay.to[q.tp]-q.position)
	}
	return n
}

// tellReplay reports the progress of a replay, now and then.
func (w *Worker) tellReplay(t *Task) {
	r, now := t.replay, time.Now()
	if now.Sub(r.shown) < time.Second {
		return
	}
	r.shown = now
	w.status.task(t.id, func(s *TaskStatus) { s.Replay.Left, s.Replay.Records = t.left(), r.records })
	if now.Sub(r.told) < 5*time.Second {
		return
	}
	r.told = now
	w.log.Info("processing records again for stores without a changelog", "task", t.id.String(), "stores", r.stores, "records", r.records, "left", t.left())
}

// beginReplay says what a replay is going to do.
func (w *Worker) beginReplay(t *Task) {
	r := t.replay
	w.status.task(t.id, func(s *TaskStatus) { s.Replay = ReplayStatus{} })
	if r == nil {
		return
	}
	w.log.Warn("stores without a changelog are behind the group's offsets: the records between are processed again for them", "task", t.id.String(), "stores", r.stores, "left", t.left())
	w.status.task(t.id, func(s *TaskStatus) { s.Replay = ReplayStatus{Stores: r.stores, Left: t.left(), Started: r.began} })
}

// replays tells whether any task does.
func (w *Worker) replays() bool {
	for _, t := range w.tasks {
		if t.replay != nil {
			return true
		}
	}
	return false
}

// tellState says that the worker runs, once every task does.
func (w *Worker) tellState() {
	if w.State() != "running" && len(w.besides) == 0 && !w.replays() {
		w.status.state("running")
	}
}

// ReplayStatus is the progress of a replay: records that are processed again for stores without a
// changelog. It is zero where there was none.
type ReplayStatus struct {
	Stores []string
	// Left is how many offsets are to go; offsets have holes.
	Left int64
	// Records counts those processed again.
	Records int64
	Started time.Time
	Took    time.Duration // once it is finished
}
