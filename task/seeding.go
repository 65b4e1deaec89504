package task

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

const (
	// seedRecords and seedBytes bound one piece of a seeding: its transaction must end well within its timeout, and
	// commits wait for it.
	seedRecords = 10_000
	seedBytes   = 4 << 20
)

// seedPiece is what one transaction of a seeding writes: records, and the group's offsets as they are, so that the
// group refuses it to a member that has lost the task. It is its seeding's until that hands it on, and then belongs to whoever
// has the transactional producer, until that has said whether it is written.
type seedPiece struct {
	task    *Task
	seed    *seedPlan // its name and topic do not change
	records []kafka.Record
	offsets []kafka.CommittedOffset
	next    int64     // behind the records; 0 when that is not known
	written chan bool // has room for the answer
}

// seeding writes one store into its changelog, piece by piece. It belongs to whoever has the task. It needs no
// producer: write has each piece written, by whoever has that, and returns when it is.
type seeding struct {
	w     *Worker // of the task
	plan  *plan
	seed  *seedPlan
	write func(context.Context, *seedPiece) error
	piece *seedPiece
	bytes int
	told  time.Time // last progress in the log
	// reading is the error of reading the changelog: a client's, not the store's.
	reading error
}

// seedStores writes the stores that a plan names into their changelogs. The group's offsets go on naming the
// former topics until the commit of the new epoch, which comes after it: whoever is killed before that begins anew,
// and nobody else can take the task over without such a store.
func (w *Worker) seedStores(ctx context.Context, p *plan, write func(context.Context, *seedPiece) error) error {
	if !p.unseeded() {
		return nil
	}
	if err := p.task.doubtOffsets(p.seeds); err != nil {
		return &Error{Task: p.task.id, Err: err}
	}
	for _, s := range p.seeds {
		if s.done {
			continue
		}
		w.log.Warn("the changelog does not hold the store: writing it again", "task", p.task.id.String(), "store", s.name, "changelog", s.tp.String(), "reason", s.why)
		began := time.Now()
		x := seeding{w: w, plan: p, seed: s, write: write, told: began}
		x.begin()
		if err := x.run(ctx); err != nil {
			return s.fail(p.task, err)
		}
		s.done = true
		p.task.seeded = put(p.task.seeded, s.name, seededStore{s, p.task.cfg.Topics[s.tp.Topic].ID})
		x.show()
		w.log.Info("the changelog holds the store again", "task", p.task.id.String(), "store", s.name, "changelog", s.tp.String(), "records", s.written, "took", time.Since(began))
	}
	return nil
}

func (s *seedPlan) fail(t *Task, err error) error {
	return t.failedBy(fmt.Errorf("write store %s into its changelog %v: %w", s.name, s.tp, err))
}

// seedNow does it for all plans, in the goroutine that has the producer.
func (w *Worker) seedNow(ctx context.Context, plans []*plan) error {
	for _, p := range plans {
		if err := w.seedStores(ctx, p, w.writePiece); err != nil {
			return err
		}
	}
	return nil
}

// begin makes an empty piece.
func (x *seeding) begin() {
	x.piece, x.bytes = &seedPiece{task: x.plan.task, seed: x.seed, written: make(chan bool, 1)}, 0
	for _, o := range x.plan.read {
		x.piece.offsets = append(x.piece.offsets, o)
	}
}

func (x *seeding) run(ctx context.Context) error {
	failpoint.Hit("seed-begun")
	x.seed.written = 0
	x.show()
	for c, err := range x.plan.task.store.Logged(x.seed.name, x.held(ctx)) {
		if err == nil {
			err = x.add(ctx, c)
		} else if x.reading == nil {
			err = &Error{Task: x.plan.task.id, Err: err}
		}
		if err != nil {
			return err
		}
	}
	if err := x.flush(ctx); err != nil {
		return err
	}
	failpoint.Hit("seeded")
	return nil
}

// held gives what the changelog still holds.
func (x *seeding) held(ctx context.Context) iter.Seq2[statestore.RestoreRecord, error] {
	return func(yield func(statestore.RestoreRecord, error) bool) {
		if x.seed.start >= x.seed.end {
			return
		}
		if x.reading = x.read(ctx, yield); x.reading != nil {
			yield(statestore.RestoreRecord{}, x.reading)
		}
	}
}

func (x *seeding) read(ctx context.Context, yield func(statestore.RestoreRecord, error) bool) (err error) {
	consumer, err := x.w.cfg.Consumer()
	if err != nil {
		return fmt.Errorf("open consumer: %w", err)
	}
	defer x.w.closeClients(ctx, consumer)
	if err := consumer.Assign(ctx, map[kafka.TopicPartition]int64{x.seed.tp: x.seed.start}); err != nil {
		return fmt.Errorf("assign: %w", err)
	}
	var poll kafka.Poll
	for next := x.seed.start; next < x.seed.end; {
		if err := x.allowed(ctx); err != nil {
			return err
		}
		pctx, cancel := context.WithTimeout(ctx, idlePoll)
		err := consumer.Poll(pctx, &poll)
		cancel()
		if err != nil {
			return fmt.Errorf("poll: %w", err)
		}
		for i := range poll.Partitions {
			f := &poll.Partitions[i]
			if f.Err != nil {
				return fmt.Errorf("read: %w", f.Err)
			}
			for j := range f.Records {
				r := &f.Records[j]
				if r.Key == nil || r.Offset >= x.seed.end { // those behind are this seeding's own
					continue
				}
				if !yield(statestore.RestoreRecord{Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}, nil) {
					return nil
				}
			}
			next = f.Next
		}
	}
	return nil
}

// add copies a record into the piece, and writes that when it is full.
func (x *seeding) add(ctx context.Context, c statestore.Change) error {
	t := x.plan.task
	header := ChangeHeader{Kind: ChangeSeed, ID: t.store.CommitID(), Schema: c.Schema}
	if q := t.queues; len(q) > 0 {
		header.Source, header.Position = HashName(q[0].tp.Topic), q[0].position
	}
	r := kafka.Record{Topic: x.seed.tp.Topic, Partition: x.seed.tp.Partition, Timestamp: c.Timestamp,
		Key: append([]byte{}, c.Key...), Headers: []kafka.Header{{Key: HeaderKey, Value: header.Append(nil)}}}
	if c.Value != nil {
		r.Value = append([]byte{}, c.Value...)
	}
	x.piece.records = append(x.piece.records, r)
	x.bytes += len(c.Key) + len(c.Value) + recordOverhead
	if len(x.piece.records) < seedRecords && x.bytes < seedBytes {
		return nil
	}
	return x.flush(ctx)
}

// flush has the piece written.
func (x *seeding) flush(ctx context.Context) (err error) {
	if len(x.piece.records) == 0 {
		return nil
	}
	if err := x.allowed(ctx); err != nil {
		return err
	}
	if err := x.write(ctx, x.piece); err != nil {
		return err
	}
	x.seed.next = max(x.seed.next, x.piece.next)
	x.seed.written += int64(len(x.piece.records))
	x.begin()
	x.show()
	x.tell()
	return nil
}

// allowed tells whether the task is still to be taken over.
func (x *seeding) allowed(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if x.w.stopping() {
		return errStopped
	}
	if m := x.w.cfg.Member(); !m.Same(x.w.cfg.Started) {
		return fmt.Errorf("%w: member %q is now %q", ErrLost, x.w.cfg.Started.ID, m.ID)
	}
	return nil
}

const (
	beingSeeded = "being written to the changelog again"
	seeded      = "written to the changelog again"
)

// show brings the status up to date. A seeding that begins anew goes on with the entry of the one before, whose reason is the
// true one: by now the offset is in doubt.
func (x *seeding) show() {
	r := Repair{Store: x.seed.name, Changelog: x.seed.tp, Reason: x.seed.why, Action: beingSeeded, Records: x.seed.written}
	if x.seed.done {
		r.Action = seeded
	}
	x.w.status.task(x.plan.task.id, func(t *TaskStatus) { t.seeds(r) })
}

func (x *seeding) tell() {
	if now := time.Now(); now.Sub(x.told) >= tellTime {
		x.told = now
		x.w.log.Info("writing a store into its changelog", "task", x.plan.task.id.String(), "store", x.seed.name, "changelog", x.seed.tp.String(), "records", x.seed.written)
	}
}

// writePiece is the transaction of a piece. It is called by whoever has the producer.
func (w *Worker) writePiece(ctx context.Context, p *seedPiece) error {
	var sent *deliveries
	err := w.transactBeside(ctx, func(d *deliveries) error {
		sent = d
		if err := d.send(ctx, w.txn, p.records, nil); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		if len(p.offsets) == 0 {
			return nil
		}
		return w.sendOffsets(ctx, p.offsets)
	})
	if err != nil {
		return err
	}
	failpoint.Hit("seed-piece")
	p.next, _ = sent.offset(p.seed.tp)
	return nil
}
