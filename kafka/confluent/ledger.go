//go:build cgo

package confluent

import (
	"sync"

	"github.com/tidemark-streams/tidemark/kafka"
)

// A ledger knows which records handed to librdkafka have no fate yet. Delivery reports
// carry no mark of the Send they belong to: a mark costs a map entry under a lock for
// each record, there and back. Instead they are counted: within a partition, reports come
// in the order of the records, so the next report belongs to the oldest Send that still
// waits there.
//
// That order can only break when records fail (one that waited too long in the queue may
// fail before an older one in flight is acknowledged). So a failure marks every Send that
// has a record without a fate in that partition, its own certainly among them: none is
// ever reported as delivered when it was not.
type ledger struct {
	mu          sync.Mutex
	lanes       map[kafka.TopicPartition]*lane
	last        *lane         // of the report before: the next is mostly of the same partition
	outstanding int           // records without a fate
	unreported  int           // Sends whose report was not called yet
	idle        chan struct{} // not nil: closed when unreported reaches 0
	first       error         // the first failure since forgive
	torn        bool          // since forgive a broker has refused a record
	shut        error         // not nil: everything has its fate
}

// A lane is one partition's queue of Sends, oldest first.
type lane struct {
	tp    kafka.TopicPartition
	slots []slot
	head  int
}

type slot struct {
	send *send
	next int // index into send.next
	left int
}

// send is one call of Send.
type send struct {
	left   int
	next   []kafka.PartitionOffset
	err    error
	report func(kafka.Delivery)
}

func newLedger() *ledger { return &ledger{lanes: map[kafka.TopicPartition]*lane{}} }

// enter adds the records of one Send before they are handed over, because their reports
// may come before the handing over returns.
func (l *ledger) enter(records []kafka.Record, report func(kafka.Delivery)) (*send, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut != nil {
		return nil, l.shut
	}
	s := &send{left: len(records), report: report}
	for i := range records {
		ln := l.lane(records[i].Topic, records[i].Partition)
		if n := len(ln.slots); n > ln.head && ln.slots[n-1].send == s {
			ln.slots[n-1].left++
			continue
		}
		s.next = append(s.next, kafka.PartitionOffset{TopicPartition: ln.tp})
		ln.slots = append(ln.slots, slot{send: s, next: len(s.next) - 1, left: 1})
	}
	l.outstanding += len(records)
	l.unreported++
	return s, nil
}

// fits tells whether n more records stay inside the bound. More than the bound at once
// fit when nothing else is there, or they would wait for ever.
func (l *ledger) fits(n, bound int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outstanding == 0 || l.outstanding+n <= bound
}

func (l *ledger) lane(topic string, partition int32) *lane {
	if ln := l.last; ln != nil && ln.tp.Partition == partition && ln.tp.Topic == topic {
		return ln
	}
	tp := kafka.TopicPartition{Topic: topic, Partition: partition}
	ln := l.lanes[tp]
	if ln == nil {
		ln = &lane{tp: tp}
		l.lanes[tp] = ln
	}
	l.last = ln
	return ln
}

// delivered counts one report. offset is the record's, below 0 if the broker did not say.
// It gives the Send whose last record this was. mu is held.
func (l *ledger) delivered(topic string, partition int32, offset int64, err error) *send {
	ln := l.lane(topic, partition)
	ln.skip()
	if ln.head == len(ln.slots) {
		return nil // the ledger was shut: it has its fate
	}
	if err != nil {
		l.blame(err)
		for i := ln.head; i < len(ln.slots); i++ {
			ln.slots[i].send.blame(err)
		}
	}
	s := &ln.slots[ln.head]
	if offset >= 0 {
		s.send.next[s.next].Offset = offset + 1
	} else if err == nil && s.left == 1 {
		s.send.blame(&kafka.Error{Class: kafka.ClassRetriable, Op: "produce", On: ln.tp.String(), Err: errNoOffset})
		l.blame(s.send.err)
	}
	s.left--
	ended := l.settle(s.send, 1)
	ln.skip()
	return ended
}

// refuse gives records of s that were never handed over their fate.
func (l *ledger) refuse(s *send, records []kafka.Record, err error) *send {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut != nil {
		return nil
	}
	s.blame(err)
	l.blame(err)
	for i := range records {
		ln := l.lane(records[i].Topic, records[i].Partition)
		for j := len(ln.slots) - 1; j >= ln.head; j-- { // mostly the last
			if ln.slots[j].send == s {
				ln.slots[j].left--
				break
			}
		}
	}
	return l.settle(s, len(records))
}

// skip moves head behind slots that wait for nothing, and reuses their memory.
func (ln *lane) skip() {
	for ln.head < len(ln.slots) && ln.slots[ln.head].left == 0 {
		ln.slots[ln.head] = slot{}
		ln.head++
	}
	switch {
	case ln.head == len(ln.slots):
		ln.slots, ln.head = ln.slots[:0], 0
	case ln.head > 64 && ln.head > len(ln.slots)/2:
		n := copy(ln.slots, ln.slots[ln.head:])
		clear(ln.slots[n:])
		ln.slots, ln.head = ln.slots[:n], 0
	}
}

func (s *send) blame(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (l *ledger) blame(err error) {
	if l.first == nil {
		l.first = err
	}
}

// settle takes n records of s off the books, and gives s if they were the last.
func (l *ledger) settle(s *send, n int) *send {
	l.outstanding -= n
	if s.left -= n; s.left > 0 {
		return nil
	}
	return s
}

// report calls the reports of Sends that have ended. It must be called without the lock.
func (l *ledger) report(ended ...*send) {
	if len(ended) == 0 {
		return
	}
	for _, s := range ended {
		s.report(kafka.Delivery{Next: s.next, Err: s.err})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unreported -= len(ended)
	if l.unreported == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// waitIdle gives a channel that is closed as soon as every Send was reported.
func (l *ledger) waitIdle() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unreported == 0 {
		c := make(chan struct{})
		close(c)
		return c
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	return l.idle
}

// failure gives the first failure since forgive.
func (l *ledger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

func (l *ledger) forgive() {
	l.mu.Lock()
	l.first, l.torn = nil, false
	l.mu.Unlock()
}

func (l *ledger) tornUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.torn
}

// close gives every record that has none its fate, err, and refuses all further ones.
func (l *ledger) close(err error) {
	l.mu.Lock()
	if l.shut != nil {
		l.mu.Unlock()
		return
	}
	l.shut = err
	var ended []*send
	for _, ln := range l.lanes {
		for i := ln.head; i < len(ln.slots); i++ {
			s := ln.slots[i].send
			s.blame(err)
			if n := ln.slots[i].left; n > 0 && l.settle(s, n) != nil {
				ended = append(ended, s)
			}
		}
		ln.slots, ln.head = nil, 0
	}
	l.mu.Unlock()
	l.report(ended...)
}
