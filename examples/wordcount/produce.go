package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// producer writes the files' lines into the topic, in transactions. It keeps no notes of its
// own: each record says in its headers which line of what comes next, and a run begins by
// reading them. A line is there exactly once, because all runs use one transactional id,
// under which only the last one that initialised it can commit.
type producer struct {
	o     options
	place *place
	txn   kafka.Transactional
	once  bool // something was begun that cannot be read again

	partitions int32
	done       map[unit]int64       // the next line of each, as committed
	known      map[string][]content // what was produced when this run began, by the files' names
	open       *transaction

	committed, total atomic.Int64 // lines of this run's files
}

func newProducer(o options, p *place) *producer { return &producer{o: o, place: p} }

const maxAttempts = 5

// run produces what is missing of the files, and with --follow goes on until ctx ends.
func (p *producer) run(ctx context.Context) (err error) {
	p.txn, err = p.place.client.NewTransactional(p.place.settings, kafka.TransactionalConfig{ID: p.o.app + "-lines"})
	if err != nil {
		return err
	}
	defer func() { // what is open is aborted with it
		if cerr := closeClient(p.txn); err == nil {
			err = cerr
		}
	}()
	for attempt := 1; ; attempt++ {
		err := p.attempt(ctx)
		if err == nil || ctx.Err() != nil || p.once || attempt == maxAttempts || !passing(err) {
			return err
		}
		p.place.show.printf("produce lines: %v; beginning again behind the last committed line", err)
	}
}

// passing tells whether it is worth to begin again, with the topic as the judge of what was
// committed. Fenced is not: another run of this program has taken over.
func passing(err error) bool {
	var e *kafka.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Class {
	case kafka.ClassRetriable, kafka.ClassAbortable, kafka.ClassInDoubt, kafka.ClassTimeout, kafka.ClassUnreachable:
		return true
	}
	return false
}

// attempt begins with the initialisation: then every transaction of an earlier run is over,
// and what the topic says is final.
func (p *producer) attempt(ctx context.Context) error {
	if err := p.txn.Init(ctx); err != nil {
		return fmt.Errorf("initialise the producer of %s: %w", p.o.topics.lines, err)
	}
	p.open = nil
	if err := p.readDone(ctx); err != nil {
		return err
	}
	sources, err := p.sources()
	if err != nil {
		return err
	}
	if p.o.follow {
		return p.follow(ctx, sources)
	}
	for repetition := range p.o.repeat {
		for _, s := range sources {
			if err := p.produce(ctx, s, repetition); err != nil {
				return err
			}
		}
	}
	return p.commit(ctx)
}

// sources identifies the files. Two with the same content are one, which is produced once.
func (p *producer) sources() ([]source, error) {
	var all []source
	var lines, done int64
	paths := map[content]string{}
	for _, path := range p.o.files {
		s, err := openSource(path, p.known, p.o.follow)
		if err != nil {
			return nil, err
		}
		if first, twice := paths[s.content]; twice && s.size > 0 {
			p.place.show.printf("%s has the same content as %s: it is counted once", path, first)
			continue
		}
		paths[s.content] = path
		all = append(all, s)
		for repetition := range p.o.repeat {
			lines += s.lines
			done += max(p.done[unit{s.content, repetition}]-1, 0)
		}
	}
	p.total.Store(lines)
	p.committed.Store(done)
	p.place.show.printf("input: %d files, %s lines, of which %s were produced before", len(all), grouped(lines), grouped(done))
	return all, nil
}

// produce produces a file from the first line on that is not committed.
func (p *producer) produce(ctx context.Context, s source, repetition int) error {
	if s.path == stdin {
		return p.produceStdin(ctx, s)
	}
	u := unit{s.content, repetition}
	if p.next(u) > s.lines {
		return nil
	}
	in, err := openInput(s, u)
	if err != nil {
		return err
	}
	defer in.close()
	in.lines = newLineReader(io.NewSectionReader(in.file, 0, s.end))
	if err := p.drain(ctx, in); err != nil {
		return err
	}
	if last := in.lines.rest(); last != nil {
		return p.take(ctx, in, last)
	}
	return nil
}

// drain sends the whole lines that are there.
func (p *producer) drain(ctx context.Context, in *input) error {
	for {
		line, err := in.lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s, line %d: %w", in.path, in.number+1, err)
		}
		if err := p.take(ctx, in, line); err != nil {
			return err
		}
	}
}

// take sends the input's next line, if it is not committed.
func (p *producer) take(ctx context.Context, in *input, line []byte) error {
	in.number++
	if in.number < p.next(in.unit) {
		return nil
	}
	return p.send(ctx, in, line)
}

// next is the number of the first line of u that is not committed; lines count from 1.
func (p *producer) next(u unit) int64 { return max(p.done[u], 1) }

// transaction is what was sent and is not committed yet.
type transaction struct {
	started time.Time
	lines   int
	bytes   int
	batch   []kafka.Record // not handed over yet
	pending int            // bytes of batch
	next    map[unit]int64
}

const (
	transactionLines = 20_000
	transactionBytes = 8 << 20
	transactionTime  = 200 * time.Millisecond
	batchLines       = 1000
	batchBytes       = 512 << 10
)

// send adds a line to the open transaction, and commits that when it is large or old enough.
func (p *producer) send(ctx context.Context, in *input, line []byte) error {
	if p.open == nil {
		if err := p.txn.Begin(); err != nil {
			return err
		}
		p.open = &transaction{started: time.Now(), next: map[unit]int64{}}
	}
	t := p.open
	t.batch = append(t.batch, p.record(in, line))
	t.lines++
	t.pending += len(line)
	t.bytes += len(line)
	t.next[in.unit] = in.number + 1
	if len(t.batch) >= batchLines || t.pending >= batchBytes {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	if t.lines >= transactionLines || t.bytes >= transactionBytes || p.old() {
		return p.commit(ctx)
	}
	return nil
}

// old tells whether the open transaction has waited long enough for more lines.
func (p *producer) old() bool { return p.open != nil && time.Since(p.open.started) >= transactionTime }

func (p *producer) flush(ctx context.Context) error {
	t := p.open
	if len(t.batch) == 0 {
		return nil
	}
	batch := t.batch
	t.batch, t.pending = nil, 0
	// Commit waits for the deliveries, and knows whether one of them failed.
	return p.txn.Send(ctx, batch, func(kafka.Delivery) {})
}

// commit commits the open transaction, if there is one.
func (p *producer) commit(ctx context.Context) error {
	t := p.open
	if t == nil {
		return nil
	}
	if err := p.flush(ctx); err != nil {
		return err
	}
	if err := p.txn.Commit(ctx); err != nil {
		return err
	}
	p.open = nil
	for u, next := range t.next {
		p.done[u] = next
	}
	p.committed.Add(int64(t.lines))
	return nil
}
